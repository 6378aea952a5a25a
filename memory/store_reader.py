"""Everything that can be asked of the store.

Here: queries, and JSON back into validated records. Not here: writing (`memory.store`).
Invariant: what comes out validates as the record it went in as, and a problem or program still has the hash it is
filed under; anything else raises StoreError.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeVar

from pydantic import ValidationError

from memory.errors import BadInput, StoreError
from memory.evaluation_records import DEVICE_STAGES
from memory.events import AgentEvent, EvaluatedCandidate, Review, RunCounts, Spend
from memory.records import Candidate, Evaluation, Problem, Program, Record, Run, Status
from memory.store_schema import Database

R = TypeVar("R", bound=Record)

SHOWN_MATCHES = 10

EVALUATED = """
FROM candidates c JOIN runs r ON r.id = c.run_id
LEFT JOIN evaluations e ON e.seq = (
    SELECT MAX(x.seq) FROM evaluations x
    WHERE x.program_hash = c.program_hash AND x.problem_hash = r.problem_hash AND x.device = r.device
    AND (?2 IS NULL OR x.policy_hash = ?2)
)
WHERE c.run_id = ?1
"""
"""A run's candidates with the latest evaluation on the run's problem and device, under one policy or any."""

LINEAGE = """
WITH RECURSIVE line (id) AS (
    SELECT ?1
    UNION SELECT parent.value FROM line JOIN candidates c ON c.id = line.id, json_each(c.body, '$.parents') parent
)
SELECT c.body FROM candidates c JOIN line ON line.id = c.id ORDER BY c.seq
"""


class StoreReader:
    """The reading half of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # --- by hash ------------------------------------------------------------------------------------------------

    def problem(self, problem_hash: str) -> Problem:
        """Raises StoreError where it is absent or no longer has its hash."""
        body = self._database.text("SELECT body FROM problems WHERE hash = ?", problem_hash)
        return _filed(problem_hash, parsed(Problem, body, problem_hash))

    def twin(self, problem_hash: str) -> Problem | None:
        """The reduced twin captured with a problem, or None where it has none."""
        twin_hash = self._database.rows("SELECT twin_hash FROM pairs WHERE problem_hash = ?", problem_hash)
        found = twin_hash[0][0] if twin_hash else None
        return self.problem(str(found)) if found is not None else None

    def program(self, program_hash: str) -> Program:
        """Raises StoreError where it is absent or no longer has its hash."""
        rows = self._database.rows(
            "SELECT p.body, s.text FROM programs p JOIN sources s ON s.hash = p.source_hash WHERE p.hash = ?",
            program_hash,
        )
        body, source = (str(rows[0][0]), str(rows[0][1])) if rows else (None, "")
        bare = parsed(Program, body, program_hash)
        return _filed(program_hash, bare.model_copy(update={"source": source}))

    def has_program(self, program_hash: str) -> bool:
        """True where a program of this hash is kept."""
        return self._database.text("SELECT 1 FROM programs WHERE hash = ?", program_hash) is not None

    def find_evaluation(
        self, *, program_hash: str, problem_hash: str, policy_hash: str, device: str
    ) -> Evaluation | None:
        """The verdict already reached for this key, or None: look here before evaluating."""
        body = self._database.text(
            "SELECT body FROM evaluations"
            " WHERE program_hash = ? AND problem_hash = ? AND policy_hash = ? AND device = ?",
            program_hash, problem_hash, policy_hash, device,
        )  # fmt: skip
        return parsed(Evaluation, body, program_hash) if body is not None else None

    # --- runs ---------------------------------------------------------------------------------------------------

    def runs(self, *, limit: int = 100) -> list[Run]:
        """The newest runs, newest first."""
        bodies = self._database.texts("SELECT body FROM runs ORDER BY created DESC, seq DESC LIMIT ?", limit)
        return [parsed(Run, body, "runs") for body in bodies]

    def latest_run(self) -> Run | None:
        """The newest run, or None in an empty store."""
        return next(iter(self.runs(limit=1)), None)

    def run(self, prefix: str) -> Run:
        """The run whose id is or begins with `prefix`. Raises BadInput where none or several do."""
        return parsed(Run, self._matching("runs", "run", prefix), prefix)

    def counts(self, run_id: str, *, policy_hash: str | None = None) -> RunCounts:
        """How many candidates a run has and what the verifier said of them."""
        sql = f"SELECT e.status, COUNT(*) {EVALUATED} GROUP BY e.status"
        found = {row[0]: int(str(row[1])) for row in self._database.rows(sql, run_id, policy_hash)}
        by_status = {Status(str(name)): count for name, count in found.items() if name is not None}
        return RunCounts(sum(found.values()), sum(by_status.values()), by_status)

    # --- candidates ---------------------------------------------------------------------------------------------

    def candidate(self, prefix: str) -> Candidate:
        """The candidate whose id is or begins with `prefix`. Raises BadInput where none or several do."""
        return parsed(Candidate, self._matching("candidates", "candidate", prefix), prefix)

    def candidates(self, run_id: str) -> list[Candidate]:
        """A run's candidates in the order they were put."""
        bodies = self._database.texts("SELECT body FROM candidates WHERE run_id = ? ORDER BY seq", run_id)
        return [parsed(Candidate, body, run_id) for body in bodies]

    def proposed(self, run_id: str, *, after: int = 0) -> list[tuple[int, int, str]]:
        """(number, generation, program hash) of a run's candidates, in the order they were put.

        after: only candidates of a larger number.
        """
        rows = self._database.rows(
            "SELECT seq, json_extract(body, '$.generation'), program_hash FROM candidates"
            " WHERE run_id = ? AND seq > ? ORDER BY seq",
            run_id, after,
        )  # fmt: skip
        return [(int(str(seq)), int(str(generation)), str(digest)) for seq, generation, digest in rows]

    def evaluated(self, run_id: str, *, policy_hash: str | None = None) -> list[EvaluatedCandidate]:
        """A run's candidates in order, each with its evaluation on the run's problem and device.

        Without a policy the latest evaluation counts, whichever policy it was made under.
        """
        sql = f"SELECT c.body, e.body {EVALUATED} ORDER BY c.seq"
        return [evaluated_candidate(*row) for row in self._database.rows(sql, run_id, policy_hash)]

    def evaluated_one(
        self, run_id: str, candidate_id: str, *, policy_hash: str | None = None
    ) -> EvaluatedCandidate | None:
        """One candidate of a run as `evaluated` has it; None where the run has none of this id."""
        sql = f"SELECT c.body, e.body {EVALUATED} AND c.id = ?3"
        rows = self._database.rows(sql, run_id, policy_hash, candidate_id)
        return evaluated_candidate(*rows[0]) if rows else None

    def best_candidate(self, run_id: str, *, policy_hash: str | None = None) -> EvaluatedCandidate | None:
        """The passed candidate of the least median time, the earlier one of equals; None where none passed."""
        sql = f"SELECT c.body, e.body {EVALUATED} AND e.status = 'passed' ORDER BY e.median_us, c.seq LIMIT 1"
        return next(
            (evaluated_candidate(*row) for row in self._database.rows(sql, run_id, policy_hash)), None
        )

    def lineage(self, candidate_id: str) -> list[Candidate]:
        """The candidate and all its ancestors that the store knows, each once, in the order they were put."""
        bodies = self._database.texts(LINEAGE, self.candidate(candidate_id).id)
        return [parsed(Candidate, body, candidate_id) for body in bodies]

    # --- events and reviews -------------------------------------------------------------------------------------

    def event(self, event_id: str) -> AgentEvent | None:
        """The event of this id, or None: look here before asking a model again."""
        body = self._database.text("SELECT body FROM events WHERE id = ?", event_id)
        return parsed(AgentEvent, body, event_id) if body is not None else None

    def events(self, run_id: str, *, after: str | None = None) -> list[AgentEvent]:
        """A run's events in order; with `after`, those behind the event of that id."""
        bodies = self._database.texts(
            "SELECT body FROM events WHERE run_id = ?"
            " AND seq > COALESCE((SELECT seq FROM events WHERE id = ?), 0) ORDER BY seq",
            run_id, after,
        )  # fmt: skip
        return [parsed(AgentEvent, body, run_id) for body in bodies]

    def last_events(self, run_id: str, *, limit: int, roles: Sequence[str] = ()) -> list[AgentEvent]:
        """A run's newest events, in order; of these roles, or of all."""
        marks = ", ".join("?" for _ in roles)
        chosen = f"AND json_extract(body, '$.role') IN ({marks})" if roles else ""
        sql = f"SELECT body FROM events WHERE run_id = ? {chosen} ORDER BY seq DESC LIMIT ?"
        bodies = self._database.texts(sql, run_id, *roles, limit)
        return [parsed(AgentEvent, body, run_id) for body in reversed(bodies)]

    def generation(self, run_id: str) -> int | None:
        """The generation of the run's newest candidate; None before there is one."""
        bodies = self._database.texts(
            "SELECT body FROM candidates WHERE run_id = ? ORDER BY seq DESC LIMIT 1", run_id
        )
        return parsed(Candidate, bodies[0], run_id).generation if bodies else None

    def spend(self, run_id: str) -> Spend:
        """What the run's calls of language models have used so far."""
        row = self._database.rows(
            "SELECT COUNT(*), COALESCE(SUM(tokens_in), 0), COALESCE(SUM(tokens_out), 0),"
            " COALESCE(SUM(cost_usd), 0.0), COUNT(CASE WHEN cost_usd IS NULL AND tokens_in IS NOT NULL THEN 1 END)"
            " FROM events WHERE run_id = ? AND agent = 'model'",
            run_id,
        )[0]
        calls, tokens_in, tokens_out, cost, unpriced = (float(value or 0) for value in row)
        return Spend(int(calls), int(tokens_in), int(tokens_out), cost, int(unpriced))

    def hints(self, run_id: str) -> list[str]:
        """What people said to a run's agents, in order."""
        bodies = self._database.texts(
            "SELECT body FROM events WHERE run_id = ? AND agent = 'person' ORDER BY seq", run_id
        )
        return [parsed(AgentEvent, body, run_id).decision for body in bodies]

    def last_evaluation(self) -> int:
        """Number of the newest verdict in the store, 0 in an empty one: what came later is newer work."""
        return int(str(self._database.rows("SELECT COALESCE(MAX(seq), 0) FROM evaluations")[0][0]))

    def device_seconds(self, run_id: str, *, after: int) -> float:
        """Seconds that the verdicts on a run's programs took on the device: sanitize, correctness and timing.

        after: only verdicts newer than this `last_evaluation`; what an earlier run had judged costs nothing anew.
        """
        found = self._database.rows(
            "SELECT COALESCE(SUM(stage.value), 0.0) FROM evaluations e, json_each(e.body, '$.seconds') stage"
            " WHERE e.seq > ?2 AND stage.key IN (SELECT value FROM json_each(?3)) AND e.seq IN"
            " (SELECT x.seq FROM candidates c JOIN runs r ON r.id = c.run_id JOIN evaluations x"
            " ON x.program_hash = c.program_hash AND x.problem_hash = r.problem_hash AND x.device = r.device"
            " WHERE c.run_id = ?1)",
            run_id, after, json.dumps(DEVICE_STAGES),
        )  # fmt: skip
        return float(str(found[0][0]))

    def reviews(self, candidate_id: str) -> list[Review]:
        """What people said of a candidate, in order."""
        bodies = self._database.texts(
            "SELECT body FROM reviews WHERE candidate_id = ? ORDER BY seq", candidate_id
        )
        return [parsed(Review, body, candidate_id) for body in bodies]

    def reviews_of_run(self, run_id: str) -> list[Review]:
        """What people said of a run's candidates, in order."""
        # Not a join: SQLite would walk the run's candidates, of which there are many, and not the reviews.
        bodies = self._database.texts(
            "SELECT r.body FROM reviews r WHERE EXISTS"
            " (SELECT 1 FROM candidates c WHERE c.id = r.candidate_id AND c.run_id = ?) ORDER BY r.seq",
            run_id,
        )
        return [parsed(Review, body, run_id) for body in bodies]

    # --- the rest -----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Read every page of the file. Raises StoreError where it is damaged."""
        self._database.check()

    def _matching(self, table: str, noun: str, prefix: str) -> str:
        """The body of the one row whose id is or begins with `prefix`."""
        exact = self._database.text(f"SELECT body FROM {table} WHERE id = ?", prefix)
        if exact is not None:
            return exact
        rows = self._database.rows(
            f"SELECT id, body FROM {table} WHERE substr(id, 1, ?) = ? ORDER BY seq DESC LIMIT ?",
            len(prefix), prefix, SHOWN_MATCHES + 1,
        )  # fmt: skip
        if not rows:
            raise BadInput(
                f"no {noun} has an id that begins with {prefix!r}; `warpsmith show` lists runs and their candidates"
            )
        if len(rows) > 1:
            shown = ", ".join(str(row[0]) for row in rows[:SHOWN_MATCHES])
            more = " and more" if len(rows) > SHOWN_MATCHES else ""
            raise BadInput(f"{prefix!r} fits several {noun}s: {shown}{more}; give more of the id")
        return str(rows[0][1])


def parsed(kind: type[R], body: str | None, key: str) -> R:
    """A stored body as the record it was. Raises StoreError where there is none, or a damaged one."""
    if body is None:
        raise StoreError(f"the store has no {kind.__name__.lower()} {key!r}; put it before using its hash")
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise StoreError(
            f"the {kind.__name__.lower()} at {key!r} is damaged; restore a copy of the store: {error}"
        ) from error


def _filed(key: str, record: R) -> R:
    if record.content_hash() != key:
        noun = type(record).__name__.lower()
        raise StoreError(f"the {noun} filed as {key!r} has another content hash; restore a copy of the store")
    return record


def evaluated_candidate(candidate: object, evaluation: object) -> EvaluatedCandidate:
    """The bodies of a candidate and of its verdict, None where there is none, as records."""
    verdict = parsed(Evaluation, str(evaluation), "evaluations") if evaluation is not None else None
    return EvaluatedCandidate(parsed(Candidate, str(candidate), "candidates"), verdict)
