"""A plan loaded on a GPU, and one checked forward of it.

Sanitizing covers: writes up to a few KiB outside a tensor, illegal addresses, reads of what was never written, results
that differ from run to run (a warning: atomics on floats do that too). It does not cover: reads out of bounds, races
that happen not to show. The simulator sees those; compute-sanitizer does where it is installed.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from memory.records import Diagnostic, Stage, Status
from tools.binding import BoundPlan
from tools.devices.cuda_context import CudaContext
from tools.devices.cuda_memory import CudaMemory, to_host
from tools.devices.cuda_plan import PlanRunner, touched
from tools.devices.cuda_replay import Replayed
from tools.devices.faults import fault, garbled, modified
from tools.devices.port import Executed, Fault, Given, Ran
from tools.devices.simulated_memory import POISON
from tools.nvrtc import KernelResources

OTHER_POISON = 0xA5
"""Poison of the second sanitized run: whatever depends on unwritten memory differs from the first."""
POISONS = (POISON, OTHER_POISON, 0)
"""What memory holds before one trial after another, so that no program is right because of what it finds there."""


_SAME_WIDTH = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class CudaProgram:
    """A plan loaded on a GPU. Its memory is made at the first forward and kept for the next."""

    def __init__(
        self,
        context: CudaContext,
        plan: BoundPlan,
        runner: PlanRunner,
        resources: Mapping[str, KernelResources],
    ) -> None:
        self.context = context
        self.plan = plan
        self.runner = runner
        self.resources = resources
        self._memory: CudaMemory | None = None
        self._runs = 0

    def execute(self, given: Given, *, sanitize: bool) -> Executed | Fault:
        """One forward: buffers poisoned before, inputs and state checked unmodified after.

        Raises: DeviceLost.
        """
        done = self.run(given, sanitize=sanitize)
        if isinstance(done, Fault):
            return done
        return Executed({name: to_host(tensor) for name, tensor in done.results.items()}, done.warnings)

    def run(self, given: Given, *, sanitize: bool) -> Ran | Fault:
        """As `execute`, with the results left on the device: theirs until the next forward. Raises: DeviceLost."""
        stage = Stage.SANITIZE if sanitize else Stage.CORRECTNESS
        with torch.no_grad():
            outcome = self.context.guarded(lambda: self._checked(given, sanitize), stage)
        if isinstance(outcome, Fault) and outcome.status is Status.OUT_OF_MEMORY:
            self._memory = None
            torch.cuda.empty_cache()
        return outcome

    def _checked(self, given: Given, sanitize: bool) -> Ran | Fault:
        if not sanitize:
            self._runs += 1
            results = self._forward(given, POISONS[self._runs % len(POISONS)], sanitize=False)
            return results if isinstance(results, Fault) else Ran(results)
        first = self._forward(given, POISON, sanitize=True)
        if isinstance(first, Fault):
            return first
        second = self._forward(given, OTHER_POISON, sanitize=True)
        if isinstance(second, Fault):
            return second
        differing = [name for name in first if not same_bits(first[name], second[name])]
        return Ran(first, (_unsteady(differing),) if differing else ())

    def _forward(self, given: Given, poison: int, *, sanitize: bool) -> dict[str, torch.Tensor] | Fault:
        uploads = {
            name: self.context.uploads.get(given[name], spec) for name, spec in self.plan.given.items()
        }
        memory = self._memory_for(sanitize)
        memory.fill(uploads, poison)
        tensors = memory.tensors()
        self.runner.prepare(tensors, copy=sanitize)
        prepared = {name: tensors[name].clone() for name in self.prepared}
        if self.plan.replay and not sanitize:
            replayed = Replayed(self.runner, tensors, self.plan.results)
            # Capturing ran the steps once: only what the replay writes may count.
            memory.poison(self.written, poison)
            tensors = {**tensors, **replayed.run()}
        else:
            self.runner.forward(tensors, copy=sanitize)
        # Before anything else touches the device: an error of the program must show here.
        torch.cuda.synchronize(self.context.index)
        breached = memory.breached(poison) if sanitize else []
        if breached:
            message = f"the program wrote outside its tensors: {'; '.join(breached)}"
            return fault(Status.SANITIZER_ERROR, Stage.SANITIZE, "guard_zone", message)
        changed = memory.changed(uploads)
        changed += [name for name, before in prepared.items() if not same_bits(before, tensors[name])]
        if changed:
            return modified(changed)
        results = {name: tensors[name] for name in self.plan.results}
        wrong = [name for name, tensor in results.items() if _is_garbled(tensor)]
        return garbled(wrong) if wrong else results

    @property
    def prepared(self) -> list[str]:
        """Buffers that the prepare steps make: no call may change them."""
        return [n for n in self.plan.buffers if any(n in touched(step) for step in self.plan.prepare)]

    @property
    def written(self) -> list[str]:
        """Buffers that the steps of every call write: nothing that they held before may matter."""
        prepared = set(self.prepared)
        return [n for n, b in self.plan.buffers.items() if n not in prepared and not b.zero]

    def _memory_for(self, sanitize: bool) -> CudaMemory:
        """Sanitized runs give every buffer zones; others take library results as they come, as timed runs do."""
        if sanitize:
            return CudaMemory(self.plan, self.runner.contiguous, self.context.device)
        if self._memory is None:
            self._memory = CudaMemory(self.plan, self.runner.stored, self.context.device)
        return self._memory


def _unsteady(names: list[str]) -> Diagnostic:
    message = (
        f"two runs on the same inputs gave different bits in {', '.join(names)}: an atomic sum of floats, a race, or"
        " memory read before it is written"
    )
    return Diagnostic(stage=Stage.SANITIZE, rule="nondeterministic", message=message, severe=False)


def same_bits(mine: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Equal bit for bit; as integers, so that NaN equals itself."""
    return torch.equal(_bits(mine), _bits(theirs))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(_SAME_WIDTH[tensor.element_size()])


def _is_garbled(tensor: torch.Tensor) -> bool:
    """True for a boolean with bytes other than 0 and 1: unwritten or wrongly typed."""
    return tensor.dtype is torch.bool and bool((tensor.contiguous().view(torch.uint8) > 1).any())
