"""The page of runs: the list, one run at rest and at work, its controls, and how quick it is with many candidates."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from streamlit.testing.v1 import AppTest

from agents.schemas import short_id
from graph.runner import Runner
from graph.session import start_run
from graph.settings import resolve_settings
from memory.events import Verdict
from memory.records import RunStatus
from memory.store import Store
from tests.problems import module_text
from tests.ui.conftest import ShowPage
from tests.ui.crowded import bystanders, crowd
from tools.problem import parse_target
from ui.pages.runs import LISTED, age

MANY = 3_000
HOSTILE = "![x](http://evil.example/a.png) <b>bold</b> $x$ :material/home:"


def said(shown: AppTest, *kinds: str) -> str:
    """All that the page says in elements of these kinds."""
    return "\n".join(str(item.value) for kind in kinds for item in getattr(shown, kind))


def press(shown: AppTest, label: str) -> AppTest:
    return next(button for button in shown.button if button.label == label).click().run()


def table(shown: AppTest) -> list[dict[str, object]]:
    """The rows of candidates."""
    found: list[dict[str, object]] = shown.dataframe[0].value.to_dict("records")
    return found


def test_without_a_run_the_page_says_how_to_start_one(show: ShowPage) -> None:
    assert "Start one in the chat" in show("runs").info[0].value


def test_the_list_is_paged_newest_first(home: Path, show: ShowPage) -> None:
    bystanders(home, LISTED + 3)
    first, second = show("runs"), show("runs", page="2")
    assert len(first.caption) == LISTED + 1
    assert len(second.caption) == 3 + 1
    assert f"page 1 of 2, {LISTED + 3} runs" in said(first, "caption")
    assert "no page 9" in show("runs", page="9").info[0].value
    assert not show("runs", page="-1x").exception


def test_a_name_that_no_run_has_is_a_sentence(home: Path, show: ShowPage) -> None:
    crowd(home, 1)
    shown = show("runs", run="nothing")
    assert not shown.exception
    assert "no run has an id" in shown.error[0].value.lower()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(5, "less than a minute ago"), (60, "1 minute ago"), (7_300, "2 hours ago"), (90_000, "1 day ago")],
)
def test_an_age_is_in_the_largest_unit_that_fits(seconds: float, words: str) -> None:
    now = datetime.now(UTC)
    assert age((now - timedelta(seconds=seconds)).isoformat(), now) == words


def test_a_run_at_rest_shows_its_numbers_plots_and_controls(home: Path, show: ShowPage) -> None:
    run = crowd(home, 30, per_generation=10)
    shown = show("runs", run=run.id)
    assert not shown.exception
    numbers = {metric.label: metric.value for metric in shown.metric}
    assert numbers["Judged"] == "30"
    assert numbers["Speedup (modelled)"] == "1.00×"
    assert "Wall time" in said(shown, "markdown") and "0 s of 900 s" in said(shown, "markdown")
    assert len(shown.get("vega_lite_chart")) == 4
    assert [button.label for button in shown.button] == ["Resume", "Give", "Pin", "Kill", "Release"]
    assert len(table(shown)) == 25


def test_a_run_without_candidates_says_what_comes(home: Path, show: ShowPage) -> None:
    (run,) = bystanders(home, 1)
    shown = show("runs", run=run.id)
    assert not shown.exception
    assert "Plots appear with the first generation." in said(shown, "info")


def test_an_ended_run_has_no_controls_and_says_why_it_has_no_winner(home: Path, show: ShowPage) -> None:
    run = crowd(home, 10)
    with closing(Store(home / "store.db")) as store:
        store.update_run(run.id, status=RunStatus.NOT_IMPROVED, best_candidate=None)
    shown = show("runs", run=run.id)
    assert not shown.button
    assert "No winner" in said(shown, "info") and "includes 1" in said(shown, "info")


def test_what_a_process_said_last_is_shown_as_it_is(home: Path, show: ShowPage) -> None:
    run = crowd(home, 1, idea=HOSTILE)
    log = Runner(resolve_settings(home=home, device="simulator")).log_path(run.id)
    log.parent.mkdir(parents=True)
    log.write_text(f"\n--- now warpsmith resume\nthe disk is full {HOSTILE}\n")
    shown = show("runs", run=run.id)
    assert shown.code[0].value == f"the disk is full {HOSTILE}"
    assert HOSTILE not in said(shown, "markdown", "caption")
    assert table(shown)[0]["idea"] == HOSTILE


def test_candidates_are_filtered_ordered_and_paged(home: Path, show: ShowPage) -> None:
    run = crowd(home, 60, per_generation=20)
    shown = show("runs", run=run.id)
    assert table(shown)[0]["candidate"] == short_id(f"{run.id}-002-00059")
    shown.number_input(key="candidates page").set_value(3).run()
    assert len(table(shown)) == 10
    shown = next(b for b in shown.selectbox if b.label == "Verdict").set_value("incorrect").run()
    assert [row["verdict"] for row in table(shown)] == ["incorrect"] * 6, "from the first page on"
    shown = next(b for b in shown.selectbox if b.label == "Verdict").set_value("suspicious").run()
    assert "No candidate fits." in said(shown, "info")
    shown = next(b for b in shown.selectbox if b.label == "Verdict").set_value("any verdict").run()
    shown = next(b for b in shown.selectbox if b.label == "Order").set_value("fastest first").run()
    times = [row["µs"] for row in table(shown)]
    assert times == sorted(times, key=lambda us: float(str(us)))
    shown = next(b for b in shown.number_input if b.label == "Generation").set_value(1).run()
    assert {row["generation"] for row in table(shown)} == {1}


def test_a_candidate_is_pinned_with_a_note_and_one_that_failed_is_not(home: Path, show: ShowPage) -> None:
    run = crowd(home, 10)
    shown = show("runs", run=run.id)
    failed, passed = (str(row["candidate"]) for row in table(shown)[:2])
    shown = press(shown, "Pin")
    assert "did not pass" in shown.error[0].value
    shown = next(b for b in shown.selectbox if b.label == "One of these").set_value(passed).run()
    shown.text_input(key="mark note").set_value("readable")
    shown = press(shown, "Pin")
    assert "stays in the population" in shown.success[0].value
    with closing(Store(home / "store.db")) as store:
        (review,) = store.reviews(f"{run.id}-{passed}")
        assert (review.verdict, review.note) == (Verdict.PINNED, "readable")
        assert not store.reviews(f"{run.id}-{failed}")


def test_a_hint_is_kept_and_what_becomes_of_it_is_said(home: Path, show: ShowPage) -> None:
    run = crowd(home, 1)
    shown = show("runs", run=run.id)
    assert "rules, which read none" in next(t for t in shown.text_input if "hint" in t.label).label
    shown = press(shown, "Give")
    assert "empty" in shown.error[0].value
    next(t for t in shown.text_input if "hint" in t.label).set_value("use  shared memory")
    shown = press(shown, "Give")
    assert "do not read hints" in shown.success[0].value
    with closing(Store(home / "store.db")) as store:
        assert store.hints(run.id) == ["use shared memory"]


def test_a_run_is_resumed_under_new_limits_watched_and_stopped(
    home: Path, tmp_path: Path, serve: Callable[..., str], browser: Browser
) -> None:
    (tmp_path / "scaled.py").write_text(module_text(64, 48))
    settings = resolve_settings(
        home=home, export_dir=tmp_path / "out", device="simulator", workers=1, population=2, patience=99
    )
    with closing(Store(home / "store.db")) as store:
        run = start_run(parse_target(str(tmp_path / "scaled.py")), settings, store, lambda _: None)
        page = browser.new_page()
        page.goto(f"{serve(home)}/runs?run={run.id}")
        page.get_by_label("Generations").fill("500")
        page.get_by_label("Generations").press("Tab")
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_text("takes it up")).to_be_visible(timeout=20_000)
        # The page goes on by itself: what is judged shows without a reload.
        expect(page.get_by_text("GiB of this machine")).to_be_visible(timeout=30_000)
        expect(page.get_by_text("of 500", exact=False).first).to_be_visible(timeout=30_000)
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_text("Stopped; nothing is lost")).to_be_visible(timeout=30_000)
        expect(page.get_by_text("interrupted", exact=True)).to_be_visible(timeout=20_000)
        assert Runner(settings).worker(run.id) is None
        assert store.run(run.id).status is RunStatus.RUNNING
        assert store.count_candidates(run.id) > 0


def test_the_page_is_quick_with_many_candidates(home: Path, show: ShowPage) -> None:
    run = crowd(home, MANY)
    show("runs", run=run.id)
    again = time.thread_time()
    shown = show("runs", run=run.id)
    seconds = time.thread_time() - again
    assert not shown.exception
    assert len(table(shown)) == 25
    # Measured: 0.4 s; with all records loaded several seconds.
    assert seconds < 2.0
