"""A run at a glance: the same as its whole outcome, from a few short queries."""

from __future__ import annotations

from pathlib import Path

from graph.glance import glance
from graph.runner import Runner
from graph.session import find_summary
from memory.events import Verdict
from tests.graph.test_search import captured, search
from tools.problem import Captured

__all__ = ["captured"]


def test_a_glance_agrees_with_the_whole_outcome_before_during_and_after(
    tmp_path: Path, captured: Captured
) -> None:
    with search(tmp_path, captured, generations=3, review=True) as s:
        runner = Runner(s.settings)
        before = glance(s.run, s.store, s.settings, runner)
        assert (before.status, before.generation, before.evaluations, before.best) == (
            "interrupted",
            None,
            0,
            None,
        )
        assert before.worker is None and before.decisions == () and before.generations == 3
        waits = s.go().waits_for_review
        during, summary = glance(s.run, s.store, s.settings, runner), find_summary(s.run, s.store, s.settings)
        assert during.status == summary.status == "in_review" and during.generation == 2
        assert during.timing is not None and during.timing.median_us == summary.best_us
        assert (during.evaluations, during.by_status) == (summary.evaluations, summary.by_status)
        s.go(resume={"verdict": Verdict.APPROVED.value, "note": ""})
        after = glance(s.run, s.store, s.settings, runner, decisions=4)
        assert after.status == "improved" and after.best is not None and after.best.candidate.id == waits
        every = [
            e for e in s.store.events(s.run.id) if e.role in ("planner", "profiler", "critic", "operator")
        ]
        assert list(after.decisions) == every[-4:]
        assert s.store.last_events(s.run.id, limit=10_000) == s.store.events(s.run.id)


def test_generations_are_counted_as_they_were_judged(tmp_path: Path, captured: Captured) -> None:
    with search(tmp_path, captured, generations=2) as s:
        s.go(lambda job: int(job.program.content_hash()[:8], 16) % 3 == 0)
        rows = s.store.by_generation(s.run.id)
        for line in rows:
            ids = {candidate.id for candidate in s.of_generation(line.generation)}
            mine = [row for row in s.store.evaluated(s.run.id) if row.candidate.id in ids and row.evaluation]
            times = [
                row.evaluation.timing.median_us for row in mine if row.evaluation and row.evaluation.timing
            ]
            found = (line.judged, line.passed, line.best_us)
            assert found == (len(mine), len(times), min(times, default=None))
        assert [line.generation for line in rows] == sorted(
            {candidate.generation for candidate in s.candidates}
        )
        assert s.store.by_generation("nothing") == [] and s.store.generation("nothing") is None
