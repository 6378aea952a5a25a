"""The store: everything a run must not lose, in one SQLite file.

Here: writing. Reading is inherited from `memory.store_views`, `memory.store_family` and `memory.store_traces`; the
file, its tables and its errors are in `memory.store_schema`.
Invariants: every put is committed when it returns and safe to repeat, by threads and by processes; programs and
problems are filed by content hash and kept once; a program has one evaluation per problem, policy and device, and
the first one stands, except that its profile may be refined; nothing is ever deleted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from memory.errors import StoreError
from memory.events import AgentEvent, Review
from memory.records import Candidate, Evaluation, Problem, Profile, Program, Run, RunStatus
from memory.store_family import FamilyReader
from memory.store_reader import parsed
from memory.store_schema import Database
from memory.store_traces import TraceReader
from memory.store_views import StoreViews


class Store(StoreViews, FamilyReader, TraceReader):
    """The run store. Use as a context manager, or close it."""

    def __init__(self, path: Path, *, timeout_s: float = 30.0) -> None:
        """Open the file, creating it and its folder where absent; wait for other processes up to `timeout_s`.

        Raises: StoreError where it is damaged, locked, not to be written, or of another version.
        """
        super().__init__(Database(path, timeout_s=timeout_s))
        self.path = path

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the file go."""
        self._database.close()

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is put meanwhile is committed at once when this is left, or not at all. Other threads wait: be quick."""
        with self._database.writing():
            yield

    def put_problem(self, problem: Problem) -> str:
        """Keep a problem; returns its hash."""
        key = problem.content_hash()
        with self._database.writing():
            self._database.insert("problems", hash=key, body=problem.model_dump_json())
        return key

    def put_pair(self, problem: Problem, twin: Problem | None) -> str:
        """Keep a captured problem and its reduced twin, None where it has none; returns the problem's hash.

        Raises: StoreError where the problem is kept with another twin.
        """
        twin_hash = self.put_problem(twin) if twin is not None else None
        key = self.put_problem(problem)
        with self._database.writing():
            new = self._database.insert("pairs", problem_hash=key, twin_hash=twin_hash)
            kept = self._database.rows("SELECT twin_hash FROM pairs WHERE problem_hash = ?", key)
        if not new and kept != [(twin_hash,)]:
            raise StoreError(
                f"problem {key!r} is kept with twin {kept[0][0]!r}, not {twin_hash!r}; capture it anew"
            )
        return key

    def put_program(self, program: Program) -> str:
        """Keep a program, its source shared with programs that differ in the plan only; returns its hash."""
        key = program.content_hash()
        source_hash = hashlib.sha256(program.source.encode()).hexdigest()
        bare = program.model_copy(update={"source": ""})
        with self._database.writing():
            self._database.insert("sources", hash=source_hash, text=program.source)
            self._database.insert("programs", hash=key, source_hash=source_hash, body=bare.model_dump_json())
        return key

    def put_run(self, run: Run) -> None:
        """Keep a new run; its problem must be kept.

        Repeating it is harmless and leaves the kept status alone. Raises StoreError where the id is taken by a
        run of another problem, device, settings or seed.
        """
        with self._database.writing():
            if self._database.insert("runs", body=run.model_dump_json(), **_run_columns(run)):
                return
            kept = self.run(run.id)
        labels = {"created": run.created, "status": run.status, "best_candidate": run.best_candidate}
        if kept.model_copy(update=labels) != run:
            raise StoreError(
                f"run {run.id!r} exists with other settings; resume it as it was or choose another id"
            )

    def update_run(self, run_id: str, *, status: RunStatus, best_candidate: str | None) -> Run:
        """Set a run's status and best candidate; returns the run as kept."""
        with self._database.writing():
            kept = self.run(run_id)
            changed = Run.model_validate(
                kept.model_dump() | {"status": status, "best_candidate": best_candidate}
            )
            self._database.execute(
                "UPDATE runs SET status = ?, body = ? WHERE id = ?",
                status.value, changed.model_dump_json(), kept.id,
            )  # fmt: skip
        return changed

    def put_candidate(self, candidate: Candidate) -> None:
        """Keep a candidate; its run and program must be kept. Raises StoreError where its id is another's."""
        with self._database.writing():
            new = self._database.insert(
                "candidates",
                id=candidate.id,
                run_id=candidate.run_id,
                program_hash=candidate.program_hash,
                body=candidate.model_dump_json(),
            )
            if not new and self.candidate(candidate.id).content_hash() != candidate.content_hash():
                raise StoreError(
                    f"candidate id {candidate.id!r} is taken by another candidate; make ids unique"
                )

    def put_evaluation(self, evaluation: Evaluation) -> Evaluation:
        """Keep a verdict; its program and problem must be kept. Returns the verdict that stands: the first."""
        key = {
            "program_hash": evaluation.program_hash,
            "problem_hash": evaluation.problem_hash,
            "policy_hash": evaluation.policy_hash,
            "device": evaluation.device,
        }
        with self._database.writing():
            new = self._database.insert(
                "evaluations",
                **key,
                status=evaluation.status.value,
                median_us=evaluation.timing.median_us if evaluation.timing else None,
                body=evaluation.model_dump_json(),
            )
            return evaluation if new else self.find_evaluation(**key) or evaluation

    def refine_profile(self, evaluation: Evaluation, profile: Profile) -> Evaluation:
        """Give a kept verdict a profile that knows more; everything else of it stays. Returns the new one.

        Raises: StoreError where the verdict is not the one that is kept.
        """
        key = (
            evaluation.program_hash,
            evaluation.problem_hash,
            evaluation.policy_hash,
            evaluation.device,
        )
        with self._database.writing():
            kept = self.find_evaluation(
                program_hash=key[0], problem_hash=key[1], policy_hash=key[2], device=key[3]
            )
            if kept != evaluation:
                raise StoreError(f"the verdict on program {key[0][:12]} is not the one in the store")
            refined = evaluation.model_copy(update={"profile": profile})
            self._database.execute(
                "UPDATE evaluations SET body = ?"
                " WHERE program_hash = ? AND problem_hash = ? AND policy_hash = ? AND device = ?",
                refined.model_dump_json(),
                *key,
            )
        return refined

    def put_event(self, event: AgentEvent) -> bool:
        """Keep an agent's event; its run must be kept. False where one of this id is kept: that one stands."""
        with self._database.writing():
            return self._database.insert(
                "events",
                id=event.id,
                run_id=event.run_id,
                agent=event.agent,
                tokens_in=event.tokens_in,
                tokens_out=event.tokens_out,
                cost_usd=event.cost_usd,
                body=event.model_dump_json(),
            )

    def put_request(self, slip: str, event: AgentEvent) -> None:
        """Note a request that goes to a model: the event it becomes if nobody lives to say what came of it.

        slip: the call that it belongs to; several requests may. The event's run must be kept.
        """
        with self._database.writing():
            self._database.insert(
                "requests", id=event.id, run_id=event.run_id, slip=slip, body=event.model_dump_json()
            )

    def answer_requests(self, slip: str) -> None:
        """Say that the call is kept: its requests need no event of their own."""
        with self._database.writing():
            self._database.execute("UPDATE requests SET body = NULL WHERE slip = ?", slip)

    def close_requests(self, run_id: str) -> int:
        """Keep the events of a run's requests whose call was never kept; how many. Their process must have ended."""
        with self._database.writing():
            left = self._database.texts(
                "SELECT body FROM requests WHERE run_id = ? AND body IS NOT NULL ORDER BY seq", run_id
            )
            for body in left:
                self.put_event(parsed(AgentEvent, body, run_id))
            self._database.execute("UPDATE requests SET body = NULL WHERE run_id = ?", run_id)
        return len(left)

    def put_review(self, review: Review) -> None:
        """Keep a person's word on a candidate, which must be kept."""
        with self._database.writing():
            self._database.insert(
                "reviews",
                hash=review.content_hash(),
                candidate_id=review.candidate_id,
                body=review.model_dump_json(),
            )


def _run_columns(run: Run) -> dict[str, str]:
    return {
        "id": run.id,
        "problem_hash": run.problem_hash,
        "device": run.device,
        "created": run.created,
        "status": run.status.value,
    }
