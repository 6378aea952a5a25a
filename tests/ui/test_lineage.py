"""The page of a family: who is drawn, how one is chosen, and what is said of a candidate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect
from streamlit.testing.v1 import AppTest

from tests.ui.conftest import ShowPage
from tests.ui.filled import HOSTILE, fill


def _texts(shown: AppTest) -> str:
    kinds = ("text", "caption", "markdown", "subheader", "error", "success", "warning", "info")
    return "\n".join(str(item.value) for kind in kinds for item in getattr(shown, kind))


def test_an_empty_home_says_how_to_start(show: ShowPage) -> None:
    assert "There is no run yet." in show("lineage").info[0].value


def test_the_fastest_is_shown_where_none_is_named(home: Path, show: ShowPage) -> None:
    fill(home)
    shown = show("lineage")
    assert not shown.exception
    said = _texts(shown)
    assert "Candidate 001-000" in said and "1 ancestor and 0 children" in said
    assert [metric.value for metric in shown.metric][:2] == ["20.00 µs", "5.00×"]
    assert "Time (modelled)" in [metric.label for metric in shown.metric]


def test_a_tuned_child_shows_the_tunable_and_an_equal_source(home: Path, show: ShowPage) -> None:
    run = fill(home)
    shown = show("lineage", run=run.id, candidate="001-000")
    changed = [table.value for table in shown.dataframe if "tunable" in table.value.columns]
    assert changed[0].to_dict("records") == [{"tunable": "BLOCK", "before": "128", "after": "64"}]
    assert "The source is the same." in _texts(shown)


def test_a_failed_candidate_shows_its_diagnostics_its_diff_and_its_errors(home: Path, show: ShowPage) -> None:
    run = fill(home)
    shown = show("lineage", run=run.id, candidate="001-001")
    said = _texts(shown)
    assert "It failed at the stage correctness." in said and "off by 1 at (0, 3)" in said
    code = [block.value for block in shown.code]
    assert "y[i] = 1.0f;" in code
    assert any("-    y[i] = v < 0.0f ? 0.0f : v;" in block for block in code)
    errors = next(
        table.value
        for table in shown.dataframe
        if "distribution" in str(table.value) or "allowed" in table.value
    )
    assert list(errors["passed"]) == ["no"]
    assert "only a candidate that passed is timed" in said


def test_an_unknown_candidate_is_said_and_the_fastest_shown(home: Path, show: ShowPage) -> None:
    run = fill(home)
    shown = show("lineage", run=run.id, candidate="009-009")
    assert "no candidate '009-009'" in shown.warning[0].value
    assert "Candidate 001-000" in _texts(shown)


def test_another_candidate_can_be_asked_for_by_its_short_id(home: Path, show: ShowPage) -> None:
    run = fill(home)
    shown = show("lineage", run=run.id)
    shown.text_input[0].set_value("001-001-r1")
    next(button for button in shown.button if button.label == "Show it").click().run()
    assert "Candidate 001-001-r1" in _texts(shown)
    assert "2 ancestors" in _texts(shown)


def _find(page: Page, candidate: str, tree: Locator) -> None:
    """Move the mouse over the tree until its tooltip names the candidate: the browser decides where marks stand."""
    read = "document.querySelector('#vg-tooltip-element.visible')?.innerText ?? ''"
    box = tree.bounding_box()
    assert box is not None
    # Two layers: the parent's is the left one, about a quarter across.
    for across in sorted(range(8, int(box["width"]), 8), key=lambda x: abs(x - box["width"] / 4)):
        for down in range(20, int(box["height"]), 8):
            page.mouse.move(box["x"] + across, box["y"] + down)
            if candidate in str(page.evaluate(read)).split():
                return
    raise AssertionError(f"no mark of the tree says {candidate}")


def test_a_click_on_the_tree_opens_that_candidate_and_nothing_of_an_idea_is_rendered(
    tmp_path: Path, serve: Callable[..., str], browser: Browser
) -> None:
    home = tmp_path / "home"
    run = fill(home, idea=HOSTILE)
    url = serve(home)
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    asked, faults = set[str](), list[str]()
    page.on("request", lambda request: asked.add(request.url.split("/")[2]))
    page.on("pageerror", lambda error: faults.append(error.message))
    page.goto(f"{url}/lineage?run={run.id}&candidate=001-000")
    expect(page.get_by_role("heading", name="Candidate 001-000")).to_be_visible(timeout=90_000)
    tree = page.get_by_test_id("stVegaLiteChart").first.locator("canvas, svg").first
    expect(tree).to_be_visible()
    _find(page, "000-000", tree)
    page.mouse.down()
    page.mouse.up()
    expect(page.get_by_role("heading", name="Candidate 000-000")).to_be_visible(timeout=30_000)
    assert "candidate=000-000" in page.url
    expect(page.get_by_text("![x](http://evil.example/a.png)", exact=False).first).to_be_visible()
    assert asked <= {url.split("/")[2], ""} and not faults
