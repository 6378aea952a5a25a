"""Small problems for the situations, made by hand so that no capture is needed, and the case that judges programs.

The oracle of a trial is the graph itself in float64, and eager PyTorch is the graph in its own precision.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from benchmarks.agents.scaled_relu import scaled_relu_problem
from memory.records import (
    Argument,
    DType,
    Graph,
    Node,
    Problem,
    SpecialArgument,
    Target,
    TensorSpec,
    Work,
)
from tools.arrays import Array, array_from, tensor_from
from tools.baselines import modelled_eager
from tools.case import Case
from tools.eager_graph import operations, result_names
from tools.gpus import GpuSpec
from tools.inputs import Distribution, draw_floats
from tools.policy import Policy
from tools.trial import Manifest, Trial, write_array, write_manifest

DISTRIBUTIONS = (
    Distribution.NORMAL,
    Distribution.UNIFORM,
    Distribution.ZEROS_MIXED,
    Distribution.TINY,
    Distribution.LARGE,
    Distribution.SPECIAL,
)
"""Of the trials, in their order; the first is sanitized."""

_MODULE = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return {forward}


def get_inputs():
    return [torch.randn({rows}, {columns}{dtype})]


def get_init_inputs():
    return []
"""


def scaled_relu(rows: int = 33, columns: int = 40) -> Problem:
    """relu(x * weight), one weight a column."""
    return scaled_relu_problem(rows, columns)


def row_mean(rows: int = 64, columns: int = 96) -> Problem:
    """The mean of every row."""
    x, y = TensorSpec.dense((rows, columns), DType.F32), TensorSpec.dense((rows,), DType.F32)
    node = Node(name="mean", op="aten.mean.dim", args=("x", (-1,)), outputs=("mean",))
    return _problem("row_mean", "x.mean(dim=-1)", {"x": x, "mean": y}, (node,), flops=x.elements)


def softmax(rows: int = 40, columns: int = 96) -> Problem:
    """softmax over the last dimension."""
    x = TensorSpec.dense((rows, columns), DType.F32)
    arguments: tuple[Argument, ...] = ("x", -1, False)
    node = Node(name="softmax", op="aten._softmax.default", args=arguments, outputs=("softmax",))
    values = {"x": x, "softmax": x}
    return _problem("softmax", "torch.softmax(x, dim=-1)", values, (node,), flops=5 * x.elements)


def transpose(rows: int = 40, columns: int = 72) -> Problem:
    """A transposed copy."""
    x = TensorSpec.dense((rows, columns), DType.F32)
    view = TensorSpec(shape=(columns, rows), dtype=DType.F32, strides=(1, columns))
    values = {"x": x, "view": view, "copy": TensorSpec.dense((columns, rows), DType.F32)}
    layout = {"memory_format": SpecialArgument(memory_format="contiguous_format")}
    nodes = (
        Node(name="view", op="aten.transpose.int", args=("x", 0, 1), outputs=("view",)),
        Node(name="copy", op="aten.clone.default", args=("view",), kwargs=layout, outputs=("copy",)),
    )
    return _problem("transpose", "x.t().contiguous()", values, nodes, flops=0)


def half_sum(rows: int = 48, columns: int = 512) -> Problem:
    """The sum of every row in half precision, which PyTorch accumulates in float32."""
    x, y = TensorSpec.dense((rows, columns), DType.F16), TensorSpec.dense((rows,), DType.F16)
    node = Node(name="sum", op="aten.sum.dim_IntList", args=("x", (-1,)), outputs=("sum",))
    return _problem("half_sum", "x.sum(dim=-1)", {"x": x, "sum": y}, (node,), flops=x.elements)


def _problem(
    name: str, forward: str, values: dict[str, TensorSpec], nodes: tuple[Node, ...], *, flops: int
) -> Problem:
    """A problem of one input `x` whose last value is its output."""
    x, output = values["x"], list(values)[-1]
    rows, columns = x.shape
    dtype = ", dtype=torch.float16" if x.dtype is DType.F16 else ""
    source = _MODULE.format(forward=forward, rows=rows, columns=columns, dtype=dtype)
    return Problem(
        name=name,
        target=Target(path=f"/nowhere/{name}.py", source=source, class_name="Model"),
        training=True,
        output_structure="tensor",
        graph=Graph(values=values, inputs=("x",), nodes=nodes, outputs=(output,)),
        work=Work(flops=flops, min_bytes=x.bytes + values[output].bytes),
    )


def case_of(problem: Problem, twin: Problem | None, gpu: GpuSpec, folder: Path) -> Case:
    """The problem's case: trials of every distribution at the twin's shapes, and the modelled eager baseline."""
    judged = twin or problem
    trials = tuple(_trial(judged, seed, d, folder / str(seed)) for seed, d in enumerate(DISTRIBUTIONS))
    policy = Policy(distributions=DISTRIBUTIONS)
    return Case(problem, judged, trials, (modelled_eager(problem.graph, gpu),), policy)


def _trial(problem: Problem, seed: int, distribution: Distribution, folder: Path) -> Trial:
    graph, generator = problem.graph, np.random.default_rng(seed)
    inputs = {name: _drawn(graph.values[name], distribution, generator) for name in graph.inputs}
    names = [entry.value for entry in graph.state]
    state = {name: _drawn(graph.values[name], Distribution.UNIFORM, generator) for name in names}
    given = [tensor_from(array, graph.values[name].dtype) for name, array in (inputs | state).items()]
    arrays = {
        "inputs": inputs,
        "state": state,
        "expected": _run(graph, [tensor.double() for tensor in given], widen=True),
        "eager": _run(graph, given, widen=False),
    }
    for place, members in arrays.items():
        for name, array in members.items():
            write_array(folder / place / f"{name}.npy", array)
    held: dict[str, tuple[str, ...]] = {place: tuple(members) for place, members in arrays.items()}
    write_manifest(folder, Manifest(seed=seed, distribution=distribution, **held))
    return Trial(seed, distribution, folder)


def _drawn(spec: TensorSpec, distribution: Distribution, generator: np.random.Generator) -> Array:
    drawn = draw_floats(spec.shape, spec.dtype, distribution, generator)
    return drawn.astype(np.float16) if spec.dtype is DType.F16 else drawn


def _run(graph: Graph, given: list[torch.Tensor], *, widen: bool) -> dict[str, Array]:
    with torch.no_grad():
        made = operations(graph, torch.device("cpu"), widen=widen)(*given)
    return {
        name: array_from(tensor.contiguous()) for name, tensor in zip(result_names(graph), made, strict=True)
    }
