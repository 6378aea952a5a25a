"""The page of reviews: what waits, on what evidence, and what each word on it does to the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, expect
from streamlit.testing.v1 import AppTest

from agents.schemas import short_id
from graph.session import find_summary, waiting_runs
from graph.summary import IN_REVIEW
from memory.events import Verdict
from tests.graph.test_search import Search, captured, search
from tests.ui.conftest import ShowPage
from tools.problem import Captured

__all__ = ["captured"]

WITHIN_S = 60.0


@contextmanager
def waiting(home: Path, captured: Captured) -> Iterator[tuple[Search, str]]:
    """A run whose winner waits for a person's word, and that winner."""
    with search(home, captured, generations=2, review=True) as s:
        winner = s.go().waits_for_review
        assert winner is not None
        yield s, winner


def until_settled(s: Search) -> str:
    """The run's status once nobody works on it any more."""
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        status = find_summary(s.store.run(s.run.id), s.store, s.settings).status
        if status not in ("running", "interrupted", IN_REVIEW):
            return status
        time.sleep(0.2)
    raise AssertionError(f"the run is still {status}")


def button(shown: AppTest, label: str) -> AppTest:
    """The page after a click."""
    return next(one for one in shown.button if one.label == label).click().run()


def test_where_nothing_waits_the_page_says_how_to_ask_for_it(show: ShowPage) -> None:
    assert "--review" in show("review").info[0].value


def test_a_winner_waits_with_its_evidence(home: Path, show: ShowPage, captured: Captured) -> None:
    with waiting(home, captured) as (s, winner):
        shown = show("review")
        assert not shown.exception
        assert shown.selectbox[0].options == [s.run.id]
        said = "\n".join(
            str(item.value) for kind in ("markdown", "subheader") for item in getattr(shown, kind)
        )
        assert "float64 oracle" in said and "its time on a real GPU" in said
        assert "passed 2 further random trials" in said and "that only a winner goes through" not in said
        assert f"Candidate {short_id(winner)}" in said


def test_an_approved_winner_is_archived_and_exported_by_another_process(
    home: Path, show: ShowPage, captured: Captured
) -> None:
    with waiting(home, captured) as (s, winner):
        shown = show("review")
        shown.text_area[0].set_value("reads  well\nto me")
        shown = button(shown, "Approve")
        assert "is approved" in shown.success[0].value
        assert until_settled(s) == "improved"
        assert s.store.run(s.run.id).best_candidate == winner
        (review,) = s.store.reviews(winner)
        assert (review.verdict, review.note) == (Verdict.APPROVED, "reads well to me")
        assert not waiting_runs(s.store, s.settings)
        after = show("review")
        assert after.dataframe[-1].value.to_dict("records")[0]["word"] == "approved"


def test_a_second_word_on_the_same_winner_is_refused_in_a_sentence(
    home: Path, show: ShowPage, captured: Captured
) -> None:
    with waiting(home, captured) as (s, _):
        first, second = show("review"), show("review")
        button(first, "Approve")
        shown = button(second, "Reject")
        assert not shown.exception
        assert until_settled(s) == "improved"


def test_an_ended_run_can_be_rolled_back_to_an_earlier_winner(
    home: Path, show: ShowPage, captured: Captured
) -> None:
    with search(home, captured, generations=2) as s:
        s.go()
        winner = s.store.run(s.run.id).best_candidate
        assert winner is not None
        shown = show("review", run=s.run.id)
        offered = next(box for box in shown.selectbox if box.label == "Candidate").options
        assert offered and not any(option.startswith(short_id(winner)) for option in offered)


def test_a_run_that_does_not_wait_says_so(home: Path, show: ShowPage, captured: Captured) -> None:
    with search(home, captured, generations=2, review=True) as s:
        assert "does not wait for review (interrupted)" in show("review", run=s.run.id).info[0].value


def test_a_winner_is_approved_in_a_browser(
    home: Path, captured: Captured, serve: Callable[..., str], browser: Browser
) -> None:
    with waiting(home, captured) as (s, winner):
        page = browser.new_page()
        page.goto(f"{serve(home)}/review?run={s.run.id}")
        expect(page.get_by_role("heading", name=f"Candidate {short_id(winner)}")).to_be_visible(
            timeout=20_000
        )
        # A click amid the page's first drawing would go to a form that is about to be replaced.
        expect(page.get_by_test_id("stApp")).to_have_attribute(
            "data-test-script-state", "notRunning", timeout=20_000
        )
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_text("is approved")).to_be_visible(timeout=20_000)
        assert until_settled(s) == "improved"
