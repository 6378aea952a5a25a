"""Tables at the width of a plain terminal: nothing that is needed is cut off."""

from __future__ import annotations

import io

import pytest
from rich.console import Console, RenderableType

from graph.summary import Summary
from graph.tables import WIDE, candidates_table, events_table, hits_table, runs_table, summary_table, us_text
from memory.archive_entry import Hit
from memory.events import AgentEvent, EvaluatedCandidate
from memory.records import Status
from tests.memory import made

RUN = "layernorm_gelu-20261202-091530-3fa9"


def drawn(table: RenderableType, width: int = 80) -> list[str]:
    """The lines of a table on a console of this width, as the command line prints it."""
    text = io.StringIO()
    Console(file=text, width=width).print(table, crop=False)
    return text.getvalue().splitlines()


def summary(run: str = RUN, status: str = "improved", **changes: object) -> Summary:
    values: dict[str, object] = {
        "run": run, "status": status, "device": "simulator:h200", "measured": False, "baseline_us": 1234.5,
        "best_us": 0.0312, "floor_us": 0.00045, "speedup": 1.74, "evaluations": 34, "by_status": {"passed": 34},
        "why_not": None, "spend": None, "export_path": None,
        "program_path": "/home/someone/" + "deep/" * 20 + "program.json",
    }  # fmt: skip
    return Summary(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        (None, "none"),
        (0.0, "0 µs"),
        (0.000451, "0.000451 µs"),
        (0.0312, "0.0312 µs"),
        (6.04, "6.04 µs"),
        (10.5, "10.5 µs"),
        (12345.6, "12,345.6 µs"),
    ],
)
def test_times_keep_their_significant_digits(time_us: float | None, text: str) -> None:
    assert us_text(time_us) == text


def test_the_list_of_runs_keeps_ids_whole_in_80_columns() -> None:
    lines = drawn(runs_table([summary(), summary("x", "in_review"), summary("y", "not_improved")], 80))
    assert not any("…" in line for line in lines)
    [row] = [line for line in lines if RUN in line]
    assert row.split() == [RUN, "improved", "simulator:h200", "1.74×"]
    assert any("in review" in line for line in lines)
    assert "modelled" in lines[-1]


def test_a_wide_list_of_runs_says_more() -> None:
    lines = drawn(runs_table([summary()], WIDE), WIDE)
    [row] = [line for line in lines if RUN in line]
    assert "1,234.5 µs" in row and "0.0312 µs" in row and row.split()[-1] == "34"


def test_a_summary_keeps_paths_in_one_piece_and_says_why() -> None:
    why = "best candidate 1.02×, but its interval, 0.99 to 1.05, includes 1"
    given = summary(status="not_improved", speedup=1.0, why_not=why)
    lines = drawn(summary_table(given))
    assert f"why: {why}" in lines
    assert any(line == f"program: {given.program_path}" for line in lines)
    assert any("0.000450 µs" in line for line in lines)


@pytest.mark.parametrize(("status", "answer"), [("interrupted", f"resume {RUN}"), ("in_review", "--approve")])
def test_a_run_that_needs_someone_says_what_to_type(status: str, answer: str) -> None:
    assert any(
        "warpsmith resume" in line and answer in line for line in drawn(summary_table(summary(status=status)))
    )


def test_candidates_and_decisions_are_whole_in_80_columns() -> None:
    made_candidate = made.candidate(f"{RUN}-000-001-r1", "p")
    rows = [
        EvaluatedCandidate(made_candidate, made.evaluation("p", status=Status.SANITIZER_ERROR)),
        EvaluatedCandidate(made_candidate, made.evaluation("p", median_us=10.0)),
        EvaluatedCandidate(made_candidate, None),
    ]
    lines = drawn(candidates_table(rows))
    assert not any("…" in line for line in lines)
    assert [line for line in lines if "000-001-r1" in line and "sanitizer error" in line]
    event = AgentEvent(
        id="e", run_id=RUN, at="", role="profiler", agent="rules", generation=12, candidate_id=f"{RUN}-000-001",
        latency_s=0.0, decision="launch: " + "one kernel takes all of the time, " * 6,
    )  # fmt: skip
    lines = drawn(events_table([event]))
    assert not any("…" in line for line in lines)
    assert max(len(line) for line in lines) <= 80


def test_hits_name_the_problem_and_how_times_were_made() -> None:
    lines = drawn(hits_table([Hit("id", made.innovation(made.problem()), 0.87)]))
    assert not any("…" in line for line in lines)
    assert any("0.87" in line and "modelled" in line for line in lines)
