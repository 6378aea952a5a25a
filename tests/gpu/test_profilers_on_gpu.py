"""Nsight Compute and compute-sanitizer themselves, on programs whose faults are planted. `pytest -m gpu tests/gpu`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from memory.errors import ToolMissing
from memory.records import Buffer, Diagnostic, DType, LibraryStep, Problem, Program
from tests.cases import scaled_relu_case
from tests.problems import KERNEL, scaled_relu_problem, scaled_relu_program, scaled_relu_step
from tools.binding import bind
from tools.compute_sanitizer import Checked, Sanitized, SanitizerLimits, sanitize_finalist
from tools.devices.build import cuda_spec, open_device
from tools.devices.port import Device, Measured
from tools.nsight import profile_finalist
from tools.nsight_findings import SanitizerTool
from tools.nsight_process import COMPUTE_SANITIZER, NCU, Tool, find_tool
from tools.nsight_records import Counted, KernelCounters
from tools.profiling import kernel_lines, summarise
from tools.roofline import floor_us
from tools.worker import WorkerSpec

Note = Callable[[str], None]

SMALL = scaled_relu_problem()
LARGE = scaled_relu_problem(4096, 4096)
STRIDED = """
extern "C" __global__ void scaled_relu(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < ROWS * COLS) y[i] = x[(i % ROWS) * COLS + i / ROWS];
}
"""
"""Neighbouring lanes read from different rows: a sector each."""
RACY = """
extern "C" __global__ void scaled_relu(const float* x, const float* weight, float* y) {
  __shared__ float s[BLOCK];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = i < ROWS * COLS ? x[i] * weight[i % COLS] : 0.0f;
  if (i < ROWS * COLS) y[i] = s[(threadIdx.x + 37) % BLOCK];
}
"""
TWO_CALLS = (
    LibraryStep(op="aten.mul.Tensor", args=("x", "weight"), outputs=("t",)),
    scaled_relu_step(entry="rectify", args=("t", "y")),
)
RECTIFY = """
extern "C" __global__ void rectify(const float* t, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < ROWS * COLS) y[i] = t[i] < 0.0f ? 0.0f : t[i];
}
"""
BOTH = tuple(Buffer(name=name, shape=("ROWS", "COLS"), dtype=DType.F32) for name in ("t", "y"))

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]


def has(tool: Tool) -> bool:
    try:
        find_tool(tool)
    except ToolMissing:
        return False
    return True


needs_ncu = pytest.mark.skipif(not has(NCU), reason="no ncu")
needs_sanitizer = pytest.mark.skipif(not has(COMPUTE_SANITIZER), reason="no compute-sanitizer")


@pytest.fixture(scope="module")
def where(cache_dir: Path) -> WorkerSpec:
    """The machine's first GPU."""
    return WorkerSpec(cuda_spec(), cache_dir)


@pytest.fixture(scope="module")
def device(where: WorkerSpec) -> Iterator[Device]:
    """The same GPU, open in this process."""
    with open_device(where.device, where.cache_dir) as opened:
        yield opened


def count(program: Program, problem: Problem, where: WorkerSpec, trial: Path | None = None) -> Counted:
    found = profile_finalist(program, problem, trial, where)
    assert isinstance(found, Counted), found
    return found


def kernel_of(counted: Counted, name: str = "scaled_relu") -> KernelCounters:
    kernel = counted.kernel(name)
    assert kernel is not None, counted
    return kernel


def sanitize(
    program: Program, where: WorkerSpec, *tools: SanitizerTool, trial: Path | None = None
) -> Sanitized:
    limits = SanitizerLimits(tools=tools) if tools else SanitizerLimits()
    return sanitize_finalist(program, SMALL, trial, where, limits)


def fault_of(sanitized: Sanitized) -> Diagnostic:
    assert not sanitized.unchecked, sanitized
    assert sanitized.faults, sanitized
    assert not sanitized.clean
    return sanitized.faults[0]


@needs_ncu
def test_a_plain_kernels_counters_are_what_its_shapes_say(where: WorkerSpec, note: Note) -> None:
    counted = count(scaled_relu_program(), LARGE, where)
    kernel = kernel_of(counted)
    note(f"{counted.seconds:.0f} s, missing {counted.missing}\n{kernel}")
    x_bytes = 4096 * 4096 * 4
    assert kernel.launches == 1
    assert kernel.us is not None and 10 < kernel.us < 10_000
    assert kernel.dram_read_bytes == pytest.approx(x_bytes, rel=0.2)
    assert kernel.dram_write_bytes is not None and kernel.dram_write_bytes < 1.2 * x_bytes
    assert kernel.load_sectors_per_request == pytest.approx(4.0, rel=0.1)
    assert kernel.store_sectors_per_request == pytest.approx(4.0, rel=0.1)
    assert kernel.occupancy_achieved is not None and kernel.occupancy_theoretical is not None
    assert 0.1 < kernel.occupancy_achieved <= 1.0 and 0.1 < kernel.occupancy_theoretical <= 1.0
    assert kernel.worst_stall is not None
    assert kernel.instructions["fmul"] == pytest.approx(4096 * 4096, rel=0.01)
    assert kernel.tensor_active in (None, 0.0)
    assert kernel.sm_hertz is not None and 2e8 < kernel.sm_hertz < 4e9


