"""One program run on a GPU in a process that a profiler or a sanitizer wraps: `python -m tools.replay JOB`.

Here: the job file, the process, its report, and the parent's call. Not here: the tools (tools.nsight,
tools.compute_sanitizer). Nothing is timed, checked or compared here.
Every tensor is an allocation of its own, of exactly its bytes and without guard zones or poison: an access one byte
outside is outside for a sanitizer too, and memory that no one wrote stays unwritten.
Invariant: the report appears last and whole, so that its absence means the run did not get to its end.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import torch
from pydantic import Field, ValidationError

from memory.errors import StoreError, WarpsmithError
from memory.records import Problem, Program, Record, Stage, TensorSpec
from tools.arrays import torch_dtype
from tools.binding import BindError, BoundKernel, BoundPlan, bind
from tools.device_trials import DeviceTrial, DeviceTrials
from tools.devices.build import DeviceSpec, open_device
from tools.devices.cuda import CudaDevice
from tools.devices.cuda_memory import UploadCache, extent_bytes
from tools.devices.cuda_plan import PlanRunner, Tensors
from tools.devices.cuda_program import CudaProgram
from tools.devices.port import DeviceLost, Fault, Given
from tools.inputs import Distribution, draw_floats
from tools.nsight_process import Ended, run_tool
from tools.trial import MANIFEST, Manifest, Trial

_ALARM_MARGIN_S = 30
"""After the deadline that the parent keeps, the process ends itself, should the parent be gone."""

Bracket = tuple[Callable[[], object], Callable[[], object]]
"""What is called before and after the launches that a profiler is to see."""


class ReplayJob(Record):
    """Everything that the wrapped process needs."""

    program: Program
    problem: Problem
    """At the shapes that are run."""
    gpu: str
    """The device's own name."""
    index: int
    tf32: bool | None
    cache_dir: str
    """Where cubins are kept: a program that was verified need not be compiled again."""
    report: str
    """File that the report is written to."""
    purpose: Literal["profile", "check"]
    """`profile`: a warm-up first, and the profiler is told where the passes begin and end. `check`: neither."""
    trial_dir: str | None = None
    """Trial whose inputs and weights are used; at other shapes inputs are drawn after it. None: normal draws, integers
    zero."""
    passes: int = Field(default=1, ge=1)
    """Forwards."""
    alarm_s: int = Field(gt=0)


class ReplayReport(Record):
    """What the process did."""

    device: str | None
    """None where none could be opened."""
    launches: dict[str, int] = {}
    """Kernel launches of one forward, by entry."""
    passes: int = 0
    failure: str | None = None


@dataclass(frozen=True)
class Replayed:
    """A tool's run around a replay."""

    ended: Ended
    report: ReplayReport | None
    """None where the process did not get to its end."""

    @property
    def failure(self) -> str | None:
        """Why the program did not run to its end; None where it did."""
        if self.report is None:
            return "the wrapped process ended early"
        return self.report.failure


class Place(Protocol):
    """Where a program runs; tools.worker.WorkerSpec is one."""

    @property
    def device(self) -> DeviceSpec:
        """The device."""
        ...

    @property
    def cache_dir(self) -> Path:
        """Compile caches."""
        ...


@dataclass(frozen=True)
class Subject:
    """What a tool looks at: a program on a problem, and where it runs."""

    program: Program
    problem: Problem
    trial_dir: Path | None
    device: DeviceSpec
    cache_dir: Path


def replay_under(
    command: Sequence[str],
    subject: Subject,
    *,
    purpose: Literal["profile", "check"],
    environment: Mapping[str, str],
    deadline_s: float,
    folder: Path,
) -> Replayed:
    """Run `command` with the replay of a subject appended to it. `folder`: scratch space, empty."""
    report = folder / "report.json"
    job = ReplayJob(
        program=subject.program,
        problem=subject.problem,
        gpu=subject.device.gpu,
        index=subject.device.index,
        tf32=subject.device.tf32,
        cache_dir=str(subject.cache_dir.absolute()),
        report=str(report),
        purpose=purpose,
        trial_dir=None if subject.trial_dir is None else str(subject.trial_dir.absolute()),
        alarm_s=int(deadline_s) + _ALARM_MARGIN_S,
    )
    path = folder / "job.json"
    path.write_text(job.model_dump_json())
    # -P: a folder named `tools` where the tool starts is not ours.
    whole = [*command, sys.executable, "-P", "-m", "tools.replay", str(path)]
    ended = run_tool(whole, environment=environment, deadline_s=deadline_s, folder=folder)
    return Replayed(ended, _read_report(report))


def launches_of(plan: BoundPlan) -> dict[str, int]:
    """Kernel launches of one forward, by entry; those of `prepare` are not counted."""
    counts: dict[str, int] = {}
    for step in plan.steps:
        if isinstance(step, BoundKernel):
            counts[step.entry] = counts.get(step.entry, 0) + 1
    return counts


def lay_out(plan: BoundPlan, stored: Iterable[str], given: Given, device: torch.device) -> Tensors:
    """Memory for inputs, state and the buffers in `stored`, each an allocation of exactly its bytes.

    Inputs and state are copied in, buffers declared zero are zeroed, the others are left as they come.
    """
    uploads = UploadCache(device, 0)
    tensors: Tensors = {}
    for name, spec in plan.given.items():
        content = _allocate(spec, device)
        content.copy_(uploads.get(given[name], spec))
        tensors[name] = _shaped(content, spec)
    for name in stored:
        buffer = plan.buffers[name]
        content = _allocate(buffer.spec, device)
        if buffer.zero:
            content.zero_()
        tensors[name] = _shaped(content, buffer.spec)
    return tensors


