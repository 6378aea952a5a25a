"""Settings: defaults < file < environment < command line, and bad values named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.settings import resolve_settings, settings_from_run
from memory.errors import BadInput


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """An empty working folder and an environment without our variables."""
    before, variables = Path.cwd(), dict(os.environ)
    os.chdir(tmp_path)
    for name in [n for n in os.environ if n.startswith("WARPSMITH_")]:
        del os.environ[name]
    yield tmp_path
    os.chdir(before)
    os.environ.clear()
    os.environ.update(variables)


def test_the_command_line_wins_over_the_environment_over_the_file_over_the_default(elsewhere: Path) -> None:
    assert resolve_settings().population == 8
    (elsewhere / "warpsmith.toml").write_text("population = 3\ngenerations = 4\nseed = 9\n")
    os.environ["WARPSMITH_POPULATION"] = "5"
    os.environ["WARPSMITH_GENERATIONS"] = "6"
    settings = resolve_settings(population=7, generations=None)
    assert (settings.population, settings.generations, settings.seed) == (7, 6, 9)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"population": 0}, "'population'"),
        ({"gpu": "voodoo2"}, "known: h200"),
        ({"gpu": "sm_12"}, "no GPU known for architecture"),
        ({"relative_tolerance": -1.0}, "'relative_tolerance'"),
    ],
)
def test_a_bad_value_is_named(given: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput) as caught:
        resolve_settings(**given)
    assert words in str(caught.value)


def test_a_misspelt_setting_in_the_file_is_refused(elsewhere: Path) -> None:
    (elsewhere / "warpsmith.toml").write_text("populatoin = 3\n")
    with pytest.raises(BadInput, match="populatoin"):
        resolve_settings()


def test_an_architecture_may_stand_for_a_gpu() -> None:
    assert resolve_settings(gpu="sm_80").gpu_name == "a100"


def test_a_stored_run_is_continued_under_its_own_settings_and_a_new_budget() -> None:
    stored = resolve_settings(population=3, wall_s=10.0, seed=4).as_text()
    settings = settings_from_run(stored, wall_s=99.0)
    assert (settings.population, settings.wall_s, settings.seed, settings.archive_url) == (3, 99.0, 4, None)


def test_the_policy_changes_its_hash_with_what_changes_a_verdict() -> None:
    assert (
        resolve_settings().policy.content_hash() != resolve_settings(eager_factor=3.0).policy.content_hash()
    )
