"""Modules with hand-written programs, and the way from them to an imported export; for tests with and without a GPU."""

from __future__ import annotations

import importlib.util
import sys
import uuid
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from memory.records import (
    Argument,
    Buffer,
    KernelStep,
    LibraryStep,
    Node,
    Problem,
    Program,
    ScalarArgument,
    Tunable,
)
from tools.export import ExportReport, export_module, write_export
from tools.problem import capture, parse_target

MIXED = '''"""A file with a docstring of its own."""
from __future__ import annotations

import torch
from torch import nn

rows = 6


class Model(nn.Module):
    """Linear, ReLU, scale; column sums; a count of the calls."""

    def __init__(self, features: int, scale: float = 2.0):
        super(Model, self).__init__()
        self.linear = nn.Linear(features, features)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.scale = scale

    def forward(self, x: torch.Tensor):
        y = torch.relu(self.linear(x)) * self.scale
        self.count += 1
        return y, y.sum(0)


def get_inputs():
    return [torch.randn(rows, 32)]


def get_init_inputs():
    return [32]
'''

_MIXED_KERNELS = r"""
extern "C" __global__ void transpose(const float* w, float* wt, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n * n) wt[(i % n) * n + i / n] = w[i];
}
extern "C" __global__ void bias_relu(const float* h, const float* bias, float* y, int rows, float scale) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * N) y[i] = fmaxf(h[i] + bias[i % N], 0.0f) * scale;
}
extern "C" __global__ void column_sums(const float* y, float* sums, int rows) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * N) atomicAdd(&sums[i % N], y[i]);
}
extern "C" __global__ void advance(const long long* count, long long* next, long long by) { *next = *count + by; }
"""


def number(ctype: str, value: str | float) -> ScalarArgument:
    """A scalar argument of a kernel."""
    return ScalarArgument.model_validate({"ctype": ctype, "value": value})


def kernel(entry: str, threads: str, *args: str | ScalarArgument, shared: str = "0") -> KernelStep:
    """A launch of `BLOCK` threads a block over `threads` threads."""
    grid = (f"ceil_div({threads}, BLOCK)", "1", "1")
    return KernelStep(entry=entry, grid=grid, block=("BLOCK", "1", "1"), shared_bytes=shared, args=args)


def mixed_program() -> Program:
    """Every kind of step for MIXED: prepared weights, a library call, atomics on zeros, an update."""
    rows = number("int", "x.shape[0]")
    return Program(
        source=_MIXED_KERNELS,
        dims={"N": "x.shape[1]"},
        tunables=(Tunable(name="BLOCK", value=64, choices=(64, 128)),),
        buffers=(
            Buffer(name="wt", shape=("N", "N"), dtype="f32"),
            Buffer(name="h", shape=("x.shape[0]", "N"), dtype="f32"),
            Buffer(name="y", shape=("x.shape[0]", "N"), dtype="f32"),
            Buffer(name="sums", shape=("N",), dtype="f32", zero=True),
            Buffer(name="next", shape=(), dtype="i64"),
        ),
        prepare=(kernel("transpose", "N * N", "linear_weight", "wt", number("int", "N")),),
        steps=(
            LibraryStep(op="aten.mm.default", args=("x", "wt"), outputs=("h",)),
            kernel("bias_relu", "x.shape[0] * N", "h", "linear_bias", "y", rows, number("float", 2.0)),
            kernel("column_sums", "x.shape[0] * N", "y", "sums", rows),
            KernelStep(
                entry="advance",
                grid=("1", "1", "1"),
                block=("1", "1", "1"),
                args=("count", "next", number("long long", "1")),
            ),
        ),
        outputs=("y", "sums"),
        updates={"count": "next"},
    )


HALF = """
import torch
class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(64).half())
    def forward(self, x):
        return (x * self.weight,)
def get_inputs():
    return [torch.randn(9, 64).half()]
"""

HALF_KERNEL = r"""
#include <cuda_fp16.h>
extern "C" __global__ void scale(const __half2* x, const __half2* weight, __half2* y, int pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < pairs) y[i] = __hmul2(x[i], weight[i % (N / 2)]);
}
"""


def half_program() -> Program:
    """Two halves at a time."""
    return Program(
        source=HALF_KERNEL,
        dims={"N": "x.shape[1]"},
        tunables=(Tunable(name="BLOCK", value=128, choices=(128,)),),
        buffers=(Buffer(name="y", shape=("x.shape[0]", "N"), dtype="f16"),),
        steps=(kernel("scale", "288", "x", "weight", "y", number("int", "x.shape[0] * N // 2")),),
        outputs=("y",),
    )


def library_program(problem: Problem) -> Program:
    """The problem's own graph as library steps."""
    graph = problem.graph
    made = [name for node in graph.nodes for name in node.outputs if name is not None]
    buffers = tuple(
        Buffer(
            name=name,
            shape=tuple(str(size) for size in graph.values[name].shape),
            dtype=graph.values[name].dtype,
            layout="any",
        )
        for name in made
    )
    return Program(
        source="",
        buffers=buffers,
        steps=tuple(_library_step(node) for node in graph.nodes),
        outputs=graph.outputs,
        updates=graph.updates,
    )


def _library_step(node: Node) -> LibraryStep:
    args: tuple[Argument, ...] = node.args
    return LibraryStep(op=node.op, args=args, kwargs=node.kwargs, outputs=node.outputs)


def captured(source: str, folder: Path, name: str = "Model", inputs: str | None = None) -> Problem:
    """The problem of a file with this text."""
    path = folder / "module.py"
    path.write_text(source, encoding="utf-8")
    return capture(parse_target(f"{path}:{name}", inputs=inputs)).problem


def report_for(problem: Problem, **changes: object) -> ExportReport:
    """A plausible report at the problem's full shapes."""
    report = ExportReport(
        device="NVIDIA H200",
        arch="sm_90a",
        time_source="measured",
        best_us=10.0,
        baseline_us=35.0,
        floor_us=7.0,
        trials=1000,
        verified_shapes={n: problem.graph.values[n].shape for n in problem.graph.inputs},
        full_shape_trials=1000,
        relative_tolerance=1e-6,
        eager_factor=2.0,
        distributions=("normal", "uniform"),
        idea="Fuse the row scaling.",
        versions={"warpsmith": "0.1.0", "torch": "2.11.0"},
        created="2026-01-31T12:00:00Z",
        run_id="run-1",
        candidate_id="candidate-7",
    )
    return replace(report, **changes)  # type: ignore[arg-type]


def imported(text: str, folder: Path) -> ModuleType:
    """An export written to a file and imported from it."""
    name = f"export_{uuid.uuid4().hex}"
    path = folder / f"{name}.py"
    write_export(path, text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def exported(
    problem: Problem, program: Program, folder: Path, *, arch: str = "sm_90a", **options: dict[str, bytes]
) -> ModuleType:
    """The problem with this program, exported and imported."""
    return imported(export_module(problem, program, report_for(problem, arch=arch), **options), folder)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """MIXED, captured."""
    return captured(MIXED, tmp_path_factory.mktemp("mixed"))