def run_passes(runner: PlanRunner, tensors: Tensors, job: ReplayJob, bracket: Bracket) -> None:
    """Prepare, warm up where a profiler watches, then the passes between the bracket's calls."""
    begin, end = bracket
    with torch.no_grad():
        runner.prepare(tensors)
        if job.purpose == "profile":
            runner.forward(dict(tensors))
        begin()
        for _ in range(job.passes):
            # A mapping of its own: library results are rebound in it.
            values = dict(tensors)
            if job.purpose == "check":
                _never_free(values)
            runner.forward(values)
        end()


def replay(job: ReplayJob) -> ReplayReport:
    """Run the job in this process. What goes wrong is in the report."""
    opened: str | None = None
    try:
        plan = bind(job.program, job.problem)
        spec = DeviceSpec("cuda", job.gpu, index=job.index, tf32=job.tf32)
        with open_device(spec, Path(job.cache_dir)) as device:
            opened = device.name
            if not isinstance(device, CudaDevice):
                raise WarpsmithError(f"{device.name} is no GPU")
            fault = _run(device, plan, job)
    except DeviceLost as lost:
        fault = lost.fault
    except (WarpsmithError, BindError) as error:
        return ReplayReport(device=opened, failure=str(error))
    if fault is not None:
        return ReplayReport(device=opened, failure=fault.diagnostics[0].message)
    return ReplayReport(device=opened, launches=launches_of(plan), passes=job.passes)


def main(arguments: Sequence[str]) -> int:
    """Run the job that a file describes; 0 where it ran to its end, 1 where the report says why not."""
    job = ReplayJob.model_validate_json(Path(arguments[0]).read_bytes())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Ends this process in native code too.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(job.alarm_s)
    report = replay(job)
    path = Path(job.report)
    partial = path.with_suffix(f".partial-{os.getpid()}")
    partial.write_text(report.model_dump_json())
    partial.replace(path)
    if report.failure is not None:
        print(f"replay: {report.failure}", file=sys.stderr)  # noqa: T201 - a tool's log shows it
        return 1
    return 0


def _run(device: CudaDevice, plan: BoundPlan, job: ReplayJob) -> Fault | None:
    program = device.load(plan)
    if isinstance(program, Fault):
        return program
    outcome = device.context.guarded(lambda: _passes(program, job), Stage.TIMING)
    return outcome if isinstance(outcome, Fault) else None


def _passes(program: CudaProgram, job: ReplayJob) -> None:
    place = program.context.device
    tensors = lay_out(program.plan, program.runner.stored, given_for(job, program.plan, place), place)
    _never_free(tensors)
    profiled = job.purpose == "profile"
    run_passes(program.runner, tensors, job, _profiler(place) if profiled else (_nothing, _nothing))


def _never_free(held: object) -> None:
    """torch ends a process that gives back memory of a broken context, before it could report anything."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))


def _profiler(place: torch.device) -> Bracket:
    """What `--profile-from-start off` waits for; the device is idle at both."""

    def begin() -> None:
        torch.cuda.synchronize(place)
        torch.cuda.profiler.start()  # type: ignore[no-untyped-call]

    def end() -> None:
        torch.cuda.synchronize(place)
        torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]

    return begin, end


def _nothing() -> None:
    """The bracket of a run that nobody profiles."""


def given_for(job: ReplayJob, plan: BoundPlan, place: torch.device) -> Given:
    """Inputs and state at the plan's shapes. Raises: StoreError where the trial cannot be read."""
    if job.trial_dir is None:
        return drawn(plan)
    trial = _trial(Path(job.trial_dir))
    data = trial.load()
    held = {**data.inputs, **data.state}
    if all(held[name].shape == spec.shape for name, spec in plan.given.items()):
        return held
    # A trial of the reduced twin: the device draws inputs like its own at full size, and the weights stay.
    draw = DeviceTrial(trial.seed, trial.distribution, trial)
    return DeviceTrials(job.problem.graph, place).draw(draw, data)


def drawn(plan: BoundPlan) -> dict[str, torch.Tensor]:
    """Normal draws for every floating input and state entry, zeros for the others, on the host."""
    generator = np.random.default_rng(0)
    given: dict[str, torch.Tensor] = {}
    for name, spec in plan.given.items():
        if spec.dtype.is_floating:
            values = draw_floats(spec.shape, spec.dtype, Distribution.NORMAL, generator)
            given[name] = torch.from_numpy(values).to(torch_dtype(spec.dtype))
        else:
            given[name] = torch.zeros(spec.shape, dtype=torch_dtype(spec.dtype))
    return given


def _trial(directory: Path) -> Trial:
    try:
        manifest = Manifest.model_validate_json((directory / MANIFEST).read_bytes())
    except (OSError, ValidationError) as error:
        raise StoreError(f"trial in {directory} cannot be read: {error}; delete it and run again") from error
    return Trial(manifest.seed, manifest.distribution, directory)


def _read_report(path: Path) -> ReplayReport | None:
    try:
        return ReplayReport.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def _allocate(spec: TensorSpec, device: torch.device) -> torch.Tensor:
    return torch.empty(extent_bytes(spec), dtype=torch.uint8, device=device)


def _shaped(content: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    return content.view(torch_dtype(spec.dtype)).as_strided(spec.shape, spec.strides)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
