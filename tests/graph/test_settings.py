"""Settings: defaults < file < environment < command line, bad values named, and models with a key that stays secret."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agents.allowance import Caps
from agents.endpoint import Casting, Endpoint, Role
from graph.model_settings import ModelSettings
from graph.settings import Settings, resolve_settings, settings_from_run
from memory.errors import BadInput


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """An empty working folder and an environment without our variables."""
    before, variables = Path.cwd(), dict(os.environ)
    os.chdir(tmp_path)
    for name in [n for n in os.environ if n.startswith(("WARPSMITH_", "OPENAI_"))]:
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


def test_a_run_of_a_cluster_can_be_resumed_on_another_or_here() -> None:
    stored = resolve_settings(pool="ray", ray_address="head:6379").as_text()
    assert settings_from_run(stored, pool=None).ray_address == "head:6379"
    assert settings_from_run(stored, ray_address="other:6379").ray_address == "other:6379"
    assert settings_from_run(stored, pool="local").pool == "local"


def test_a_misspelt_setting_in_the_file_is_refused_by_its_name(elsewhere: Path) -> None:
    (elsewhere / "warpsmith.toml").write_text("populatoin = 3\n")
    with pytest.raises(BadInput, match=r"^there is no setting 'populatoin'; did you mean 'population'\?$"):
        resolve_settings()


@pytest.mark.parametrize(
    "line",
    [
        'openai_apikey = "{}"', 'api_key = "{}"', '[openai]\nkey = "{}"', 'openai_api_key = ["{}"]',
        'openai_base_url = ["http://user:{}@host/v1"]',
    ],
)  # fmt: skip
def test_a_key_in_a_wrong_place_is_not_printed(elsewhere: Path, line: str) -> None:
    (elsewhere / "warpsmith.toml").write_text(line.format(KEY) + "\n")
    with pytest.raises(BadInput, match=r"^(there is no )?setting '") as caught:
        resolve_settings()
    assert KEY not in "".join(traceback.format_exception(caught.value))


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


# --- models ---------------------------------------------------------------------------------------------------

KEY = "sk-very-secret"


def with_key(**given: object) -> Settings:
    os.environ["OPENAI_API_KEY"] = KEY
    return resolve_settings(**given)


def endpoint(settings: Settings) -> Endpoint:
    assert settings.endpoint is not None
    return settings.endpoint


def names(casting: Casting) -> list[str]:
    return [choice.name for choice in casting.models]


def test_without_models_the_agents_are_rules() -> None:
    settings = resolve_settings()
    assert settings.endpoint is None and settings.why_rules == "no model configured"
    assert settings.caps == Caps()


def test_a_key_without_models_is_told_how_to_name_them() -> None:
    assert with_key().why_rules == "no model configured; name models with --models or WARPSMITH_MODELS"


@pytest.mark.parametrize("key", [None, ""])
def test_models_without_a_key_need_a_server_that_takes_none(key: str | None) -> None:
    if key is not None:
        os.environ["OPENAI_API_KEY"] = key
    settings = resolve_settings(models="gpt-5")
    assert settings.endpoint is None
    assert settings.why_rules == "no OPENAI_API_KEY, and no OPENAI_BASE_URL of a server that needs none"
    os.environ["OPENAI_BASE_URL"] = "http://localhost:8000/v1"
    local = resolve_settings(models="llama3:8b")
    assert local.why_rules is None
    assert (endpoint(local).api_key, endpoint(local).base_url) == ("none", "http://localhost:8000/v1")


def test_every_role_has_the_ensemble_but_those_that_have_their_own() -> None:
    settings = with_key(
        models="gpt-5:0.6,o4-mini:0.4", coder_models="gpt-5", critic_models="gpt-5-mini", temperature="0.7,compiler:0",
        reasoning_effort="coder:high",
    )  # fmt: skip
    casting = endpoint(settings).casting
    assert set(casting) == set(Role)
    assert {role: names(casting[role]) for role in (Role.CODER, Role.CRITIC, Role.PLANNER)} == {
        Role.CODER: ["gpt-5"],
        Role.CRITIC: ["gpt-5-mini"],
        Role.PLANNER: ["gpt-5", "o4-mini"],
    }
    assert [choice.weight for choice in casting[Role.PROFILER].models] == [0.6, 0.4]
    assert (casting[Role.COMPILER].temperature, casting[Role.CODER].temperature) == (0.0, 0.7)
    assert (casting[Role.CODER].effort, casting[Role.PLANNER].effort) == ("high", None)


def test_a_role_may_be_named_in_the_environment_and_in_the_file(elsewhere: Path) -> None:
    (elsewhere / "warpsmith.toml").write_text('models = "gpt-5"\nplanner_models = "a"\ncoder_models = "b"\n')
    os.environ["WARPSMITH_CODER_MODELS"] = "c"
    casting = endpoint(with_key()).casting
    assert [names(casting[role])[0] for role in (Role.PLANNER, Role.CODER, Role.CRITIC)] == [
        "a",
        "c",
        "gpt-5",
    ]


def test_how_the_endpoint_is_used_comes_from_the_settings() -> None:
    settings = with_key(
        models="m", model_timeout_s=9.0, model_retries=1, retry_after_cap_s=2.0, requests_per_minute=30.0,
        model_parallel=3, max_output_tokens=512, max_tokens=10_000, max_cost_usd=0.5,
    )  # fmt: skip
    found = endpoint(settings)
    assert (found.timeout_s, found.retries, found.retry_after_cap_s) == (9.0, 1, 2.0)
    assert (found.requests_per_minute, found.parallel, found.max_output_tokens) == (30.0, 3, 512)
    assert not found.tracing and settings.caps == Caps(tokens=10_000, cost_usd=0.5)


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OPENAI_API_BASE"])
def test_the_servers_address_has_two_names_and_an_empty_one_is_none(variable: str) -> None:
    os.environ[variable] = "http://gpu-box/v1"
    assert endpoint(with_key(models="m")).base_url == "http://gpu-box/v1"
    os.environ[variable] = ""
    assert endpoint(with_key(models="m")).base_url is None


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"models": "gpt-5:0"}, "'gpt-5:0' is no model with a weight above 0"),
        ({"models": "m", "coder_models": "a,,b"}, "models 'a,,b': '' is no model"),
        ({"models": "m", "temperature": "hot"}, "temperature 'hot' is not a number from 0 to 2"),
        ({"models": "m", "temperature": "chief:1"}, "'chief:1' in 'chief:1' names no role"),
        ({"models": "m", "reasoning_effort": "coder:most"}, "reasoning effort 'most' is none of"),
        ({"models": "m", "prices": "nowhere.json"}, "cannot read the price list nowhere.json"),
        ({"max_cost_usd": 0}, "'max_cost_usd'"),
        ({"max_tokens": -1}, "'max_tokens'"),
        ({"model_retries": 99}, "'model_retries'"),
    ],
)
def test_a_bad_text_is_named_with_and_without_a_key(
    key: str | None, given: dict[str, object], words: str
) -> None:
    if key is not None:
        os.environ["OPENAI_API_KEY"] = key
    with pytest.raises(BadInput) as caught:
        resolve_settings(**given)
    assert words in str(caught.value) and KEY not in str(caught.value)


def test_the_key_is_neither_printed_nor_stored() -> None:
    settings = with_key(models="gpt-5")
    assert endpoint(settings).api_key == KEY
    printed = (
        f"{settings!r} {settings} {settings.as_text()} {settings.model_dump_json()} {settings.endpoint!r}"
    )
    assert KEY not in printed
    assert not {"openai_api_key", "openai_base_url"} & set(settings.as_text())


def test_the_key_in_the_file_is_a_secret_too(elsewhere: Path) -> None:
    (elsewhere / "warpsmith.toml").write_text(f'models = "m"\nopenai_api_key = "{KEY}"\n')
    settings = resolve_settings()
    assert endpoint(settings).api_key == KEY and KEY not in f"{settings!r} {settings.as_text()}"


def test_a_stored_run_is_continued_with_its_models_and_the_key_of_now() -> None:
    given = {
        "models": "gpt-5:0.6,o4-mini:0.4", "coder_models": "gpt-5", "temperature": "0.7,compiler:0",
        "reasoning_effort": "low", "max_tokens": 1000, "requests_per_minute": 30.0, "model_parallel": 2,
    }  # fmt: skip
    first = with_key(**given)
    os.environ.update(OPENAI_API_KEY="sk-new", OPENAI_BASE_URL="http://other/v1", WARPSMITH_MODELS="another")
    resumed = settings_from_run(first.as_text())
    assert endpoint(resumed) == replace(endpoint(first), api_key="sk-new", base_url="http://other/v1")
    assert resumed.caps == first.caps == Caps(tokens=1000)
    assert resumed.as_text() == first.as_text()


def test_a_stored_run_may_be_continued_with_a_larger_cap() -> None:
    stored = with_key(models="m", max_cost_usd=1.0).as_text()
    assert settings_from_run(stored, max_cost_usd=5.0).caps == Caps(cost_usd=5.0)
    assert settings_from_run(stored).caps == Caps(cost_usd=1.0)


def test_a_stored_run_without_a_key_goes_on_by_rules() -> None:
    stored = with_key(models="gpt-5").as_text()
    del os.environ["OPENAI_API_KEY"]
    resumed = settings_from_run(stored)
    assert resumed.endpoint is None and "no OPENAI_API_KEY" in (resumed.why_rules or "")


def test_a_run_stored_before_there_were_models_is_continued_by_rules() -> None:
    stored = resolve_settings(seed=4).as_text()
    model_fields = set(ModelSettings.model_fields)
    older = {name: value for name, value in stored.items() if name not in model_fields}
    assert settings_from_run(older) == resolve_settings(seed=4)


def test_prices_of_the_operators_own_are_read(elsewhere: Path) -> None:
    (elsewhere / "prices.json").write_text(
        '{"date": "2026-01-01", "source": "ours", "models": {"m": {"input": 1, "output": 2}}}'
    )
    settings = with_key(models="m", prices="prices.json")
    assert settings.price_list.cost_usd("m", 1_000_000, 0) == 1.0
    assert settings_from_run(settings.as_text()).price_list == settings.price_list
