"""The reference: a long-lived process that holds the user's module and writes trials.

Here: the parent's side. Not here: what the child does (tools.reference_child), reading trials (tools.trial).
Covers and does not cover: as tools.child. Invariant: a trial that this returns is complete on disk.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from memory.disk import telling_full
from memory.errors import CaptureFailed, WorkerLost
from memory.records import Problem, Target
from tools.child import Child, Ending, Failure, Limits, Lost, error_of
from tools.inputs import Distribution
from tools.reference_records import DeviceKind, StartRequest, TrialRequest
from tools.trial import Trial


class Reference:
    """Runs the user's module for trials: eager in its own precision, and in float64 as the oracle."""

    def __init__(
        self,
        target: Target,
        problem: Problem,
        *,
        deadline_s: float = 120.0,
        limits: Limits | None = None,
        device: DeviceKind = "cpu",
    ) -> None:
        """The child starts at the first trial. deadline_s: for the start, and again for each trial."""
        self._start = StartRequest(target=target, problem=problem, device=device)
        self._deadline_s = deadline_s
        self._limits = limits or Limits(gpu=device == "cuda")
        self._child: Child | None = None

    def __enter__(self) -> Reference:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The child's process id; None before the first trial and after a loss."""
        return self._child.pid if self._child is not None else None

    def trial(self, seed: int, distribution: Distribution, directory: Path) -> Trial:
        """Write one trial into `directory` (made where absent): fresh weights and inputs, oracle and eager results.

        Raises: BadInput or CaptureFailed where the module cannot run or passes the deadline; WorkerLost where its
        process died twice, the second time on a fresh start; DiskFull.
        """
        with telling_full(directory):
            directory.mkdir(parents=True, exist_ok=True)
        request = TrialRequest(seed=seed, distribution=distribution, directory=str(directory.resolve()))
        outcome = self._attempt(request)
        if isinstance(outcome, Lost) and outcome.ending is not Ending.DEADLINE:
            outcome = self._attempt(request)
            if isinstance(outcome, Lost) and outcome.ending is not Ending.DEADLINE:
                raise WorkerLost(
                    f"reference, trial {seed} ({distribution}): {error_of(outcome, self._path)}, twice"
                )
        if isinstance(outcome, Failure | Lost):
            raise error_of(outcome, self._path)
        return Trial(seed, distribution, directory)

    def close(self) -> None:
        """End the child process."""
        if self._child is not None:
            self._child.close()
            self._child = None

    @property
    def _path(self) -> str:
        return self._start.target.path

    def _attempt(self, request: TrialRequest) -> bytes | Failure | Lost:
        if self._child is None:
            self._child = Child("reference_child", self._limits)
            started = self._ask(self._start.model_dump_json().encode())
            if isinstance(started, Failure | Lost):
                self.close()
                return started
        return self._ask(request.model_dump_json().encode())

    def _ask(self, request: bytes) -> bytes | Failure | Lost:
        if self._child is None:
            raise CaptureFailed(f"{self._path}: the reference was closed while it was in use")
        outcome = self._child.ask(request, deadline_s=self._deadline_s)
        if isinstance(outcome, Lost):
            self.close()
        return outcome
