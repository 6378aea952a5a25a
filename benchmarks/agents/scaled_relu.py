"""relu(x * weight), made by hand so that no capture is needed: its module, problem and a right program."""

from __future__ import annotations

from memory.records import (
    Buffer,
    DType,
    Graph,
    KernelStep,
    Node,
    Problem,
    Program,
    StateEntry,
    Target,
    TensorSpec,
    Tunable,
    Work,
)

MODULE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(columns))

    def forward(self, x):
        return torch.relu(x * self.weight)


def get_inputs():
    return [torch.rand(ROWS, COLUMNS)]


def get_init_inputs():
    return [COLUMNS]
"""
"""relu(x * weight) with one weight a column."""

KERNEL = """
extern "C" __global__ void scaled_relu(const float* x, const float* weight, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < ROWS * COLS) {
    float v = x[i] * weight[i % COLS];
    y[i] = v < 0.0f ? 0.0f : v;  // keeps NaN, as torch.relu does; fmaxf would drop it
  }
}
"""


def module_text(rows: int = 33, columns: int = 40) -> str:
    """Source of the module at these sizes."""
    return MODULE.replace("ROWS", str(rows)).replace("COLUMNS", str(columns))


def scaled_relu_problem(rows: int = 33, columns: int = 40) -> Problem:
    """The module's problem, as a capture would give it."""
    x, weight = TensorSpec.dense((rows, columns), DType.F32), TensorSpec.dense((columns,), DType.F32)
    graph = Graph(
        values={"x": x, "weight": weight, "mul": x, "relu": x},
        inputs=("x",),
        state=(StateEntry(value="weight", target="weight", kind="parameter"),),
        nodes=(
            Node(name="mul", op="aten.mul.Tensor", args=("x", "weight"), outputs=("mul",)),
            Node(name="relu", op="aten.relu.default", args=("mul",), outputs=("relu",)),
        ),
        outputs=("relu",),
    )
    target = Target(path="/nowhere/scaled_relu.py", source=module_text(rows, columns), class_name="Model")
    work = Work(flops=2 * x.elements, min_bytes=2 * x.bytes + weight.bytes)
    return Problem(
        name="scaled_relu", target=target, training=True, output_structure="tensor", graph=graph, work=work
    )


def scaled_relu_program(source: str = KERNEL, **changes: object) -> Program:
    """A right program for `scaled_relu_problem`, with some fields changed."""
    program = Program(
        source=source,
        dims={"ROWS": "x.shape[0]", "COLS": "x.shape[1]"},
        tunables=(Tunable(name="BLOCK", value=128, choices=(64, 128, 256)),),
        buffers=(Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32),),
        steps=(scaled_relu_step(),),
        outputs=("y",),
    )
    return Program.model_validate({**program.model_dump(), **changes})


def scaled_relu_step(**changes: object) -> KernelStep:
    """The program's one launch, with some fields changed."""
    step = KernelStep(
        entry="scaled_relu",
        grid=("ceil_div(ROWS * COLS, BLOCK)", "1", "1"),
        block=("BLOCK", "1", "1"),
        args=("x", "weight", "y"),
    )
    return KernelStep.model_validate({**step.model_dump(), **changes})
