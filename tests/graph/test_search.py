"""Whole searches on made-up verdicts: rolled back, overseen by a person, repeated, stopped. Only a device is absent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agents.schemas import Move, short_id
from benchmarks.scale.measure import MODULE
from benchmarks.scale.synthetic import SyntheticPool
from graph.build import build_graph, open_saver, open_store
from graph.lineage import lineage
from graph.oversight import mark
from graph.progress import GenerationClosed, Progress
from graph.session import Outcome, capture_target, continue_run, record_run, resume_run, roll_back
from graph.settings import Settings, resolve_settings
from memory.errors import BadInput
from memory.events import Verdict
from memory.records import Candidate, Run, RunStatus
from memory.store import Store
from tools.problem import Captured
from tools.target import parse_target
from tools.worker import EvaluationJob

POPULATION = 8


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    """The scale benchmark's module."""
    settings = resolve_settings(home=tmp_path_factory.mktemp("home"), device="simulator")
    return capture_target(parse_target(str(MODULE)), settings)


@dataclass
class Search:
    """One run in a home of its own."""

    store: Store
    run: Run
    settings: Settings
    closed: list[GenerationClosed] = field(default_factory=list)

    def go(
        self,
        fails: Callable[[EvaluationJob], bool] = lambda _: False,
        *,
        tell: Callable[[Progress], None] = lambda _: None,
        resume: dict[str, str] | None = None,
    ) -> Outcome:
        """To its end, or to a review."""

        def hear(event: Progress) -> None:
            if isinstance(event, GenerationClosed):
                self.closed.append(event)
            tell(event)

        pool = SyntheticPool(self.settings.device_spec.name, fails)
        return continue_run(self.run, self.store, self.settings, hear, answer=resume, pool=pool)

    @property
    def candidates(self) -> list[Candidate]:
        return self.store.candidates(self.run.id)

    def of_generation(self, number: int) -> list[Candidate]:
        return [c for c in self.candidates if c.generation == number]

    @property
    def state(self) -> dict[str, Any]:
        """As the last checkpoint has it."""
        with open_saver(self.settings) as saver:
            return dict(build_graph(saver).get_state({"configurable": {"thread_id": self.run.id}}).values)


@contextmanager
def search(home: Path, captured: Captured, **given: object) -> Iterator[Search]:
    """A run that has not begun."""
    settings = resolve_settings(
        **{
            "home": home,
            "export_dir": home / "out",
            "device": "simulator",
            "population": POPULATION,
            "generations": 4,
            "patience": 9,
            "soak_trials": 2,
            "floor_target": 1.0,
            **given,
        }
    )
    with open_store(settings) as store:
        yield Search(store, record_run(captured, settings, store), settings)


def failing(generations: set[int]) -> Callable[[EvaluationJob], bool]:
    """Every program of these generations fails, counted by how many were judged before."""
    judged = 0

    def fails(_: EvaluationJob) -> bool:
        nonlocal judged
        judged += 1
        return (judged - 1) // POPULATION in generations

    return fails


# --- rollback ---------------------------------------------------------------------------------------------------------


def test_a_bad_generation_leads_back_to_the_last_good_one_and_to_small_steps(
    tmp_path: Path, captured: Captured
) -> None:
    with search(tmp_path, captured) as s:
        outcome = s.go(failing({1}))
        first = {c.id for c in s.of_generation(0)}
        gentle = s.of_generation(2)
        assert gentle and all(c.parents and set(c.parents) <= first for c in gentle)
        assert all(c.origin.detail.startswith(Move.TUNE.value) for c in gentle)
        assert all(len(c.origin.detail.split(", ")) == 1 for c in gentle), "one tunable, one step"
        assert any("back to the last good generation" in e.decision for e in s.store.events(s.run.id))
        assert s.of_generation(3) and outcome.summary.status == RunStatus.IMPROVED.value


def test_a_gentle_generation_that_fails_too_ends_with_pytorch_and_says_so(
    tmp_path: Path, captured: Captured
) -> None:
    with search(tmp_path, captured) as s:
        summary = s.go(failing({1, 2, 3})).summary
        assert {c.generation for c in s.candidates} == {0, 1, 2}
        assert (summary.status, summary.export_path) == (RunStatus.NOT_IMPROVED.value, None)
        assert summary.why_not is not None
        assert "a gentle generation failed too" in summary.why_not and "PyTorch" in summary.why_not
        assert s.closed[-1].stop in summary.why_not


