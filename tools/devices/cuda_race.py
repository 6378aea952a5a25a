"""Timing on a GPU: a loaded plan against eager PyTorch, in turn, with cold caches and rotating input sets.

Here: events, the cache flush, input sets in memory of their own, and what is checked once the clock has stopped.
Not here: the loop and the statistics (tools.timing), where a plan's time goes (cuda_profile).
Host work overlaps with the flushes before it, for eager and candidate alike: short programs show their device time,
long ones of short kernels the host's.
Covers: results memoised by pointer or content (sets rotate, and outputs are poisoned before every timed call), right
at first and wrong later (what the last timed calls left is returned to be judged), inputs changed while timed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from memory.errors import WarpsmithError
from memory.records import BaselineTime
from tools.devices.cuda_memory import CudaMemory, extent_bytes, storage_of
from tools.devices.cuda_plan import Tensors
from tools.devices.cuda_profile import profile_steps
from tools.devices.cuda_program import POISONS, CudaProgram, same_bits
from tools.devices.cuda_replay import Replayed
from tools.devices.faults import modified
from tools.devices.port import Contest, Fault, Given, Measured, Raced
from tools.devices.simulated_memory import POISON
from tools.timing import Samples, TimingBudget, interleave, median_interval, ratio_interval

MAX_SETS = 3
CANDIDATE = "candidate"
MEMORY_FRACTION = 0.4
"""Share of the free memory that input sets may take together."""
_FLUSH_FACTOR = 4
_MIN_FLUSH_BYTES = 256 << 20


LEAD_US = 150.0
"""Device time that the host has to issue a run in before its clock starts. Long enough that the host's jitter does not
show in short programs; a program that takes the host longer to issue is bound by it, here as in use."""


class CudaTimer:
    """Event times, with the L2 cache full of something else before every run, and the host ahead of the device."""

    def __init__(self, device: torch.device, l2_bytes: int) -> None:
        size = max(_FLUSH_FACTOR * l2_bytes, _MIN_FLUSH_BYTES) + (1 << 20)
        self._junk = torch.empty(size, dtype=torch.int8, device=device)
        self._device = device
        self._fills = 1
        readings = [self.start(self.cool) for _ in range(5)]
        self.settle()
        self._fills = max(1, math.ceil(LEAD_US / max(min(read() for read in readings), 1.0)))

    def cool(self) -> None:
        """Write more than the cache holds, for as long as the host's lead lasts."""
        for _ in range(self._fills):
            self._junk.fill_(1)

    def start(self, work: Callable[[], object]) -> Callable[[], float]:
        """Run work between two events; the returned function reads their distance in µs after `settle`."""
        first = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        last = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        first.record()
        work()
        last.record()
        return lambda: float(first.elapsed_time(last)) * 1e3

    def settle(self) -> None:
        """Wait for the device."""
        torch.cuda.synchronize(self._device)


@dataclass(frozen=True)
class InputSet:
    """One set of inputs and state with memory for everything the plan makes of it; prepared."""

    memory: CudaMemory
    base: Tensors
    uploads: Mapping[str, torch.Tensor]


class _ReplayedSet:
    """A set on which the plan is replayed as an export does it: inputs copied in, results copied out."""

    def __init__(self, program: CudaProgram, given: InputSet) -> None:
        plan, device = program.plan, program.context.device
        self._sources = {
            name: storage_of(plan.given[name], given.uploads[name], device) for name in plan.inputs
        }
        self._base = given.base
        self._replayed = Replayed(program.runner, given.base, plan.results)

    def run(self) -> Tensors:
        """One call of the user's."""
        for name, source in self._sources.items():
            self._base[name].copy_(source)
        return {name: result.clone() for name, result in self._replayed.run().items()}


