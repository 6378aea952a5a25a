"""PyTorch's own times on a GPU: eager, and torch.compile in its modes, on the captured graph.

Every contestant runs on the same inputs in one process under one precision policy, one after another. A mode
that fails to compile, or to run, is absent with its reason; the others stand.
Compiled code is host code of PyTorch's making from a graph that holds allowed ATen operations only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from memory.records import BaselineTime
from tools.arrays import Array
from tools.devices.cuda_context import CudaContext
from tools.devices.cuda_memory import storage_of
from tools.devices.port import Baselines, CompileMode, Contest, Given
from tools.eager_graph import EagerGraph
from tools.timing import Samples, Timer, TimingBudget, interleave, median_interval

Forward = Callable[..., object]


def time_baselines(
    context: CudaContext, contest: Contest, modes: Sequence[CompileMode], timer: Timer, budget: TimingBudget
) -> Baselines:
    """Times by name: `eager`; `compile` for the default mode; `compile_best` for the fastest of all modes asked for.

    Raises: BadInput where the graph holds an operation that may not be called.
    """
    absent: dict[str, str] = {}
    with torch.no_grad():
        sets = [_inputs(context, contest, given) for given in contest.givens]
        module = EagerGraph(contest.graph, _state(context, contest), context.device)
        found: dict[str, Samples] = {}
        for name in ("eager", *modes):
            forward: Forward = module if name == "eager" else _compiled(module, name)
            outcome = _timed(forward, sets, timer, budget)
            if isinstance(outcome, str):
                absent[name] = outcome
            else:
                found[name] = outcome
    torch.compiler.reset()
    torch.cuda.empty_cache()
    return Baselines(_records(found), absent)


def _compiled(module: EagerGraph, mode: str) -> Forward:
    torch.compiler.reset()
    compiled: Forward = torch.compile(module, mode=mode, dynamic=False)
    return compiled


def _timed(
    forward: Forward, sets: Sequence[Sequence[torch.Tensor]], timer: Timer, budget: TimingBudget
) -> Samples | str:
    """Samples in µs, or why there are none."""
    try:
        for _ in range(2):  # CUDA-graph modes record at their second call
            for inputs in sets:
                forward(*inputs)
        timer.settle()
        run = {"it": lambda index: forward(*sets[index])}
        return interleave(timer, run, sets=len(sets), budget=budget)["it"]
    except Exception as error:  # noqa: BLE001
        # A compiler's failure has any type; it costs this baseline and nothing else.
        lines = str(error).strip().splitlines()
        return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


def _records(found: Mapping[str, Samples]) -> tuple[BaselineTime, ...]:
    records: list[BaselineTime] = []
    if "eager" in found:
        records.append(_record("eager", found["eager"]))
    if "default" in found:
        records.append(_record("compile", found["default"]))
    modes = {name: samples for name, samples in found.items() if name != "eager"}
    if modes:
        best = min(modes.values(), key=lambda samples: float(median_interval(samples).middle))
        records.append(_record("compile_best", best))
    return tuple(records)


def _record(name: str, samples: Samples) -> BaselineTime:
    interval = median_interval(samples)
    return BaselineTime.model_validate(
        {"name": name, "median_us": interval.middle, "low_us": interval.low, "high_us": interval.high}
    )


def _inputs(context: CudaContext, contest: Contest, given: Given) -> list[torch.Tensor]:
    return [_placed(context, contest, name, given[name]) for name in contest.graph.inputs]


def _state(context: CudaContext, contest: Contest) -> dict[str, torch.Tensor]:
    """The first set's weights: torch.compile takes a module's weights as fixed."""
    names = [entry.value for entry in contest.graph.state]
    return {name: _placed(context, contest, name, contest.givens[0][name]) for name in names}


def _placed(context: CudaContext, contest: Contest, name: str, array: Array | torch.Tensor) -> torch.Tensor:
    spec = contest.graph.values[name]
    return storage_of(spec, context.uploads.get(array, spec), context.device)
