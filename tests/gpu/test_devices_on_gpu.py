"""The CUDA device under the device port's contract, and what only a GPU can show. `pytest -m gpu tests/gpu`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from memory.records import Buffer, DType, LibraryStep, Program, Status
from tests.cases import scaled_relu_case
from tests.problems import KERNEL, scaled_relu_problem, scaled_relu_program, scaled_relu_step
from tests.tools.conformance import *  # noqa: F403 - the suite is the import
from tests.tools.conformance import PROBLEM, expected, given, results, run
from tools.binding import bind
from tools.devices.build import cuda_spec, open_device
from tools.devices.cuda import CudaDevice
from tools.devices.port import Contest, Device, Executed, Fault, Measured, Raced
from tools.evaluation import evaluate
from tools.trial_cache import TrialCache

Note = Callable[[str], None]

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]


@pytest.fixture(scope="module")
def device(cache_dir: Path) -> Iterator[Device]:
    """The device that the suite runs on."""
    with open_device(cuda_spec(), cache_dir) as opened:
        yield opened


def test_the_gpu_is_named_and_known(device: Device) -> None:
    assert device.name == f"cuda:{torch.cuda.get_device_name()}"
    major, minor = torch.cuda.get_device_capability()
    assert device.gpu.arch.startswith(f"sm_{major}{minor}")
    assert device.gpu.memory_bytes == pytest.approx(torch.cuda.mem_get_info()[1], rel=0.05)
    assert device.time_source == "measured"


def test_more_shared_memory_than_48_kib_can_be_asked_for(device: Device) -> None:
    source = KERNEL.replace("int i =", "extern __shared__ float s[]; s[threadIdx.x * 150] = 1.0f; int i =")
    step = scaled_relu_step(shared_bytes="128 * 150 * 4")
    assert np.array_equal(results(device, scaled_relu_program(source, steps=(step,)))["y"], expected())


def test_a_result_that_changes_from_run_to_run_is_a_warning(device: Device) -> None:
    source = KERNEL.replace("y[i] =", "y[i] = (i == 0) ? (float)(clock64() % 1000003) :")
    outcome = run(device, scaled_relu_program(source), sanitize=True)
    assert isinstance(outcome, Executed)
    assert [w.rule for w in outcome.warnings] == ["nondeterministic"]
    assert not outcome.warnings[0].severe


def test_a_read_of_what_was_never_written_is_noticed(device: Device) -> None:
    buffers = tuple(Buffer(name=n, shape=("ROWS", "COLS"), dtype=DType.F32) for n in ("t", "y"))
    source = KERNEL + (
        'extern "C" __global__ void peek(const float* t, float* y) {\n'
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (i < ROWS * COLS) y[i] = fminf(fmaxf(t[i], 0.0f), 1.0f) + (t[i] > -1.0f ? 2.0f : 0.0f);\n}\n"
        'extern "C" __global__ void touch(float* t) { if (threadIdx.x > 999) t[0] = 1.0f; }\n'
    )
    steps = (
        scaled_relu_step(entry="touch", args=("t",)),
        scaled_relu_step(entry="peek", args=("t", "y")),
        scaled_relu_step(args=("x", "weight", "t")),
    )
    outcome = run(device, scaled_relu_program(source, buffers=buffers, steps=steps), sanitize=True)
    assert isinstance(outcome, Executed)
    assert [w.rule for w in outcome.warnings] == ["nondeterministic"]


def test_a_plan_that_needs_more_memory_than_there_is_fails_alone(device: Device) -> None:
    huge = (
        Buffer(name="h", shape=("ROWS * 1000000", "COLS * 1000"), dtype=DType.F32),
        Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32),
    )
    steps = (
        LibraryStep(op="aten.zeros.default", args=((33000000, 40000),), outputs=("h",)),
        scaled_relu_step(),
    )
    outcome = run(device, scaled_relu_program(buffers=huge, steps=steps))
    assert isinstance(outcome, Fault)
    assert outcome.status is Status.OUT_OF_MEMORY, outcome
    assert np.array_equal(results(device, scaled_relu_program())["y"], expected())


def test_a_refused_library_call_leaves_the_device_usable(device: Device) -> None:
    steps = (LibraryStep(op="aten.mm.default", args=("x", "weight"), outputs=("y",)),)
    outcome = run(device, scaled_relu_program("", steps=steps))
    assert isinstance(outcome, Fault)
    assert outcome.status is Status.RUNTIME_ERROR
    assert np.array_equal(results(device, scaled_relu_program())["y"], expected())


def test_a_plain_elementwise_kernel_is_timed_at_a_plausible_bandwidth(device: Device, note: Note) -> None:
    problem = scaled_relu_problem(16384, 4096)
    measured = device.measure(bind(scaled_relu_program(), problem))
    assert isinstance(measured, Measured)
    assert measured.rounds is not None and measured.rounds >= 10
    rate = 2 * 16384 * 4096 * 4 / measured.median_us / 1e3
    note(f"{measured.median_us:.1f} µs, {rate:,.0f} GB/s of {device.gpu.dram_gbps:,.0f}; {measured.steps[0]}")
    # Scalar accesses and a remainder an element: well below the copy bandwidth, and above a quarter of it.
    assert 0.25 < rate / device.gpu.dram_gbps < 1.1
    assert measured.steps[0].us == pytest.approx(measured.median_us, rel=0.3)


def raced(device: Device, source: str) -> Raced:
    assert isinstance(device, CudaDevice)
    contest = Contest(PROBLEM.graph, (given(0), given(1)))
    outcome = device.race(bind(scaled_relu_program(source), PROBLEM), contest)
    assert isinstance(outcome, Raced), outcome
    return outcome


def left(outcome: Raced, index: int) -> NDArray[np.float32]:
    """What the last timed call on a set left."""
    tensor = outcome.results[index]["y"]
    assert isinstance(tensor, torch.Tensor)
    return np.asarray(tensor.cpu().numpy(), dtype=np.float32)


def test_a_race_judges_both_on_the_same_sets(device: Device) -> None:
    outcome = raced(device, KERNEL)
    assert len(outcome.results) == 2
    assert np.array_equal(left(outcome, 0), expected())
    assert not np.array_equal(left(outcome, 1), expected())
    assert outcome.eager.low_us <= outcome.eager.median_us <= outcome.eager.high_us


def test_what_the_last_timed_calls_left_shows_a_kernel_that_turned_wrong(device: Device) -> None:
    source = "__device__ int calls;\n" + KERNEL.replace(
        "y[i] =", "if (i == 0) atomicAdd(&calls, 1);\n    y[i] = (calls > 9) ? 1.0f :"
    )
    assert not np.array_equal(left(raced(device, source), 0), expected())


def test_a_kernel_that_stops_writing_leaves_poison(device: Device) -> None:
    source = "__device__ int calls;\n" + KERNEL.replace(
        "y[i] =", "if (i == 0) atomicAdd(&calls, 1);\n    if (calls < 9) y[i] ="
    )
    found = raced(device, source)
    assert any(np.isnan(left(found, index)).any() for index in range(2))


def test_library_calls_alone_are_never_an_improvement(device: Device, tmp_path: Path, note: Note) -> None:
    problem = scaled_relu_problem(2048, 1024)
    case = scaled_relu_case(tmp_path, problem)
    buffers = tuple(Buffer(name=n, shape=("ROWS", "COLS"), dtype=DType.F32) for n in ("t", "y"))
    steps = (
        LibraryStep(op="aten.mul.Tensor", args=("x", "weight"), outputs=("t",)),
        LibraryStep(op="aten.relu.default", args=("t",), outputs=("y",)),
    )
    program = scaled_relu_program("", buffers=buffers, steps=steps, tunables=())
    cache = TrialCache()
    speedups: list[float] = []
    for _ in range(20):
        timing = evaluate(program, case, device, cache.load).timing
        assert timing is not None and timing.source == "measured"
        speedups.append(timing.speedup)
        assert not timing.improved, timing
    note(f"speedups of the unchanged program: {min(speedups):.3f} to {max(speedups):.3f}")


def test_a_fused_kernel_beats_two_eager_operations(device: Device, tmp_path: Path, note: Note) -> None:
    case = scaled_relu_case(tmp_path, scaled_relu_problem(2048, 4096))
    evaluation = evaluate(scaled_relu_program(), case, device)
    assert evaluation.status is Status.PASSED, evaluation.diagnostics
    assert evaluation.timing is not None and evaluation.profile is not None
    note(f"{evaluation.timing}\n{evaluation.profile.explanation}")
    assert evaluation.timing.improved
    assert evaluation.profile.authored_share == 1.0


CHAIN_STEPS = 40
CHAIN_BUFFERS = tuple(
    Buffer(name=f"t{i}", shape=("ROWS", "COLS"), dtype=DType.F32) for i in range(CHAIN_STEPS)
)


def chain(source: str = KERNEL, **changes: object) -> Program:
    """scaled_relu after many copies: bound by its launches."""
    copies = tuple(
        LibraryStep(op="aten.clone.default", args=(f"t{i - 1}" if i else "x",), outputs=(f"t{i}",))
        for i in range(CHAIN_STEPS)
    )
    last = scaled_relu_step(args=(f"t{CHAIN_STEPS - 1}", "weight", "y"))
    y = Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32)
    return scaled_relu_program(source, buffers=(*CHAIN_BUFFERS, y), steps=(*copies, last), **changes)


def test_a_replayed_plan_is_right_and_takes_less_of_the_hosts_time(
    device: Device, tmp_path: Path, note: Note
) -> None:
    case = scaled_relu_case(tmp_path)
    stepwise, replayed = (evaluate(chain(replay=replay), case, device) for replay in (False, True))
    assert stepwise.timing is not None and replayed.timing is not None, replayed.diagnostics
    note(
        f"{CHAIN_STEPS + 1} steps: {stepwise.timing.median_us:.1f} µs one by one, "
        f"{replayed.timing.median_us:.1f} µs replayed, copies included"
    )
    assert replayed.timing.median_us < 0.7 * stepwise.timing.median_us


def test_a_replayed_plan_that_stops_writing_is_caught(device: Device, tmp_path: Path) -> None:
    source = KERNEL.replace("if (i < ROWS * COLS)", "if (i < ROWS * COLS && i % 7)")
    evaluation = evaluate(scaled_relu_program(source, replay=True), scaled_relu_case(tmp_path), device)
    assert evaluation.status in (Status.INCORRECT, Status.SANITIZER_ERROR)


def test_a_step_that_cannot_be_captured_fails_alone(device: Device, tmp_path: Path) -> None:
    steps = (
        LibraryStep(op="aten.nonzero_static.default", args=("x",), kwargs={"size": 4}, outputs=("n",)),
        scaled_relu_step(),
    )
    buffers = (
        Buffer(name="n", shape=("4", "2"), dtype=DType.I64),
        Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32),
    )
    evaluate(
        scaled_relu_program(buffers=buffers, steps=steps, replay=True), scaled_relu_case(tmp_path), device
    )
    assert np.array_equal(results(device, scaled_relu_program())["y"], expected())


def test_programs_that_are_let_go_leave_no_host_memory_behind(device: Device, note: Note) -> None:
    def load(first: int, count: int) -> int:
        """Bytes resident after so many loaded programs, twenty of them different."""
        for index in range(first, first + count):
            source = KERNEL.replace("y[i] =", f"y[i] = {index % 20}.0f * 0.0f +")
            assert np.array_equal(results(device, scaled_relu_program(source))["y"], expected())
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    before = load(0, 100)
    grown = load(100, 300) - before
    note(f"{grown / 300 / 1024:.1f} KiB a program")
    assert grown < 300 * (20 << 10)
