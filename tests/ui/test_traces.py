"""The page of traces: order, filters, pages, and a failed step that explains itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, expect
from streamlit.testing.v1 import AppTest

from tests.ui.conftest import ShowPage
from tests.ui.filled import HOSTILE, fill, many
from ui.markdown import blocks


def _decisions(shown: AppTest) -> list[str]:
    return list(shown.dataframe[0].value["decision"])


def _texts(shown: AppTest) -> str:
    kinds = ("text", "caption", "markdown", "warning", "info")
    return "\n".join(str(item.value) for kind in kinds for item in getattr(shown, kind))


def test_an_empty_home_says_how_to_start(show: ShowPage) -> None:
    assert "There is no run yet." in show("traces").info[0].value


def test_steps_are_in_order_with_the_sums_above(home: Path, show: ShowPage) -> None:
    run = fill(home)
    shown = show("traces", run=run.id)
    assert not shown.exception
    assert _decisions(shown)[0] == "2 proposals for generation 0"
    numbers = {metric.label: metric.value for metric in shown.metric}
    assert numbers["Steps"] == "8" and numbers["Model calls"] == "3"
    assert numbers["Tokens in"] == "2,000" and numbers["Cost"] == "$0.0300"


def test_filters_are_in_the_url_and_the_database_applies_them(home: Path, show: ShowPage) -> None:
    run = fill(home)
    assert len(_decisions(show("traces", run=run.id, role="compiler"))) == 1
    assert len(_decisions(show("traces", run=run.id, candidate="001-001"))) == 3
    assert _decisions(show("traces", run=run.id, text="EVIL.example")) == [
        "an answer that does not fit; asked again"
    ]
    failed = _decisions(show("traces", run=run.id, failed="1"))
    assert len(failed) == 4 and failed[-1].startswith("no program for")
    shown = show("traces", run=run.id, text="100%")
    assert "No step fits these filters." in shown.info[0].value
    shown.text_input[1].set_value("").run()
    assert len(_decisions(shown)) == 8 and "text" not in shown.query_params


def test_a_misfit_says_what_did_not_fit_and_that_the_model_was_asked_again(
    home: Path, show: ShowPage
) -> None:
    run = fill(home)
    shown = show("traces", run=run.id, step="0003")
    said = _texts(shown)
    assert "gpt-5 gave an answer that does not fit: the answer has no ```cuda block." in said
    assert "gpt-5 was asked again, and answered: wrote 1 kernel with 1 tunables: wider loads." in said


def test_a_refused_program_shows_its_diagnostics_and_the_repair(home: Path, show: ShowPage) -> None:
    run = fill(home)
    said = _texts(show("traces", run=run.id, step="0004"))
    assert "refused (incorrect, stage correctness): output relu is off by 1 at (0, 3)." in said
    assert "1 repair was made (mind the sign), and 001-001-r1 passed." in said


def test_a_silent_model_says_that_the_proposal_was_dropped(home: Path, show: ShowPage) -> None:
    run = fill(home)
    said = _texts(show("traces", run=run.id, step="0006"))
    assert "gpt-5 gave no answer: gpt-5: the endpoint did not answer." in said
    assert "No program was written: the proposal was dropped" in said


def test_a_long_run_is_paged(home: Path, show: ShowPage) -> None:
    run = fill(home)
    many(run, home, 120)
    shown = show("traces", run=run.id)
    assert len(_decisions(shown)) == 50 and "Page 1 of 3" in _texts(shown)
    next(button for button in shown.button if button.label == "Later").click().run()
    assert len(_decisions(shown)) == 50 and "Page 2 of 3" in _texts(shown)
    assert len(_decisions(show("traces", run=run.id, page="3"))) == 28
    assert "Page 3 of 3" in _texts(show("traces", run=run.id, page="99999999"))


def test_blocks_of_code_are_told_from_prose_even_where_they_are_not_closed() -> None:
    assert [b for b in blocks("a\n```cuda\nx\n```\nb") if b[1]] == [(None, "a"), ("cpp", "x"), (None, "b")]
    assert [b for b in blocks("```json\n{") if b[1]] == [("json", "{")]


def test_a_reply_is_rendered_without_asking_another_host(
    tmp_path: Path, serve: Callable[..., str], browser: Browser
) -> None:
    home = tmp_path / "home"
    run = fill(home)
    url = serve(home)
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    asked, faults = set[str](), list[str]()
    page.on("request", lambda request: asked.add(request.url.split("/")[2]))
    page.on("pageerror", lambda error: faults.append(error.message))
    page.goto(f"{url}/traces?run={run.id}&step=0003")
    expect(page.get_by_text("Why it failed")).to_be_visible(timeout=90_000)
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text("<b>bold</b> $x$")
    assert HOSTILE in main.inner_text().replace("\u2060", "")
    assert main.locator("img, a[href*='evil']").count() == 0
    page.get_by_text("Raw text").click()
    expect(page.get_by_test_id("stCode").first).to_contain_text("evil.example")
    assert asked <= {url.split("/")[2], ""} and not faults
