"""Questions about a run as a whole, answered by SQLite in fractions of a second however many candidates it has.

Here: counts, bests and pages. Not here: records one by one (`memory.store_reader`).
Invariant: nothing here reads more records into memory than it returns.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Literal

from memory.evaluation_records import Stage
from memory.events import AgentEvent, EvaluatedCandidate, Review, Verdict
from memory.records import Run, Status
from memory.store_reader import EVALUATED, StoreReader, evaluated_candidate, parsed
from memory.store_schema import Value

Order = Literal["newest", "oldest", "fastest"]

BY_GENERATION = f"""
SELECT CAST(json_extract(c.body, '$.generation') AS INTEGER), e.status, COUNT(*), MIN(e.median_us),
    SUM(1.0 / e.median_us)
{EVALUATED}
GROUP BY 1, 2
"""
FAILURES = f"""
SELECT CAST(json_extract(c.body, '$.generation') AS INTEGER), json_extract(e.body, '$.stage')
{EVALUATED} AND e.status <> 'passed'
"""
"""Apart from BY_GENERATION and not grouped: SQLite would carry the verdicts' bodies through the sort."""
BY_ISLAND = f"""
SELECT CAST(json_extract(c.body, '$.island') AS INTEGER) AS island, COUNT(*), SUM(e.status = 'passed'),
    MIN(e.median_us)
{EVALUATED}
GROUP BY 1 ORDER BY 1
"""
ORDERS: dict[Order, str] = {
    "newest": "c.seq DESC",
    "oldest": "c.seq",
    "fastest": "e.median_us IS NULL, e.median_us, c.seq",
}


@dataclass(frozen=True)
class GenerationLine:
    """One generation of a run; times in µs."""

    generation: int
    candidates: int
    by_status: dict[Status, int]
    """Of those that were judged."""
    failed_at: dict[Stage, int]
    """Failures by the stage that ended them."""
    best_us: float | None
    """The least median time in it; None where nothing passed."""
    best_so_far_us: float | None
    """In it or before."""
    per_us: float
    """Sum of 1 / µs over those that passed."""

    @property
    def passed(self) -> int:
        """Candidates that passed."""
        return self.by_status.get(Status.PASSED, 0)

    @property
    def judged(self) -> int:
        """Candidates with a verdict."""
        return sum(self.by_status.values())


@dataclass(frozen=True)
class IslandLine:
    """The candidates born on one island."""

    island: int
    candidates: int
    passed: int
    best_us: float | None


@dataclass(frozen=True)
class Filter:
    """Which candidates of a run; None and "" are any."""

    status: Status | None = None
    unjudged: bool = False
    """Only those without a verdict."""
    island: int | None = None
    generation: int | None = None
    text: str = ""
    """In the idea or the id, whatever its case."""


@dataclass(frozen=True)
class CandidatePage:
    """Some of the candidates that fit a filter."""

    total: int
    """That fit."""
    rows: tuple[EvaluatedCandidate, ...]


@dataclass(frozen=True)
class Seen:
    """Up to where the store has been read: numbers of its newest candidate and verdict."""

    candidate: int = 0
    verdict: int = 0


