"""The replay: exact memory without guard zones, the passes that a profiler sees, and a report of how it ended."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from memory.errors import StoreError
from memory.records import Buffer, DType, LibraryStep, Program
from tests.cases import scaled_relu_case
from tests.problems import scaled_relu_problem, scaled_relu_program, scaled_relu_step
from tests.tools.fake_tools import ends_soon
from tools.arrays import array_from
from tools.binding import BoundPlan, bind
from tools.devices.build import DeviceSpec
from tools.devices.cuda_driver import Launcher
from tools.devices.cuda_plan import PlanRunner
from tools.nsight_process import run_tool, tool_environment
from tools.replay import ReplayJob, Subject, drawn, given_for, launches_of, lay_out, replay_under, run_passes

CPU = torch.device("cpu")
PROBLEM = scaled_relu_problem()
NO_GPU = DeviceSpec("cuda", "no such GPU", index=99)


class NoLauncher(Launcher):
    """Enough of a launcher for plans without kernels."""

    def __init__(self) -> None:
        """Opens nothing."""

    def stream(self) -> None:
        """No stream."""


def library_program() -> Program:
    buffers = tuple(Buffer(name=n, shape=("ROWS", "COLS"), dtype=DType.F32) for n in ("t", "y"))
    steps = (
        LibraryStep(op="aten.mul.Tensor", args=("x", "weight"), outputs=("t",)),
        LibraryStep(op="aten.relu.default", args=("t",), outputs=("y",)),
    )
    return scaled_relu_program("", buffers=buffers, steps=steps, tunables=())


def job(folder: Path, *, purpose: str = "profile", passes: int = 1, trial: Path | None = None) -> ReplayJob:
    return ReplayJob.model_validate(
        {
            "program": library_program().model_dump(),
            "problem": PROBLEM.model_dump(),
            "gpu": "x",
            "index": 99,
            "tf32": None,
            "cache_dir": str(folder),
            "report": str(folder / "report.json"),
            "purpose": purpose,
            "passes": passes,
            "trial_dir": None if trial is None else str(trial),
            "alarm_s": 60,
        }
    )


def run_on_cpu(plan: BoundPlan, one: ReplayJob) -> list[str]:
    """What happened, in order, with every library call as `mul` or `relu`."""
    happened: list[str] = []
    runner = PlanRunner(plan, {}, NoLauncher(), CPU)
    tensors = lay_out(plan, runner.stored, drawn(plan), CPU)

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            happened.append(func.__name__.partition(".")[0])
            return func(*args, **(kwargs or {}))

    with Watch():  # type: ignore[no-untyped-call]
        run_passes(runner, tensors, one, (lambda: happened.append("begin"), lambda: happened.append("end")))
    return [word for word in happened if word in ("begin", "end", "mul", "relu")]


def test_every_tensor_is_an_allocation_of_exactly_its_bytes() -> None:
    plan = bind(scaled_relu_program(), PROBLEM)
    tensors = lay_out(plan, ["y"], drawn(plan), CPU)
    assert set(tensors) == {"x", "weight", "y"}
    for name, tensor in tensors.items():
        assert tensor.storage_offset() == 0
        assert tensor.untyped_storage().nbytes() == plan.spec(name).bytes
        assert tuple(tensor.shape) == plan.spec(name).shape
    places = {tensor.untyped_storage().data_ptr() for tensor in tensors.values()}
    assert len(places) == 3


def test_buffers_declared_zero_are_zeroed() -> None:
    buffers = (Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32, zero=True),)
    plan = bind(scaled_relu_program(buffers=buffers), PROBLEM)
    assert not lay_out(plan, ["y"], drawn(plan), CPU)["y"].any()


def test_launches_of_one_forward_are_counted_by_entry() -> None:
    program = scaled_relu_program(prepare=(), steps=(scaled_relu_step(), scaled_relu_step()))
    assert launches_of(bind(program, PROBLEM)) == {"scaled_relu": 2}


@pytest.mark.parametrize("purpose", ["profile", "check"])
def test_the_profiler_sees_the_passes_and_not_the_warm_up(tmp_path: Path, purpose: str) -> None:
    plan = bind(library_program(), PROBLEM)
    happened = run_on_cpu(plan, job(tmp_path, purpose=purpose, passes=2))
    forward = ["mul", "relu"]
    warm = forward if purpose == "profile" else []
    assert happened == [*warm, "begin", *forward, *forward, "end"]


def test_inputs_and_weights_are_a_trials_where_its_shapes_fit(tmp_path: Path) -> None:
    case = scaled_relu_case(tmp_path)
    plan = bind(library_program(), PROBLEM)
    trial = case.trials[0]
    given = given_for(job(tmp_path, trial=trial.directory), plan, CPU)
    assert np.array_equal(np.asarray(given["x"]), trial.load().inputs["x"])
    assert np.array_equal(np.asarray(given["weight"]), trial.load().state["weight"])


def test_a_twins_trial_keeps_its_weights_and_has_inputs_drawn_at_full_size(tmp_path: Path) -> None:
    case = scaled_relu_case(tmp_path, twin=scaled_relu_problem(3, 40))
    plan = bind(library_program(), PROBLEM)
    trial = case.trials[0]
    given = given_for(job(tmp_path, trial=trial.directory), plan, CPU)
    x, weight = given["x"], given["weight"]
    assert isinstance(x, torch.Tensor) and isinstance(weight, torch.Tensor)
    assert tuple(x.shape) == (33, 40)
    assert np.array_equal(array_from(weight), trial.load().state["weight"])


def test_a_trial_that_is_not_there_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        given_for(job(tmp_path, trial=tmp_path), bind(library_program(), PROBLEM), CPU)


def test_a_replay_without_its_gpu_ends_with_a_report(tmp_path: Path, cache_dir: Path) -> None:
    subject = Subject(scaled_relu_program(), PROBLEM, None, NO_GPU, cache_dir)
    replayed = replay_under(
        ["/usr/bin/env", "REPLAYED=1"],
        subject,
        purpose="profile",
        environment=tool_environment(),
        deadline_s=90.0,
        folder=tmp_path,
    )
    assert replayed.ended.returncode == 1
    assert replayed.report is not None and replayed.report.device is None
    assert replayed.failure is not None and "NVIDIA driver" in replayed.failure
    assert replayed.failure in replayed.ended.output


def test_a_replay_that_does_not_get_to_its_end_leaves_no_report(tmp_path: Path, cache_dir: Path) -> None:
    subject = Subject(scaled_relu_program(), PROBLEM, None, NO_GPU, cache_dir)
    replayed = replay_under(
        ["/bin/false"],
        subject,
        purpose="check",
        environment=tool_environment(),
        deadline_s=10.0,
        folder=tmp_path,
    )
    assert replayed.report is None
    assert replayed.failure == "the wrapped process ended early"


def test_a_flood_of_output_is_read_head_and_tail(tmp_path: Path) -> None:
    command = [sys.executable, "-S", "-c", "print('first'); print('x' * 1_000_000); print('last')"]
    ended = run_tool(command, environment={}, deadline_s=20.0, folder=tmp_path)
    assert ended.returncode == 0
    assert ended.output.startswith("first") and ended.output.rstrip().endswith("last")
    assert len(ended.output) < 200_000


def test_children_that_a_tool_leaves_behind_are_ended(tmp_path: Path) -> None:
    code = "import subprocess; print(subprocess.Popen(['/bin/sleep', '60']).pid)"
    ended = run_tool([sys.executable, "-S", "-c", code], environment={}, deadline_s=20.0, folder=tmp_path)
    assert ended.returncode == 0
    assert ends_soon(int(ended.output))
