"""Live objects of a run: what nodes use and no checkpoint holds. Passed again whenever a run is resumed."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from agents.asking import Asker
from agents.ports import Team
from agents.schemas import Member, Notes, Recalled, Scene
from graph.behaviour import BINS, cells
from graph.budget import Budget, Deadline, Spent
from graph.casework import Bench, prepare_case
from graph.evolution import Evolution, Fitness
from graph.past import Earlier, Past
from graph.recent import Recent
from graph.seeds import recalled
from graph.settings import Settings
from memory.archive import Archive
from memory.errors import WarpsmithError
from memory.events import AgentEvent
from memory.records import Candidate, Evaluation, Problem, Program, Run
from memory.store import Store
from tools.case import Case
from tools.devices.build import gpu_of
from tools.gpus import GpuSpec
from tools.pool import EvaluationPool
from tools.roofline import floor_us


class Stopwatch:
    """Seconds between laps."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()

    def running(self) -> float:
        """Seconds since the last lap, which goes on."""
        return self._clock() - self._last

    def lap(self) -> float:
        """Seconds since the last lap, or since the start."""
        now = self._clock()
        taken, self._last = now - self._last, now
        return taken


@dataclass(frozen=True)
class RunContext:
    """Everything a node may touch."""

    run: Run
    problem: Problem
    twin: Problem
    """The reduced twin that trials run at, or the problem itself."""
    settings: Settings
    store: Store
    archive: Archive
    team: Team
    pool: EvaluationPool
    slots: threading.BoundedSemaphore
    """As many as the pool has workers: langgraph queues checkpoint writes in the pool that runs the nodes, so
    nodes limit themselves and the graph runs with more threads than branches."""
    stopwatch: Stopwatch
    deadline: Deadline
    past: Past
    asker: Asker | None = None
    """The run's language models; None where the agents are rules."""
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    @cached_property
    def gpu(self) -> GpuSpec:
        """The GPU that times refer to."""
        return gpu_of(self.settings.device_spec)

    @property
    def budget(self) -> Budget:
        """Limits of the search."""
        settings = self.settings
        return Budget(
            settings.generations,
            settings.wall_s,
            settings.device_budget_s,
            settings.caps,
            settings.max_evaluations,
        )

    def spent(self, wall_s: float, first_evaluation: int) -> Spent:
        """What the run has used so far. first_evaluation: the newest verdict of before the run."""
        budgeted = self.settings.device_budget_s is not None
        device_s = self.store.device_seconds(self.run.id, after=first_evaluation) if budgeted else 0.0
        limited = self.settings.max_evaluations is not None
        judged = self.store.counts(self.run.id).evaluated if limited else 0
        return Spent(wall_s, device_s, self.store.spend(self.run.id), judged)

    @cached_property
    def evolution(self) -> Evolution:
        """How the population evolves."""
        settings = self.settings
        return Evolution.usual(
            settings.population,
            settings.island_count,
            cells(self.problem, self.gpu),
            Fitness(settings.correctness_weight, settings.performance_weight),
            migrate_every=settings.migrate_every,
            restart_after=settings.restart_after,
        )

    def set_deadline(self, spent_s: float, first_evaluation: int) -> None:
        """Set the run's deadline to what its budgets leave; see `spent` for the arguments."""
        limit, device_s = self.settings.device_budget_s, float("inf")
        if limit is not None:
            device_s = limit - self.store.device_seconds(self.run.id, after=first_evaluation)
        self.deadline.set(self.settings.wall_s - spent_s - self.stopwatch.running(), device_s)

    @property
    def reduced(self) -> Problem | None:
        """The reduced twin; None where trials run at the problem's own shapes."""
        return None if self.twin is self.problem else self.twin

    @cached_property
    def bench(self) -> Bench:
        """Where and how trials are made."""
        return Bench(
            problem=self.problem,
            twin=self.twin,
            policy=self.settings.policy,
            device=self.settings.device_spec,
            directory=self.settings.root / "runs" / self.run.id / "trials",
            deadline_s=self.settings.capture_deadline_s,
            seeds=self.trial_seed,
            modes=self.settings.compile_modes,
        )

    @cached_property
    def case(self) -> Case:
        """What every candidate is judged on; its trials are drawn on first use, by the `baseline` node."""
        return prepare_case(self.bench, self.pool)

    def candidate_id(self, proposal_id: str, repair: int = 0) -> str:
        """Unique and the same whenever the run resumes: a node that runs twice writes the same candidate."""
        return f"{self.run.id}-{proposal_id}" + (f"-r{repair}" if repair else "")

    @cached_property
    def members(self) -> Recent[str, Member]:
        """Judged candidates as the store has them: survivors, elites, parents and the current generation."""
        return Recent(self._remembered)

    @cached_property
    def _programs(self) -> Recent[str, Program]:
        return Recent(self._remembered)

    @property
    def _remembered(self) -> int:
        return 3 * self.settings.population + BINS**3 + 16

    def member(self, candidate_id: str) -> Member:
        """A judged candidate with its program. Raises WarpsmithError if it was never judged."""
        known = self.members.get(candidate_id)
        if known is not None:
            return known
        candidate = self.store.candidate(candidate_id)
        evaluation = self.verdict(candidate.program_hash)
        if evaluation is None:
            raise WarpsmithError(f"candidate {candidate_id} has no verdict in the store")
        return self.members.put(
            candidate_id, Member(candidate, self.program(candidate.program_hash), evaluation)
        )

    def program(self, program_hash: str) -> Program:
        """A program of the store. Raises StoreError where it is absent."""
        return self._programs.get(program_hash) or self._programs.put(
            program_hash, self.store.program(program_hash)
        )

    def verdict(self, program_hash: str) -> Evaluation | None:
        """What the store already knows of a program under this problem, policy and device."""
        return self.store.find_evaluation(
            program_hash=program_hash,
            problem_hash=self.run.problem_hash,
            policy_hash=self.settings.policy.content_hash(),
            device=self.run.device,
        )

    def add(self, candidate: Candidate, program: Program) -> None:
        """Remember a candidate with its program; repeating it changes nothing."""
        with self.store.together():
            self.store.put_program(program)
            self.store.put_candidate(candidate)
        self._programs.put(candidate.program_hash, program)

    def recall(self) -> list[Recalled]:
        """Innovations of the archive: the run's seeds, then those that resemble the problem, most similar first."""
        return recalled(self.archive, self.problem, self.gpu.arch, self.settings.seed_ids)

    def earlier(self, generation: int) -> Earlier:
        """What the generations before this one have left to the run's models; nothing where there are none."""
        return Earlier() if self.asker is None else self.past.before(generation)

    def scene(self, generation: int, lessons: Sequence[str], hints: Sequence[str]) -> Scene:
        """What every prompt of a generation begins with."""
        return Scene(
            problem=self.problem,
            twin=self.reduced,
            gpu=self.gpu,
            floor_us=floor_us(self.problem.work, self.problem.dtype, self.gpu),
            generation=generation,
            notes=Notes(tuple(lessons), tuple(hints), self.earlier(generation).failures),
            relative_tolerance=self.settings.relative_tolerance,
            eager_factor=self.settings.eager_factor,
        )

    def trial_seed(self, index: int, purpose: str) -> int:
        """Seed of one trial: hidden from whoever writes programs, different in every run."""
        text = f"{self.run.id}/{self.run.seed}/{purpose}/{index}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")

    def record(self, role: str, decision: str, generation: int, *, candidate_id: str | None = None) -> None:
        """Log one decision of a rules agent; the same decision is logged once however often its node runs."""
        key = f"{role}/{generation}/{candidate_id}/{decision}"
        digest = hashlib.sha256(key.encode()).hexdigest()[:16]
        self.store.put_event(
            AgentEvent(
                id=f"{self.run.id}-{digest}",
                run_id=self.run.id,
                at=self.now().isoformat(timespec="seconds"),
                role=role,
                agent="rules",
                generation=generation,
                candidate_id=candidate_id,
                latency_s=0.0,
                decision=decision,
            )
        )