class StoreViews(StoreReader):
    """The half of reading that a page asks for."""

    def by_generation(self, run_id: str, *, policy_hash: str | None = None) -> list[GenerationLine]:
        """A run's generations in order."""
        groups: dict[int, list[tuple[Value, ...]]] = defaultdict(list)
        for row in self._database.rows(BY_GENERATION, run_id, policy_hash):
            groups[int(str(row[0]))].append(row[1:])
        failed_at: dict[int, dict[Stage, int]] = defaultdict(dict)
        failures = Counter(self._database.rows(FAILURES, run_id, policy_hash))
        for (generation, stage), count in failures.items():
            failed_at[int(str(generation))][Stage(str(stage))] = count
        lines: list[GenerationLine] = []
        best: float | None = None
        for number, found in sorted(groups.items()):
            by_status = {Status(str(row[0])): int(str(row[1])) for row in found if row[0] is not None}
            own, per_us = next(
                ((float(row[2]), float(row[3] or 0.0)) for row in found if row[2] is not None), (None, 0.0)
            )
            best = min((us for us in (best, own) if us is not None), default=None)
            total = sum(int(str(row[1])) for row in found)
            lines.append(GenerationLine(number, total, by_status, failed_at[number], own, best, per_us))
        return lines

    def by_island(self, run_id: str, *, policy_hash: str | None = None) -> list[IslandLine]:
        """A run's islands in order."""
        return [
            IslandLine(int(str(n)), int(str(count)), int(str(passed or 0)), float(best) if best else None)
            for n, count, passed, best in self._database.rows(BY_ISLAND, run_id, policy_hash)
        ]

    def count_candidates(self, run_id: str) -> int:
        """Candidates of a run."""
        return int(str(self._database.rows("SELECT COUNT(*) FROM candidates WHERE run_id = ?", run_id)[0][0]))

    def candidate_page(
        self,
        run_id: str,
        *,
        policy_hash: str | None = None,
        only: Filter = Filter(),
        order: Order = "newest",
        limit: int = 50,
        offset: int = 0,
    ) -> CandidatePage:
        """Candidates that fit, `limit` of them from number `offset` on, and how many there are."""
        where, values = _conditions(only)
        sql = f"{EVALUATED} {where}"
        given = (run_id, policy_hash, *values)
        first = len(given)
        if where:
            total = int(str(self._database.rows(f"SELECT COUNT(*) {sql}", *given)[0][0]))
        else:
            total = int(
                str(self._database.rows("SELECT COUNT(*) FROM candidates WHERE run_id = ?", run_id)[0][0])
            )
        rows = self._database.rows(
            # The page is found by number first, so that bodies are read for it alone.
            f"SELECT c.body, e.body FROM (SELECT c.seq AS c_seq, e.seq AS e_seq {sql}"
            f" ORDER BY {ORDERS[order]} LIMIT ?{first + 1} OFFSET ?{first + 2}) found"
            " JOIN candidates c ON c.seq = found.c_seq LEFT JOIN evaluations e ON e.seq = found.e_seq"
            f" ORDER BY {ORDERS[order]}",
            *given, limit, offset,
        )  # fmt: skip
        return CandidatePage(total, tuple(evaluated_candidate(*row) for row in rows))

    def judged_since(
        self, run_id: str, seen: Seen, *, policy_hash: str | None = None
    ) -> tuple[list[EvaluatedCandidate], Seen]:
        """Candidates of a run that got a verdict since, in the order in which they were put, and up to where was read.

        One that was judged while this was read may come twice.
        """
        row = self._database.rows(
            "SELECT COALESCE((SELECT MAX(seq) FROM candidates), 0), COALESCE((SELECT MAX(seq) FROM evaluations), 0)"
        )[0]
        now = Seen(int(str(row[0])), int(str(row[1])))
        if now == seen:
            return [], now
        found = self._database.rows(
            f"SELECT c.body, e.body {EVALUATED} AND e.seq IS NOT NULL AND (c.seq > ?3 OR c.program_hash IN"
            " (SELECT x.program_hash FROM evaluations x WHERE x.seq > ?4)) ORDER BY c.seq",
            run_id, policy_hash, seen.candidate, seen.verdict,
        )  # fmt: skip
        return [evaluated_candidate(*row) for row in found], now

    def run_page(self, *, limit: int, offset: int = 0) -> tuple[int, list[Run]]:
        """How many runs there are, and some of them, newest first."""
        total = int(str(self._database.rows("SELECT COUNT(*) FROM runs")[0][0]))
        bodies = self._database.texts(
            "SELECT body FROM runs ORDER BY created DESC, seq DESC LIMIT ? OFFSET ?", limit, offset
        )
        return total, [parsed(Run, body, "runs") for body in bodies]

    def unended_runs(self) -> list[Run]:
        """Runs that have not ended, newest first."""
        bodies = self._database.texts(
            "SELECT body FROM runs WHERE status IN ('running', 'paused') ORDER BY created DESC, seq DESC"
        )
        return [parsed(Run, body, "runs") for body in bodies]

    def last_reviews(self, *, limit: int, verdicts: tuple[Verdict, ...]) -> list[tuple[str, Review]]:
        """(run id, what a person said), newest first, of these verdicts."""
        marks = ", ".join("?" for _ in verdicts)
        rows = self._database.rows(
            "SELECT c.run_id, r.body FROM reviews r JOIN candidates c ON c.id = r.candidate_id"
            f" WHERE json_extract(r.body, '$.verdict') IN ({marks}) ORDER BY r.seq DESC LIMIT ?",
            *(verdict.value for verdict in verdicts), limit,
        )  # fmt: skip
        return [(str(run_id), parsed(Review, str(body), "reviews")) for run_id, body in rows]

    def events_saying(self, run_id: str, *beginnings: str) -> list[AgentEvent]:
        """A run's events whose decision begins with one of these words, in order."""
        one = "substr(json_extract(body, '$.decision'), 1, length(?)) = ?"
        fits = " OR ".join(one for _ in beginnings)
        pairs = [word for word in beginnings for _ in range(2)]
        sql = f"SELECT body FROM events WHERE run_id = ? AND ({fits}) ORDER BY seq"
        return [parsed(AgentEvent, body, run_id) for body in self._database.texts(sql, run_id, *pairs)]

    def events_about(self, run_id: str, candidate_id: str, *, roles: tuple[str, ...]) -> list[str]:
        """Decisions of these roles on a candidate, in order."""
        marks = ", ".join("?" for _ in roles)
        return self._database.texts(
            "SELECT json_extract(body, '$.decision') FROM events WHERE run_id = ?"
            " AND json_extract(body, '$.candidate_id') = ?"
            f" AND json_extract(body, '$.role') IN ({marks}) ORDER BY seq",
            run_id, candidate_id, *roles,
        )  # fmt: skip


def _conditions(only: Filter) -> tuple[str, list[Value]]:
    """SQL behind the WHERE, whose parameters begin at ?3."""
    parts: list[str] = []
    values: list[Value] = []

    def add(condition: str, value: Value) -> None:
        values.append(value)
        parts.append(condition.replace("?", f"?{len(values) + 2}"))

    if only.unjudged:
        parts.append("e.seq IS NULL")
    if only.status is not None:
        add("e.status = ?", only.status.value)
    if only.island is not None:
        add("json_extract(c.body, '$.island') = ?", only.island)
    if only.generation is not None:
        add("json_extract(c.body, '$.generation') = ?", only.generation)
    if text := only.text.strip().lower():
        add("instr(lower(c.id || ' ' || json_extract(c.body, '$.idea')), ?) > 0", text)
    return "".join(f" AND {part}" for part in parts), values