class Course:
    """A loaded plan with its input sets."""

    def __init__(self, program: CudaProgram, givens: Sequence[Given]) -> None:
        """Lays out and prepares up to MAX_SETS sets, as memory allows. Raises what a forward raises."""
        self.program = program
        count = _sets_that_fit(program, len(givens))
        self.sets = [self._lay_out(given) for given in givens[:count]]
        self.last: list[Tensors] = [{} for _ in self.sets]
        self._written = program.written
        self._prepared = [{n: s.base[n].clone() for n in program.prepared} for s in self.sets]
        self._turn = 0
        self._replays = [_ReplayedSet(program, s) for s in self.sets] if program.plan.replay else []

    def run(self, index: int) -> None:
        """One forward on a set, without waiting for it."""
        self.last[index] = {}
        if self._replays:
            self.last[index] = self._replays[index].run()
            return
        # A mapping of its own: a library result of the last call may be a view of an input, and no kernel may find
        # it under its name.
        tensors = dict(self.sets[index].base)
        self.program.runner.forward(tensors)
        self.last[index] = {name: tensors[name] for name in self.program.plan.results}

    def given(self, index: int, names: Sequence[str]) -> list[torch.Tensor]:
        """A set's inputs or state."""
        return [self.sets[index].base[name] for name in names]

    def before_run(self, name: str, index: int) -> None:
        """Poison what the candidate writes before its own runs: only what it computes from now on can be right."""
        if name != CANDIDATE:
            return
        self._turn += 1
        self.sets[index].memory.poison(self._written, POISONS[self._turn % len(POISONS)])

    def results(self) -> tuple[Given, ...]:
        """What the last call on each set left."""
        return tuple(dict(made) for made in self.last)

    def changed(self) -> list[str]:
        """Inputs, state and prepared buffers that are no longer what they were."""
        given = [name for s in self.sets for name in s.memory.changed(s.uploads)]
        prepared = [
            name
            for s, before in zip(self.sets, self._prepared, strict=True)
            for name, tensor in before.items()
            if not same_bits(tensor, s.base[name])
        ]
        return list(dict.fromkeys((*given, *prepared)))

    def _lay_out(self, given: Given) -> InputSet:
        context, plan = self.program.context, self.program.plan
        uploads = {name: context.uploads.get(given[name], spec) for name, spec in plan.given.items()}
        memory = CudaMemory(plan, self.program.runner.stored, context.device)
        memory.fill(uploads, POISON)
        base = memory.tensors()
        self.program.runner.prepare(base)
        return InputSet(memory, base, uploads)


def race(
    program: CudaProgram,
    contest: Contest,
    eager: Callable[..., object],
    timer: CudaTimer,
    budget: TimingBudget,
) -> Raced | Fault:
    """Time the plan and eager, which is the contest's graph as a callable, in turn.

    Raises: WarpsmithError where eager cannot run; what a forward raises.
    """
    course = Course(program, contest.givens)
    names = (*contest.graph.inputs, *(entry.value for entry in contest.graph.state))
    arguments = [course.given(index, names) for index in range(len(course.sets))]
    with torch.no_grad():
        _try_eager(eager, arguments[0])
        samples = interleave(
            timer,
            {CANDIDATE: course.run, "eager": lambda index: eager(*arguments[index])},
            sets=len(course.sets),
            budget=budget,
            before_run=course.before_run,
        )
        changed = course.changed()
        if changed:
            return modified(changed)
        results = course.results()
        measured = _measured(samples["candidate"], course, timer)
    interval = median_interval(samples["eager"])
    baseline = BaselineTime(
        name="eager", median_us=interval.middle, low_us=interval.low, high_us=interval.high
    )
    return Raced(measured, baseline, ratio_interval(samples["eager"], samples["candidate"]), results)


def time_alone(program: CudaProgram, given: Given, timer: CudaTimer, budget: TimingBudget) -> Measured:
    """Time the plan without a baseline. Raises what a forward raises."""
    course = Course(program, [given])
    with torch.no_grad():
        samples = interleave(timer, {"candidate": course.run}, sets=1, budget=budget)
        return _measured(samples["candidate"], course, timer)


def _measured(samples: Samples, course: Course, timer: CudaTimer) -> Measured:
    interval = median_interval(samples)
    steps = profile_steps(course.program, dict(course.sets[0].base), timer)
    return Measured(interval.middle, interval.low, interval.high, int(samples.size), steps)


def _try_eager(eager: Callable[..., object], arguments: Sequence[torch.Tensor]) -> None:
    try:
        eager(*arguments)
        torch.cuda.synchronize()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        first = str(error).splitlines()[0]
        raise WarpsmithError(f"eager PyTorch cannot run the captured graph on this GPU: {first}") from error


def _sets_that_fit(program: CudaProgram, wanted: int) -> int:
    plan = program.plan
    specs = [*plan.given.values(), *(buffer.spec for buffer in plan.buffers.values())]
    one = sum(extent_bytes(spec) for spec in specs)
    free, _ = torch.cuda.mem_get_info(program.context.device)
    return max(1, min(MAX_SETS, wanted, int(free * MEMORY_FRACTION) // max(one, 1)))
