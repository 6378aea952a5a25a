"""The page of the archive: search, filters, comparison, and a run that begins with an innovation."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from streamlit.testing.v1 import AppTest

from graph.pasted import keep_module
from graph.session import capture_target
from memory.archive import Archive
from memory.archive_entry import innovation_id
from memory.embedding import HashEmbedder
from memory.errors import BadInput
from memory.records import Innovation
from memory.store import Store
from tests.memory import made
from tests.problems import module_text, scaled_relu_problem, scaled_relu_program
from tests.ui.conftest import ShowPage
from tests.ui.filled import HOSTILE, settings_at

GELU = made.innovation(made.problem("aten.gelu.default"), idea="fast tanh by exponent", arch="sm_80")
RELU = made.innovation(scaled_relu_problem(), idea=HOSTILE, best_us=5.0).model_copy(
    update={"program": scaled_relu_program()}
)


def keep(home: Path, *innovations: Innovation) -> None:
    with Archive.open(home / "archive", HashEmbedder()) as archive:
        archive.add_all(innovations)


def problems_of(shown: AppTest) -> list[str]:
    return [str(idea) for idea in shown.dataframe[0].value["idea"]]


def test_an_empty_archive_says_how_it_fills(show: ShowPage) -> None:
    assert "The archive is empty." in show("archive").info[0].value


def test_words_find_and_filters_narrow(home: Path, show: ShowPage) -> None:
    keep(home, GELU, RELU)
    assert len(problems_of(show("archive"))) == 2
    shown = show("archive", text="tanh exponent")
    assert not shown.exception and problems_of(shown)[0] == GELU.idea
    assert problems_of(show("archive", arch="sm_80")) == [GELU.idea]
    assert problems_of(show("archive", operation="relu")) == [RELU.idea]
    nothing = show("archive", operation="relu", time="measured")
    assert "Nothing fits." in nothing.info[0].value


def test_one_is_shown_with_where_it_comes_from_and_how_to_seed_a_run_with_it(
    home: Path, show: ShowPage
) -> None:
    keep(home, GELU, RELU)
    found = innovation_id(RELU)
    shown = show("archive", id=found[:12])
    facts = {row[""]: row["value"] for row in shown.dataframe[1].value.to_dict("records")}
    assert facts["run"] == "run-1" and facts["verified by"] == "trials, 20 random trials"
    assert facts["speedup over eager"] == "20.00× (modelled)"
    assert f"warpsmith optimize module.py --seed-with {found[:12]}" in [block.value for block in shown.code]


def test_two_are_compared(home: Path, show: ShowPage) -> None:
    keep(home, GELU, RELU)
    first, second = innovation_id(GELU)[:12], innovation_id(RELU)[:12]
    shown = show("archive", **{"id": first, "with": second})
    rows = {row[""]: (row[first], row[second]) for row in shown.dataframe[1].value.to_dict("records")}
    assert rows["architecture"] == ("sm_80", "sm_90a")
    assert any(block.value.startswith(f"--- {first}\n+++ {second}") for block in shown.code)


def test_a_module_finds_its_like_and_its_hash_is_enough(home: Path, show: ShowPage) -> None:
    keep(home, GELU, RELU)
    with Store(home / "store.db") as store:
        digest = store.put_pair(scaled_relu_problem(), None)
    shown = show("archive", problem=digest)
    assert any("Like the module scaled_relu" in text.value for text in shown.text)
    assert problems_of(shown)[0] == RELU.idea


def test_a_pasted_module_is_kept_as_a_file_and_captured_elsewhere(tmp_path: Path) -> None:
    settings = settings_at(tmp_path / "home")
    code = module_text(8, 16).replace("class Model", "class Scaled")
    target = keep_module(code.replace("import torch\n", "", 1), settings)
    assert target.class_name == "Scaled" and Path(target.path).is_relative_to(tmp_path / "home" / "modules")
    assert capture_target(target, settings).problem.graph.values["x"].shape == (8, 16)
    with pytest.raises(BadInput, match="no code"):
        keep_module(" ", settings)
    two = f"{code}\nclass Other(nn.Module):\n    pass\n"
    with pytest.raises(BadInput, match="several modules"):
        keep_module(two, settings)


def test_in_a_browser_a_run_is_started_with_a_seed(
    tmp_path: Path, serve: Callable[..., str], browser: Browser
) -> None:
    home = tmp_path / "home"
    keep(home, GELU, RELU)
    small = dict.fromkeys(("GENERATIONS", "POPULATION", "WORKERS", "SOAK_TRIALS"), "1")
    url = serve(home, **{f"WARPSMITH_{name}": value for name, value in small.items()})
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    asked, faults = set[str](), list[str]()
    page.on("request", lambda request: asked.add(request.url.split("/")[2]))
    page.on("pageerror", lambda error: faults.append(error.message))
    page.goto(f"{url}/archive?id={innovation_id(RELU)[:12]}")
    expect(page.get_by_role("heading", name="Use as a seed")).to_be_visible(timeout=90_000)
    expect(page.get_by_text("![x](http://evil.example/a.png)", exact=False).first).to_be_visible()
    form = page.get_by_test_id("stForm").last
    form.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(
        {"name": "scaled.py", "mimeType": "text/x-python", "buffer": module_text(33, 40).encode()}
    )
    expect(form.get_by_text("scaled.py")).to_be_visible()
    form.get_by_role("button", name="Start a run with it").click()
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible(timeout=90_000)
    with Store(home / "store.db") as store:
        run = store.runs()[0]
    assert run.settings["seeds"] == innovation_id(RELU) and f"run={run.id}" in page.url
    assert asked <= {url.split("/")[2], ""} and not faults
    _wait_for_first_candidate(home, run.id)


def _wait_for_first_candidate(home: Path, run_id: str) -> None:
    with Store(home / "store.db") as store:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and store.newest_candidate(run_id) is None:
            time.sleep(0.2)
        first = store.candidates(run_id)[0]
    assert first.origin.kind == "archive" and first.origin.detail == innovation_id(RELU)