def test_the_best_of_the_last_good_generation_results_where_the_settings_say_so(
    tmp_path: Path, captured: Captured
) -> None:
    with search(tmp_path, captured, fallback="best") as s:
        summary = s.go(failing({1, 2, 3})).summary
        assert summary.status == RunStatus.IMPROVED.value
        assert s.store.run(s.run.id).best_candidate in {c.id for c in s.of_generation(0)}


# --- people -----------------------------------------------------------------------------------------------------------


def test_a_killed_candidate_neither_breeds_nor_wins_and_a_pinned_one_stays(
    tmp_path: Path, captured: Captured
) -> None:
    said: list[str] = []

    with search(tmp_path, captured, population=4, generations=5) as s:

        def oversee(event: Progress) -> None:
            if isinstance(event, GenerationClosed) and event.generation == 0:
                rows = [r for r in s.store.evaluated(s.run.id) if r.evaluation and r.evaluation.timing]
                rows.sort(key=lambda r: r.evaluation.timing.median_us)  # type: ignore[union-attr]
                said.extend((rows[0].candidate.id, rows[-1].candidate.id))
                assert "neither breeds nor wins" in mark(
                    s.run, short_id(said[0]), Verdict.KILLED, s.store, note="unreadable"
                )
                assert "stays" in mark(s.run, said[1], Verdict.PINNED, s.store)

        s.go(tell=oversee)
        killed, pinned = said
        assert all(killed not in c.parents for c in s.candidates)
        state = s.state
        everywhere = {*state["population"], *state["elites"], *(i for isle in state["islands"] for i in isle)}
        assert killed not in everywhere and state["winner"] != killed
        assert pinned in state["islands"][0]


def test_a_released_candidate_may_win_again(tmp_path: Path, captured: Captured) -> None:
    with search(tmp_path, captured, generations=1, review=True) as s:
        waiting = s.go().waits_for_review
        assert waiting is not None
        mark(s.run, waiting, Verdict.KILLED, s.store)
        mark(s.run, waiting, Verdict.RELEASED, s.store)
        s.go(resume={"verdict": "approved", "note": ""})
        assert s.store.run(s.run.id).best_candidate == waiting
        with pytest.raises(BadInput, match="has ended"):
            mark(s.store.run(s.run.id), waiting, Verdict.PINNED, s.store)


def test_only_what_the_run_has_can_be_marked_and_only_what_passed_pinned(
    tmp_path: Path, captured: Captured
) -> None:
    with search(tmp_path, captured, generations=1, review=True) as s:
        judged = 0

        def half(_: EvaluationJob) -> bool:
            nonlocal judged
            judged += 1
            return judged % 2 == 0

        s.go(half)
        failed = next(r for r in s.store.evaluated(s.run.id) if r.evaluation and not r.evaluation.timing)
        with pytest.raises(BadInput, match="did not pass"):
            mark(s.run, failed.candidate.id, Verdict.PINNED, s.store)
        with pytest.raises(BadInput, match=r"no candidate '9-9'.*warpsmith show"):
            mark(s.run, "9-9", Verdict.KILLED, s.store)


def test_a_winner_below_the_settings_speedup_needs_no_review(tmp_path: Path, captured: Captured) -> None:
    with search(tmp_path, captured, generations=1, review=True, review_above=1000.0) as s:
        outcome = s.go()
        assert outcome.waits_for_review is None and outcome.summary.status == RunStatus.IMPROVED.value


def test_a_reviewer_rolls_back_to_an_earlier_winner_while_the_run_waits_and_after_its_end(
    tmp_path: Path, captured: Captured
) -> None:
    with search(tmp_path, captured, generations=2, review=True) as s:
        first = s.go().waits_for_review
        assert first is not None
        second, third = [id_ for id_ in s.state["population"] if id_ != first][:2]
        # The pool of a rollback is the run's own: a real one would judge made-up programs. So the graph is answered.
        told = {"verdict": "rolled_back", "to": second, "note": "needs less shared memory"}
        assert s.go(resume=told).waits_for_review == second
        assert any("needs less shared memory" in lesson for lesson in s.state["lessons"])
        s.go(resume={"verdict": "approved", "note": ""})
        assert s.store.run(s.run.id).best_candidate == second
        s.run = s.store.run(s.run.id)
        again = {"verdict": "rolled_back", "to": third, "note": ""}
        assert s.go(resume=again).waits_for_review == third
        outcome = s.go(resume={"verdict": "approved", "note": "ship it"})
        assert outcome.summary.status == RunStatus.IMPROVED.value
        assert s.store.run(s.run.id).best_candidate == third
        verdicts = [r.verdict for r in s.store.reviews_of_run(s.run.id)]
        assert verdicts == ["rolled_back", "approved", "rolled_back", "approved"]
        assert outcome.summary.export_path is not None
        assert third in Path(outcome.summary.export_path).read_text()


