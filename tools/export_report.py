"""What the head of an exported file says: what was verified, on what, how fast, and what was not.

Here: facts turned into sentences. Not here: gathering the facts. Invariant: a modelled time is never called
measured, and shapes that were not run are never called verified.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from memory.records import Problem, TensorSpec
from tools.export_text import one_line

_WIDTH = 100


@dataclass(frozen=True)
class ExportReport:
    """What is known of the winner; times in µs of one forward."""

    device: str
    """What it was verified and timed on, such as `NVIDIA H200` or `simulator:h200`."""
    arch: str
    """Architecture the kernels are compiled for, such as `sm_90a`."""
    time_source: Literal["measured", "modelled"]
    best_us: float
    baseline_us: float
    floor_us: float
    trials: int
    """Random trials it passed."""
    verified_shapes: Mapping[str, tuple[int, ...]]
    """Shapes of the inputs that the trials ran at; smaller than the problem's own where a twin was verified."""
    full_shape_trials: int
    """How many of the trials ran at the problem's own shapes; all of them where no twin was verified."""
    relative_tolerance: float
    eager_factor: float
    distributions: tuple[str, ...]
    """Names of the input distributions of the trials."""
    idea: str
    versions: Mapping[str, str]
    created: str
    """ISO 8601, UTC."""
    run_id: str
    candidate_id: str
    baseline: str = "eager"

    @property
    def speedup(self) -> float:
        """The baseline's time over ours."""
        return self.baseline_us / self.best_us

    def at_full_shapes(self, problem: Problem) -> bool:
        """True where the trials ran at the problem's own shapes."""
        graph = problem.graph
        return {n: tuple(s) for n, s in self.verified_shapes.items()} == {
            n: graph.values[n].shape for n in graph.inputs
        }


def head_text(problem: Problem, report: ExportReport, foreign_imports: tuple[str, ...]) -> str:
    """The head of the file as plain text."""
    graph = problem.graph
    name = problem.target.class_name
    inputs = ", ".join(f"{n} {_spec(graph.values[n])}" for n in graph.inputs) or "no tensors"
    sections = [
        (
            f"{one_line(problem.name)}: `ModelNew` is `{name}` with faster CUDA kernels, found by Warpsmith.",
            [],
        ),
        ("Idea", [report.idea]),
        ("How to use it", _usage(name, foreign_imports)),
        ("What was verified", _verified(problem, report)),
        ("Time of one forward", _time(report)),
        ("What was not verified", _unverified(problem, report)),
        ("When the kernels run", _conditions(problem, report, inputs)),
        ("Origin", _origin(report)),
    ]
    return "\n\n".join(
        "\n".join([title, *(_item(line) for line in lines if line.strip())]) for title, lines in sections
    )


def _item(line: str) -> str:
    return textwrap.fill(one_line(line), _WIDTH, initial_indent="  - ", subsequent_indent="    ")


def _usage(name: str, foreign_imports: tuple[str, ...]) -> list[str]:
    lines = [
        f"Constructor arguments, parameters, buffers and state_dict are those of {name}; load_state_dict takes the"
        " original's. The same seed gives the same weights.",
        "This file needs torch, and on the GPU cuda-python (pip install cuda-core cuda-bindings nvidia-cuda-nvrtc"
        " nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl). The kernels are compiled at the first call.",
    ]
    if foreign_imports:
        lines.append(f"The original code below also imports: {', '.join(foreign_imports)}.")
    return lines


def _verified(problem: Problem, report: ExportReport) -> list[str]:
    graph = problem.graph
    shapes = ", ".join(f"{n} {[*s]}" for n, s in report.verified_shapes.items()) or "no inputs"
    size = "the full shapes" if report.at_full_shapes(problem) else "reduced shapes"
    own = (
        f", {report.full_shape_trials} of them at the full ones"
        if 0 < report.full_shape_trials < report.trials
        else ""
    )
    dtypes = ", ".join(sorted({graph.values[n].dtype.value for n in (*graph.inputs, *graph.outputs)}))
    rule = f"max({report.relative_tolerance:g}, {report.eager_factor:g} x the error of eager PyTorch)"
    return [
        f"Every output was compared with a float64 oracle in {report.trials:,} random trials on {report.device}, at"
        f" {size} ({shapes}; {dtypes}){own}.",
        f"The largest error, relative to max(|oracle|, rms(oracle)), was at most {rule}.",
        f"Input distributions: {', '.join(report.distributions) or 'none'}.",
        f"The module was in {'training' if problem.training else 'evaluation'} mode.",
    ]


def _time(report: ExportReport) -> list[str]:
    verb = "faster than" if report.speedup >= 1 else "of the speed of"
    return [
        f"{report.best_us:.4g} us against {report.baseline_us:.4g} us of {report.baseline}"
        f" ({report.speedup:.3g} x, {verb} the baseline), both {report.time_source} on {report.device}.",
        f"The least time that the memory traffic and arithmetic allow there is {report.floor_us:.4g} us.",
    ]


def _unverified(problem: Problem, report: ExportReport) -> list[str]:
    lines = ["Gradients: the kernels have no backward, so a call that wants one runs the original code."]
    if report.time_source == "modelled":
        lines.insert(
            0,
            f"Speed on hardware: the times above come from a model of {report.device}, and no GPU has run or timed"
            " the kernels. Measure before relying on them.",
        )
    if not report.at_full_shapes(problem):
        full = ", ".join(f"{n} {[*problem.graph.values[n].shape]}" for n in problem.graph.inputs)
        checked = (
            f"in {report.full_shape_trials} of the trials only" if report.full_shape_trials else "in no trial"
        )
        lines.append(
            f"The full shapes ({full}), which the kernels below are bound to, were run {checked}: the others ran the"
            " same program at reduced shapes."
        )
    lines += [
        "Other shapes, dtypes, GPU architectures, autocast, and inputs unlike the distributions above.",
        "Changes that torch does not count: weights written through `.data` after the first call (call"
        " `warpsmith_forget()` then), and plain attributes changed after construction.",
    ]
    return lines


def _conditions(problem: Problem, report: ExportReport, inputs: str) -> list[str]:
    mode = "training" if problem.training else "evaluation"
    return [
        f"Inputs {inputs}, on a CUDA device of {report.arch}, in {mode} mode, where no gradient is wanted"
        " (torch.no_grad), outside autocast and torch.compile, for a module constructed as the verified one.",
        "Otherwise the original forward runs, and `warpsmith_fallback_reason` says why; it is None after a call that"
        " used the kernels.",
        "Under CUDA graphs: call the module once before capturing, and capture again after changing weights.",
    ]


def _origin(report: ExportReport) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    return [
        f"Run {report.run_id}, candidate {report.candidate_id}, {report.created}.",
        f"Versions: {versions or 'unknown'}.",
    ]


def _spec(spec: TensorSpec) -> str:
    return f"{spec.dtype.value}{[*spec.shape]}"