@needs_ncu
def test_strided_loads_touch_a_sector_a_lane(where: WorkerSpec, note: Note) -> None:
    program = scaled_relu_program(STRIDED, steps=(scaled_relu_step(args=("x", "y")),))
    kernel = kernel_of(count(program, LARGE, where))
    note(f"{kernel.load_sectors_per_request} sectors per load request, {kernel.us} µs, {kernel.worst_stall}")
    assert kernel.load_sectors_per_request == pytest.approx(32.0, rel=0.05)
    assert kernel.store_sectors_per_request == pytest.approx(4.0, rel=0.1)


@needs_ncu
def test_the_summary_says_what_a_strided_kernel_waits_for(
    where: WorkerSpec, device: Device, note: Note
) -> None:
    programs = {
        "plain": scaled_relu_program(),
        "strided": scaled_relu_program(STRIDED, steps=(scaled_relu_step(args=("x", "y")),)),
    }
    fractions: dict[str, float] = {}
    for name, program in programs.items():
        measured = device.measure(bind(program, LARGE))
        assert isinstance(measured, Measured)
        floor = floor_us(LARGE.work, LARGE.dtype, device.gpu)
        profile = summarise(measured, floor, device.gpu, count(program, LARGE, where))
        note(f"{name}: {profile.explanation} | {kernel_lines(profile)} | {profile.steps[0]}")
        assert profile.steps[0].counted
        assert profile.steps[0].roofline_fraction is not None
        fractions[name] = profile.steps[0].roofline_fraction
    assert 0.2 < fractions["plain"] <= 1.0


@needs_ncu
def test_library_kernels_are_counted_beside_our_own(where: WorkerSpec, tmp_path: Path, note: Note) -> None:
    program = scaled_relu_program(RECTIFY, buffers=BOTH, steps=TWO_CALLS)
    trial = scaled_relu_case(tmp_path, LARGE, scaled_relu_problem(33, 4096)).trials[0].directory
    counted = count(program, LARGE, where, trial)
    note(str([(kernel.name, kernel.launches, kernel.us) for kernel in counted.kernels]))
    assert kernel_of(counted, "rectify").launches == 1
    assert len(counted.kernels) >= 2


@needs_sanitizer
def test_an_honest_kernel_is_clean_under_all_three(where: WorkerSpec, tmp_path: Path, note: Note) -> None:
    trial = scaled_relu_case(tmp_path).trials[0].directory
    sanitized = sanitize(scaled_relu_program(), where, trial=trial)
    note(str([(o.tool, round(o.seconds, 1)) for o in sanitized.outcomes if isinstance(o, Checked)]))
    assert sanitized.clean, sanitized


@needs_sanitizer
def test_a_plan_with_a_library_call_is_clean_too(where: WorkerSpec) -> None:
    program = scaled_relu_program(RECTIFY, buffers=BOTH, steps=TWO_CALLS)
    sanitized = sanitize(program, where, "memcheck", "initcheck")
    assert not sanitized.unchecked and not sanitized.faults, sanitized


@needs_sanitizer
@pytest.mark.parametrize(
    ("access", "source"),
    [
        ("write", KERNEL.replace("i < ROWS * COLS", "i <= ROWS * COLS").replace("x[i]", "x[0]")),
        ("read", KERNEL.replace("x[i]", "x[i + 1]")),
    ],
)
def test_memcheck_finds_one_element_too_many(where: WorkerSpec, note: Note, access: str, source: str) -> None:
    fault = fault_of(sanitize(scaled_relu_program(source), where))
    note(fault.message)
    assert fault.rule == "out_of_bounds"
    assert f"{access} of 4 bytes" in fault.message
    assert "in scaled_relu" in fault.message and "thread" in fault.message


@needs_sanitizer
def test_racecheck_finds_a_missing_barrier(where: WorkerSpec, note: Note) -> None:
    fault = fault_of(sanitize(scaled_relu_program(RACY), where, "racecheck"))
    note(fault.message)
    assert fault.rule == "race"
    assert "in scaled_relu" in fault.message


@needs_sanitizer
def test_racecheck_accepts_the_barrier(where: WorkerSpec) -> None:
    source = RACY.replace("if (i < ROWS * COLS) y[i] =", "__syncthreads();\n  if (i < ROWS * COLS) y[i] =")
    sanitized = sanitize(scaled_relu_program(source), where, "racecheck")
    assert not sanitized.unchecked and not sanitized.diagnostics, sanitized


@needs_sanitizer
def test_initcheck_finds_a_buffer_that_nobody_wrote(where: WorkerSpec, note: Note) -> None:
    steps = (scaled_relu_step(entry="rectify", args=("t", "y")),)
    fault = fault_of(sanitize(scaled_relu_program(RECTIFY, buffers=BOTH, steps=steps), where, "initcheck"))
    note(fault.message)
    assert fault.rule == "uninitialised_read"
    assert "in rectify" in fault.message
