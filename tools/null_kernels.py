"""Null kernels: outputs that depend on nothing. A problem on which one passes every trial cannot be judged. Pure.

Covers: zeros, a constant (the mean), returning an input, and the output of other inputs. A verdict on a problem where
one of these passes would say nothing about a candidate that passes too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from memory.records import DType, Graph
from tools.arrays import Array, as_float64, numpy_dtype
from tools.correctness import Subject, Tolerance, compare
from tools.inputs import Distribution
from tools.trial import Trial, TrialData

NullKernel = Callable[[str, Graph, TrialData, TrialData], Array | None]
"""(output, graph, this trial, another one) -> what it returns; None where it cannot make this output."""


def passing_null_kernels(graph: Graph, trials: Sequence[Trial], tolerance: Tolerance) -> list[str]:
    """Names of the null kernels that pass every ordinary trial on every output; empty for a problem to judge by."""
    outputs = [name for name in dict.fromkeys(graph.outputs) if graph.values[name].elements > 0]
    standing = list(NULL_KERNELS) if outputs else []
    # NaN among the inputs shows through almost anything, and makes no output worth judging.
    ordinary = [trial for trial in trials if trial.distribution is not Distribution.SPECIAL]
    for index, trial in enumerate(ordinary):
        if not standing:
            break
        data, other = trial.load(), ordinary[index - 1].load()
        standing = [n for n in standing if _passes(n, outputs, graph, (data, other), trial, tolerance)]
    return standing


def _passes(
    null: str,
    outputs: list[str],
    graph: Graph,
    loaded: tuple[TrialData, TrialData],
    trial: Trial,
    tolerance: Tolerance,
) -> bool:
    data, other = loaded
    for name in outputs:
        mine = NULL_KERNELS[null](name, graph, data, other)
        if mine is None:
            return False
        subject = Subject(
            name, trial.distribution.value, graph.values[name].dtype, data.expected[name], data.eager[name]
        )
        if compare(mine, subject, tolerance).complaint is not None:
            return False
    return True


def _zeros(output: str, graph: Graph, data: TrialData, other: TrialData) -> Array:  # noqa: ARG001
    return np.zeros_like(data.eager[output])


def _mean(output: str, graph: Graph, data: TrialData, other: TrialData) -> Array | None:  # noqa: ARG001
    spec = graph.values[output]
    if not spec.dtype.is_floating or spec.elements == 1:  # a single number is its own mean
        return None
    mean = float(np.mean(as_float64(data.eager[output], spec.dtype)))
    if spec.dtype is DType.BF16:
        bits = np.float32(mean).view(np.uint32) >> 16
        return np.full(spec.shape, bits, np.uint16)
    return np.full(spec.shape, mean, numpy_dtype(spec.dtype))


def _identity(output: str, graph: Graph, data: TrialData, other: TrialData) -> Array | None:  # noqa: ARG001
    spec = graph.values[output]
    for name in graph.inputs:
        given = graph.values[name]
        if (given.shape, given.dtype) == (spec.shape, spec.dtype):
            return data.inputs[name]
    return None


def _other_output(output: str, graph: Graph, data: TrialData, other: TrialData) -> Array | None:  # noqa: ARG001
    return None if other is data else other.eager[output]


NULL_KERNELS: dict[str, NullKernel] = {
    "zeros": _zeros,
    "the mean of the output everywhere": _mean,
    "an input unchanged": _identity,
    "the output of other inputs": _other_output,
}
