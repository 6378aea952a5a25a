"""What the agents of a run did, step by step: filtered, counted and paged by the database.

Not here: what a failed step led to in words (graph.traces). Invariant: a page of steps reads no prompt and no reply;
those belong to the one event that is opened (`Store.event`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.store_schema import Database, Value

_FIELDS = (
    "id", "at", "role", "agent", "model", "generation", "candidate_id", "move", "decision", "failure",
    "tokens_in", "tokens_out", "cost_usd", "latency_s",
)  # fmt: skip
ROLES = ("planner", "coder", "compiler", "profiler", "critic", "tuner", "operator")
"""Who takes steps; `operator` is a person who gives a hint."""
NO_PROGRAM = "no program for "
"""How the decision begins of a coder that wrote nothing."""

_FAILED_CANDIDATES = """
SELECT c.id FROM candidates c JOIN runs r ON r.id = c.run_id JOIN evaluations e
ON e.program_hash = c.program_hash AND e.problem_hash = r.problem_hash AND e.device = r.device
WHERE c.run_id = ? AND e.status <> 'passed'
"""
_MADE = "json_extract(e.body, '$.role') = 'coder'"
"""A coder's step carries the candidate that it made; other roles' steps carry the one that they looked at."""


@dataclass(frozen=True)
class Step:
    """One event without its prompt and reply."""

    seq: int
    id: str
    at: str
    """ISO 8601, UTC."""
    role: str
    agent: str
    """rules, model or person."""
    model: str | None
    generation: int
    candidate_id: str | None
    move: str | None
    decision: str
    failure: str | None
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    latency_s: float
    candidate_failed: bool = False
    """It made or mended a program that the verifier refused."""

    @property
    def failed(self) -> bool:
        """True where it produced nothing, or a program that was refused."""
        return self.failure is not None or self.candidate_failed or self.decision.startswith(NO_PROGRAM)


@dataclass(frozen=True)
class StepFilter:
    """Which steps to see; None and empty mean any."""

    role: str | None = None
    candidate_id: str | None = None
    failed: bool = False
    """Only steps that produced nothing, or a program that was refused."""
    text: str = ""
    """In the decision, the failure, the prompt or the reply; in any case of ASCII letters."""


@dataclass(frozen=True)
class Totals:
    """Sums over the steps that a filter lets through."""

    steps: int
    calls: int
    """Of language models."""
    tokens_in: int
    tokens_out: int
    cost_usd: float
    unpriced: int
    """Calls that used tokens at no known price."""
    waited_s: float
    """Sum of the calls' latencies."""


