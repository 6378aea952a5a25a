"""How much device memory a problem needs, and what would fit instead. Pure; in bytes."""

from __future__ import annotations

from memory.records import Problem
from tools.gpus import GpuSpec

ORACLE_FACTOR = 3.0
"""A float32 value beside its float64 counterpart: what an oracle on the device multiplies the tensors by."""


def traffic_bytes(problem: Problem) -> int:
    """Inputs, state and outputs of one forward, each once."""
    graph = problem.graph
    names = {*graph.inputs, *(entry.value for entry in graph.state), *graph.outputs, *graph.updates.values()}
    return sum(graph.values[name].bytes for name in names)


def peak_bytes(problem: Problem) -> int:
    """Upper estimate of what eager holds at once: inputs, state, outputs, and the largest two other values."""
    graph = problem.graph
    kept = {*graph.inputs, *(entry.value for entry in graph.state), *graph.outputs, *graph.updates.values()}
    others = sorted((spec.bytes for name, spec in graph.values.items() if name not in kept), reverse=True)
    return traffic_bytes(problem) + sum(others[:2])


def batch_that_fits(problem: Problem, gpu: GpuSpec) -> tuple[int, int] | None:
    """(first dimension of the largest input now, about the largest one whose oracle fits); None where none would.

    Everything but the state is taken to grow with that dimension.
    """
    graph = problem.graph
    sized = [graph.values[name] for name in graph.inputs if graph.values[name].shape]
    if not sized:
        return None
    batch = max(sized, key=lambda spec: spec.bytes).shape[0]
    state = sum(graph.values[entry.value].bytes for entry in graph.state)
    grows = max(peak_bytes(problem) - state, 1) / max(batch, 1)
    fits = int((gpu.memory_bytes / ORACLE_FACTOR - state) / grows)
    return (batch, min(fits, batch - 1)) if fits >= 1 and batch > 1 else None


def too_large(problem: Problem, gpu: GpuSpec) -> str:
    """One sentence for a problem that does not fit, with what would."""
    needs = ORACLE_FACTOR * peak_bytes(problem) / 2**30
    text = (
        f"{problem.name} needs about {needs:.1f} GiB with its float64 oracle, and the {gpu.name} has "
        f"{gpu.memory_bytes / 2**30:.1f} GiB"
    )
    found = batch_that_fits(problem, gpu)
    if found is None:
        return f"{text}; make its inputs smaller, or use a GPU with more memory"
    return f"{text}; a first dimension of about {found[1]} instead of {found[0]} would fit"