def test_a_rollback_needs_a_winner_and_a_candidate_that_could_have_won(
    tmp_path: Path, captured: Captured
) -> None:
    with search(tmp_path, captured, generations=1) as s:
        with pytest.raises(BadInput, match="has no winner to roll back from"):
            roll_back(s.run, "000-000", s.store, s.settings, lambda _: None)
        s.go()
        ended = s.store.run(s.run.id)
        assert ended.best_candidate is not None
        with pytest.raises(BadInput, match="is the winner of run"):
            roll_back(ended, short_id(ended.best_candidate), s.store, s.settings, lambda _: None)
        with pytest.raises(BadInput, match="has ended"):
            resume_run(ended, s.store, s.settings, lambda _: None)


# --- repetition, ancestry, limits -------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_sequence_of_programs_and_another_seed_another(
    tmp_path: Path, captured: Captured
) -> None:
    def made(name: str, **given: object) -> list[tuple[str, str, str, int]]:
        with search(tmp_path / name, captured, population=16, islands=4, generations=6, **given) as s:
            s.go(lambda job: int(job.program.content_hash()[:8], 16) % 12 == 0)
            found = sorted(s.candidates, key=lambda c: c.id)
            return [(short_id(c.id), c.program_hash, c.idea.replace(s.run.id, ""), c.island) for c in found]

    first = made("one", workers=1)
    assert len(first) == 16 * 6 and {island for *_, island in first} == {0, 1, 2, 3}
    assert made("two", workers=4) == first
    assert made("three", seed=1) != first


def test_a_winners_lineage_ends_at_pytorch_and_its_gains_multiply_to_its_speedup(
    tmp_path: Path, captured: Captured
) -> None:
    with search(tmp_path, captured, generations=6) as s:
        s.go()
        run = s.store.run(s.run.id)
        newest = max(s.candidates, key=lambda c: c.id).id
        assert lineage(run, s.store)[-1].candidate == run.best_candidate
        steps = lineage(run, s.store, newest)
        assert steps[-1].candidate == newest
        assert steps[0].parents == () and steps[0].gain == pytest.approx(steps[0].speedup)
        by_id = {step.candidate: step for step in steps}
        assert len(steps) > 1 and all(set(step.parents) <= set(by_id) for step in steps)
        product, at = 1.0, steps[-1]
        while at.parents:
            assert at.gain is not None
            product *= at.gain
            at = min((by_id[p] for p in at.parents), key=lambda step: step.median_us or 0.0)
        assert at.gain is not None and steps[-1].speedup == pytest.approx(product * at.gain)


def test_a_run_without_a_passing_candidate_has_no_lineage(tmp_path: Path, captured: Captured) -> None:
    with search(tmp_path, captured, generations=1) as s:
        s.go(lambda _: True)
        with pytest.raises(BadInput, match="no candidate that passed"):
            lineage(s.store.run(s.run.id), s.store)


@pytest.mark.parametrize(
    ("given", "said", "generations"),
    [
        ({"max_evaluations": 2 * POPULATION}, "16 evaluations are done", 2),
        ({"floor_target": 0.05}, "of the floor", 1),
        ({"generations": 30, "patience": 1}, "brought no gain", None),
        ({"device_budget_s": 1e-9}, None, 4),
    ],
)
def test_a_search_stops_at_its_limits(
    tmp_path: Path, captured: Captured, given: dict[str, object], said: str | None, generations: int | None
) -> None:
    with search(tmp_path, captured, **given) as s:
        s.go()
        last = s.closed[-1]
        assert (said or "all 4 generations are done") in last.stop
        assert generations is None or last.generation + 1 == generations