class TraceReader:
    """Questions about agents' steps; a part of the store."""

    _database: Database

    def steps(
        self, run_id: str, where: StepFilter | None = None, *, limit: int = 50, offset: int = 0
    ) -> list[Step]:
        """A page of a run's steps, in order."""
        condition, values = _conditions(run_id, where or StepFilter())
        rows = self._database.rows(
            f"SELECT {_columns()} FROM events e WHERE {condition} ORDER BY e.seq LIMIT ? OFFSET ?",
            *values, limit, offset,
        )  # fmt: skip
        return self._with_verdicts(run_id, [_step(row) for row in rows])

    def totals(self, run_id: str, where: StepFilter | None = None) -> Totals:
        """How many steps there are, and what they used."""
        condition, values = _conditions(run_id, where or StepFilter())
        row = self._database.rows(
            "SELECT COUNT(*), COUNT(CASE WHEN e.agent = 'model' THEN 1 END), COALESCE(SUM(e.tokens_in), 0),"
            " COALESCE(SUM(e.tokens_out), 0), COALESCE(SUM(e.cost_usd), 0.0),"
            " COUNT(CASE WHEN e.cost_usd IS NULL AND e.tokens_in IS NOT NULL THEN 1 END),"
            " COALESCE(SUM(CASE WHEN e.agent = 'model' THEN json_extract(e.body, '$.latency_s') END), 0.0)"
            f" FROM events e WHERE {condition}",
            *values,
        )[0]
        steps, calls, read, written, cost, unpriced, waited = (float(value or 0) for value in row)
        return Totals(int(steps), int(calls), int(read), int(written), cost, int(unpriced), waited)

    def step(self, event_id: str) -> Step | None:
        """One step; None where the store has no such event."""
        rows = self._database.rows(f"SELECT {_columns()}, e.run_id FROM events e WHERE e.id = ?", event_id)
        return self._with_verdicts(str(rows[0][-1]), [_step(rows[0][:-1])])[0] if rows else None

    def steps_after(self, run_id: str, step: Step, *, or_saying: str = "", limit: int = 40) -> list[Step]:
        """What came after a step, in order: of its candidate and the repairs of it, else of its role and generation.

        or_saying: also steps of its role and generation without a candidate whose decision begins so.
        """
        values: list[Value]
        if step.candidate_id is not None:
            condition = (
                "(json_extract(e.body, '$.candidate_id') = ? OR json_extract(e.body, '$.candidate_id') GLOB ?"
                " OR (? <> '' AND json_extract(e.body, '$.candidate_id') IS NULL"
                " AND json_extract(e.body, '$.role') = ? AND substr(json_extract(e.body, '$.decision'), 1, ?) = ?))"
            )
            repairs = f"{_globbed(step.candidate_id)}-r[0-9]*"
            values = [step.candidate_id, repairs, or_saying, step.role, len(or_saying), or_saying]
        else:
            condition = "json_extract(e.body, '$.role') = ? AND json_extract(e.body, '$.generation') = ?"
            values = [step.role, step.generation]
        rows = self._database.rows(
            f"SELECT {_columns()} FROM events e WHERE e.run_id = ? AND e.seq > ? AND {condition}"
            " ORDER BY e.seq LIMIT ?",
            run_id, step.seq, *values, limit,
        )  # fmt: skip
        return [_step(row) for row in rows]

    def _with_verdicts(self, run_id: str, steps: list[Step]) -> list[Step]:
        """The steps, marked where the program that they made was refused."""
        made = sorted({step.candidate_id for step in steps if step.candidate_id and step.role == "coder"})
        if not made:
            return steps
        marks = ", ".join("?" * len(made))
        refused = set(self._database.texts(f"{_FAILED_CANDIDATES} AND c.id IN ({marks})", run_id, *made))
        return [
            replace(step, candidate_failed=step.role == "coder" and step.candidate_id in refused)
            for step in steps
        ]


def _conditions(run_id: str, where: StepFilter) -> tuple[str, list[Value]]:
    """SQL over `events e`, and its values in order."""
    parts: list[str] = ["e.run_id = ?"]
    values: list[Value] = [run_id]
    if where.role is not None:
        parts.append("json_extract(e.body, '$.role') = ?")
        values.append(where.role)
    if where.candidate_id is not None:
        parts.append("json_extract(e.body, '$.candidate_id') = ?")
        values.append(where.candidate_id)
    if where.failed:
        parts.append(
            "(json_extract(e.body, '$.failure') IS NOT NULL OR json_extract(e.body, '$.decision') LIKE ?"
            f" OR ({_MADE} AND json_extract(e.body, '$.candidate_id') IN ({_FAILED_CANDIDATES})))"
        )
        values += [f"{NO_PROGRAM}%", run_id]
    if where.text:
        fields = ("decision", "failure", "prompt", "reply")
        parts.append(
            "(" + " OR ".join(f"json_extract(e.body, '$.{f}') LIKE ? ESCAPE '\\'" for f in fields) + ")"
        )
        values += [f"%{_literal(where.text)}%"] * len(fields)
    return " AND ".join(parts), values


def _literal(text: str) -> str:
    """For LIKE, with \\ as its escape."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _globbed(text: str) -> str:
    """For GLOB."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in text)


def _columns() -> str:
    return "e.seq, " + ", ".join(f"json_extract(e.body, '$.{name}')" for name in _FIELDS)


def _step(row: Sequence[Value]) -> Step:
    seq, *rest = row
    found = dict(zip(_FIELDS, rest, strict=True))
    return Step(
        seq=int(str(seq)),
        id=str(found["id"]),
        at=str(found["at"]),
        role=str(found["role"]),
        agent=str(found["agent"]),
        model=_text(found["model"]),
        generation=int(str(found["generation"])),
        candidate_id=_text(found["candidate_id"]),
        move=_text(found["move"]),
        decision=str(found["decision"]),
        failure=_text(found["failure"]),
        tokens_in=_count(found["tokens_in"]),
        tokens_out=_count(found["tokens_out"]),
        cost_usd=float(str(found["cost_usd"])) if found["cost_usd"] is not None else None,
        latency_s=float(str(found["latency_s"])),
    )


def _text(value: Value) -> str | None:
    return str(value) if value is not None else None


def _count(value: Value) -> int | None:
    return int(str(value)) if value is not None else None
