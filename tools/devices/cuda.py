"""The CUDA adapter: kernels run on a real GPU, times are measured.

Here: the Device port over a GPU. Not here: what a forward checks (cuda_program), timing (cuda_race), the driver
(cuda_driver), compiling (compiling).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch

from memory.records import DType, Graph, Stage, Status, TensorSpec
from tools.arrays import Array, numpy_dtype, torch_dtype
from tools.binding import BoundKernel, BoundPlan
from tools.devices.compiling import compile_plan
from tools.devices.cuda_baselines import time_baselines
from tools.devices.cuda_context import CudaContext
from tools.devices.cuda_driver import CubinLoader, LoadedKernel, SharedBytes
from tools.devices.cuda_plan import PlanRunner
from tools.devices.cuda_program import CudaProgram
from tools.devices.cuda_race import CudaTimer, race, time_alone
from tools.devices.port import Baselines, CompileMode, Contest, Fault, Given, Loaded, Measured, Raced, Ran
from tools.eager_graph import operations
from tools.gpus import GpuSpec
from tools.nvrtc import Compiled, NvrtcCompiler
from tools.timing import TimingBudget


class CudaDevice:
    """One GPU: the Device and RacingDevice ports. Opening it makes it current for this process."""

    def __init__(
        self,
        nvrtc: NvrtcCompiler,
        index: int = 0,
        *,
        tf32: bool | None = None,
        budget: TimingBudget | None = None,
    ) -> None:
        """tf32: whether library calls, the candidate's and eager's alike, may round to TF32 inside; None leaves what
        PyTorch itself does, which is TF32 in convolutions only.

        Raises: ToolMissing without a driver, a GPU or a torch that can use it.
        """
        self.context = CudaContext(index, tf32=tf32)
        self._nvrtc = nvrtc
        self._budget = budget or TimingBudget()
        self._timer: CudaTimer | None = None
        self._last: CudaProgram | None = None
        """What was loaded last: a program is verified, then raced."""
        self._eager: tuple[Graph, Callable[..., object]] | None = None

    @property
    def name(self) -> str:
        """`cuda:` and the GPU's own name."""
        return f"cuda:{self.context.name}"

    @property
    def gpu(self) -> GpuSpec:
        """Limits and rates of the GPU."""
        return self.context.gpu

    @property
    def time_source(self) -> Literal["measured", "modelled"]:
        """Always measured."""
        return "measured"

    @property
    def timer(self) -> CudaTimer:
        """Events and the flush buffer, made on first use."""
        if self._timer is None:
            self._timer = CudaTimer(self.context.device, self.gpu.l2_bytes)
        return self._timer

    def load(self, plan: BoundPlan) -> CudaProgram | Fault:
        """Compile and load. Raises: ToolMissing without NVRTC; DeviceLost."""
        if self._last is not None and self._last.plan is plan:
            return self._last
        self._last = None
        compiled = compile_plan(self._nvrtc, plan, self.gpu)
        if isinstance(compiled, Fault):
            return compiled
        kernels = self.context.guarded(lambda: _kernels(plan, compiled, self.context.cubins), Stage.COMPILE)
        if isinstance(kernels, Fault):
            return kernels
        runner = PlanRunner(plan, kernels, self.context.launcher, self.context.device)
        self._last = CudaProgram(self.context, plan, runner, compiled.resources if compiled else {})
        return self._last

    @property
    def place(self) -> torch.device:
        """The GPU, as torch names it."""
        return self.context.device

    def upload(self, array: Array, dtype: DType) -> torch.Tensor:
        """A host array as a dense tensor of this GPU, kept for the next candidate."""
        spec = TensorSpec.dense(array.shape, dtype)
        raw = self.context.uploads.get(array, spec)
        return raw[: spec.bytes].view(torch_dtype(dtype)).view(array.shape)

    def release(self) -> None:
        """Forget the program loaded last and every upload, and hand the memory back."""
        self._last = None
        self._eager = None
        self.context.uploads.clear()
        torch.cuda.empty_cache()

    def run_tensors(self, loaded: Loaded, given: Given, *, sanitize: bool) -> Ran | Fault:
        """One checked forward, its results left on the GPU: valid until the next. Raises: DeviceLost."""
        if not isinstance(loaded, CudaProgram):
            raise TypeError(f"a {type(loaded).__name__} was not loaded by this device")
        return loaded.run(given, sanitize=sanitize)

    def measure(self, plan: BoundPlan) -> Measured | Fault:
        """Time of one forward on drawn inputs (integers zero), without a baseline. Raises: DeviceLost."""
        program = self.load(plan)
        if isinstance(program, Fault):
            return program
        given = _drawn(plan)
        timed = lambda: time_alone(program, given, self.timer, self._budget)  # noqa: E731
        return self.context.guarded(timed, Stage.TIMING)

    def race(self, plan: BoundPlan, contest: Contest) -> Raced | Fault:
        """Time the plan and eager in turn. Raises: DeviceLost; WarpsmithError where eager cannot run."""
        program = self.load(plan)
        if isinstance(program, Fault):
            return program
        eager = self._eager_of(contest.graph)
        timed = lambda: race(program, contest, eager, self.timer, self._budget)  # noqa: E731
        return self.context.guarded(timed, Stage.TIMING)

    def _eager_of(self, graph: Graph) -> Callable[..., object]:
        """Made once for all candidates of a problem: torch.fx keeps the text of every module that it ever made."""
        if self._eager is None or self._eager[0] is not graph:
            self._eager = graph, operations(graph, self.context.device)
        return self._eager[1]

    def baselines(self, contest: Contest, modes: tuple[CompileMode, ...]) -> Baselines:
        """Time eager PyTorch and torch.compile's modes; those that fail are absent. Raises: DeviceLost."""
        timed = lambda: time_baselines(self.context, contest, modes, self.timer, self._budget)  # noqa: E731
        found = self.context.guarded(timed, Stage.TIMING)
        if isinstance(found, Fault):
            why = dict.fromkeys(("eager", *modes), found.diagnostics[0].message)
            return Baselines((), why, out_of_memory=found.status is Status.OUT_OF_MEMORY)
        return found


def _kernels(plan: BoundPlan, compiled: Compiled | None, cubins: CubinLoader) -> dict[str, LoadedKernel]:
    if compiled is None:
        return {}
    dynamic = dict.fromkeys(plan.entries, 0)
    for step in (*plan.prepare, *plan.steps):
        if isinstance(step, BoundKernel):
            dynamic[step.entry] = max(dynamic[step.entry], step.shared_bytes)
    needs = {
        entry: SharedBytes(compiled.resources[entry].static_shared_bytes, wanted)
        for entry, wanted in dynamic.items()
    }
    return cubins.load(compiled.cubin, needs)


def _drawn(plan: BoundPlan) -> dict[str, Array]:
    generator = np.random.default_rng(0)
    given: dict[str, Array] = {}
    for name, spec in plan.given.items():
        dtype = numpy_dtype(spec.dtype)
        # bf16 travels as bit patterns: zeros there.
        drawn = np.issubdtype(dtype, np.floating)
        given[name] = (
            generator.standard_normal(spec.shape).astype(dtype) if drawn else np.zeros(spec.shape, dtype)
        )
    return given
