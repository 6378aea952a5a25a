"""Who descends from whom in a run: a candidate's ancestors and children, with their verdicts in short.

Not here: what is drawn of it (graph.family). Invariant: nothing here reads more bodies than it hands out, so that a
run of 20,000 candidates answers as fast as one of 20.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from memory.errors import StoreError
from memory.records import Candidate, Status
from memory.store_schema import Database, Value

_SHORT_VERDICT = """
FROM candidates c JOIN runs r ON r.id = c.run_id
LEFT JOIN evaluations e ON e.seq = (
    SELECT MAX(x.seq) FROM evaluations x
    WHERE x.program_hash = c.program_hash AND x.problem_hash = r.problem_hash AND x.device = r.device
    AND (?1 IS NULL OR x.policy_hash = ?1)
)
"""
"""Candidates with the latest verdict on their run's problem and device, under one policy or any."""

_LINE = """
WITH RECURSIVE line (id) AS (
    SELECT ?1
    UNION SELECT parent.value FROM line JOIN candidates c ON c.id = line.id, json_each(c.body, '$.parents') parent
)
SELECT COUNT(*) - 1 FROM line JOIN candidates c ON c.id = line.id
"""


@dataclass(frozen=True)
class Relative:
    """A candidate with its verdict in short."""

    candidate: Candidate
    status: Status | None
    """None until there is a verdict."""
    median_us: float | None
    """Its time; None unless it passed."""


class FamilyReader:
    """Questions of kinship; a part of the store."""

    _database: Database

    def ancestor_ids(self, candidate_id: str, *, limit: int) -> list[str]:
        """Ids of the candidate and of its ancestors that the store knows, the nearest first, at most `limit`."""
        found, frontier = [candidate_id], [candidate_id]
        while frontier and len(found) < limit:
            parents = self._database.texts(
                "SELECT DISTINCT c.id FROM json_each(?) child JOIN candidates d ON d.id = child.value,"
                " json_each(d.body, '$.parents') parent JOIN candidates c ON c.id = parent.value ORDER BY c.seq DESC",
                json.dumps(frontier),
            )
            frontier = [parent for parent in parents if parent not in found]
            found += frontier
        return found[:limit]

    def ancestor_count(self, candidate_id: str) -> int:
        """How many ancestors of a candidate the store knows."""
        return int(str(self._database.rows(_LINE, candidate_id)[0][0]))

    def relatives(self, ids: Sequence[str], *, policy_hash: str | None = None) -> list[Relative]:
        """Those candidates, in the order they were put."""
        sql = f"SELECT c.body, e.status, e.median_us {_SHORT_VERDICT}"
        # By id: with the run's index SQLite would walk the whole run.
        rows = self._database.rows(
            f"{sql} WHERE c.id IN (SELECT value FROM json_each(?2)) ORDER BY c.seq",
            policy_hash, json.dumps(list(ids)),
        )  # fmt: skip
        return [_relative(row) for row in rows]

    def children(
        self, candidate_id: str, *, limit: int, policy_hash: str | None = None
    ) -> tuple[list[Relative], int]:
        """Candidates of the same run that name this one as a parent, the fastest first, and how many there are."""
        # A child is younger than its parents, and few bodies hold the id: JSON is read of those alone.
        rows = self._database.rows(
            f"SELECT c.body, e.status, e.median_us, COUNT(*) OVER () {_SHORT_VERDICT}"
            " WHERE c.run_id = (SELECT run_id FROM candidates WHERE id = ?2)"
            " AND c.seq > (SELECT seq FROM candidates WHERE id = ?2) AND instr(c.body, ?3) > 0"
            " AND EXISTS (SELECT 1 FROM json_each(c.body, '$.parents') parent WHERE parent.value = ?2)"
            " ORDER BY e.median_us IS NULL, e.median_us, c.seq LIMIT ?4",
            policy_hash, candidate_id, json.dumps(candidate_id, ensure_ascii=False), limit,
        )  # fmt: skip
        return [_relative(row[:3]) for row in rows], int(str(rows[0][3])) if rows else 0

    def newest_candidate(self, run_id: str) -> str | None:
        """Id of the run's last candidate; None before there is one."""
        return self._database.text(
            "SELECT id FROM candidates WHERE run_id = ? ORDER BY seq DESC LIMIT 1", run_id
        )


def _relative(row: Sequence[Value]) -> Relative:
    body, status, median_us = row
    try:
        candidate = Candidate.model_validate_json(str(body))
    except ValidationError as error:
        raise StoreError(f"a candidate is damaged; restore a copy of the store: {error}") from error
    return Relative(
        candidate,
        Status(str(status)) if status is not None else None,
        float(str(median_us)) if median_us is not None else None,
    )
