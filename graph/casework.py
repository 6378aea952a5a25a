"""What candidates are judged on: trials drawn from the user's module, and the baselines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from memory.errors import BadInput, WarpsmithError
from memory.records import Problem
from tools.baselines import modelled_eager
from tools.case import Case
from tools.device_trials import DeviceTrial
from tools.devices.build import DeviceSpec, gpu_of
from tools.devices.port import CompileMode
from tools.footprint import too_large, traffic_bytes
from tools.inputs import Distribution
from tools.null_kernels import passing_null_kernels
from tools.policy import Policy
from tools.pool import EvaluationPool
from tools.reference import Reference
from tools.reference_records import DeviceKind
from tools.trial import MANIFEST, Manifest, Trial
from tools.worker import BaselineJob

DRAWN = (Distribution.AUTHOR, Distribution.NORMAL, Distribution.LARGE)
"""Distributions of the trials that a GPU draws at full size for every candidate."""
HUGE_BYTES = 8 << 30
"""From this size of inputs, state and outputs on, one full-size trial has to do."""
HEAVY_BYTES = 1 << 29
"""From this size of a module's own trial on (its weights, mostly: they do not shrink with the inputs), a GPU draws the
trials after MODULE_KINDS itself: files of gigabytes take seconds to make and again to load, for every candidate."""
MODULE_KINDS = (Distribution.AUTHOR, Distribution.NORMAL)
"""What the module draws in any case: the graph must agree with it there, or it makes all trials."""

Seeds = Callable[[int, str], int]
"""(index, purpose) -> seed of a trial."""


@dataclass(frozen=True)
class Bench:
    """Where and how trials are made."""

    problem: Problem
    twin: Problem
    policy: Policy
    device: DeviceSpec
    directory: Path
    deadline_s: float
    seeds: Seeds
    modes: tuple[CompileMode, ...] = ()
    """torch.compile's modes to measure where programs run on a GPU."""
    draws: bool = True
    """False where the captured graph was found not to stand for the module: a GPU draws no trials then."""

    def reference(self, problem: Problem) -> Reference:
        """The user's module in a child of its own, on the kind of device that the programs run on."""
        kind: DeviceKind = "cuda" if self.device.kind == "cuda" else "cpu"
        return Reference(problem.target, problem, deadline_s=self.deadline_s, device=kind)


def prepare_case(bench: Bench, pool: EvaluationPool) -> Case:
    """The case of a run, with one trial for each distribution; trials already on disk are reused.

    The user's module runs in a child. Raises BadInput where it cannot be run in float64.
    """
    kinds = module_kinds(bench)
    folders = [bench.directory / f"{i:03d}" for i in range(len(kinds))]
    trials = [_existing(folder) for folder in folders]
    if any(trial is None for trial in trials):
        trials = list(draw_trials(bench, bench.twin, kinds, "trial", folders))
    kept = tuple(trial for trial in trials if trial is not None)
    _refuse_degenerate(bench, kept)
    case = Case(bench.problem, bench.twin, kept, (), bench.policy)
    if bench.device.kind != "cuda":
        # Modelled like the programs' times, so that both sides are of one kind.
        return replace(case, baselines=(modelled_eager(bench.problem.graph, gpu_of(bench.device)),))
    return _with_measured_baselines(bench, replace(case, drawn=drawn_trials(bench, kept)), pool)


def _with_measured_baselines(bench: Bench, case: Case, pool: EvaluationPool) -> Case:
    found = pool.measure_baselines(BaselineJob(case, bench.modes))
    if found.out_of_memory:
        raise BadInput(too_large(bench.problem, gpu_of(bench.device)))
    if case.drawn and found.untrusted is not None:
        # The module makes its trials at full size then, as files: slower, and right.
        full = replace(bench, twin=bench.problem, directory=bench.directory / "full", draws=False)
        return prepare_case(full, pool)
    if "eager" in found.absent:
        raise WarpsmithError(
            f"eager PyTorch could not be timed on {bench.device.name}: {found.absent['eager']}"
        )
    return replace(case, baselines=found.times, trusted=found.untrusted is None)


def module_kinds(bench: Bench) -> tuple[Distribution, ...]:
    """Distributions of the trials that the user's module makes for every candidate: the policy's, fewer where a GPU
    draws trials itself and the module's would be heavy."""
    kinds = bench.policy.distributions
    if bench.device.kind != "cuda" or not bench.draws or traffic_bytes(bench.twin) < HEAVY_BYTES:
        return kinds
    return tuple(kind for kind in kinds if kind in MODULE_KINDS) or kinds[:1]


def drawn_trials(bench: Bench, trials: tuple[Trial, ...]) -> tuple[DeviceTrial, ...]:
    """Full-size trials for a problem whose others run at reduced shapes (fewer where they are huge), and those that
    its module leaves to the GPU: weights moved there, for it made few sets of them."""
    left = tuple(kind for kind in bench.policy.distributions if kind not in module_kinds(bench))
    if not bench.draws or (bench.twin is bench.problem and not left):
        return ()
    bases = {trial.distribution: trial for trial in trials}
    base = bases.get(Distribution.AUTHOR, trials[0])
    always = DRAWN if traffic_bytes(bench.problem) <= HUGE_BYTES else DRAWN[:1]
    kinds = (*always, *(kind for kind in left if kind not in always))
    return tuple(
        DeviceTrial(
            bench.seeds(i, "drawn"), kind, trials[i % len(trials)] if i else base, move_weights=kind in left
        )
        for i, kind in enumerate(kinds)
    )


def _refuse_degenerate(bench: Bench, trials: tuple[Trial, ...]) -> None:
    """A verdict means nothing where an output that depends on nothing would pass."""
    passing = passing_null_kernels(bench.twin.graph, trials, bench.policy.tolerance)
    if passing:
        raise BadInput(
            f"{bench.problem.name} cannot be judged: returning {passing[0]} passes all {len(trials)} trials; "
            "change the module or its inputs so that the output depends on them"
        )


def _existing(folder: Path) -> Trial | None:
    """The trial that an earlier start of the run left in `folder`; its manifest is written last."""
    path = folder / MANIFEST
    if not path.exists():
        return None
    manifest = Manifest.model_validate_json(path.read_bytes())
    return Trial(manifest.seed, manifest.distribution, folder)


def draw_trials(
    bench: Bench, problem: Problem, distributions: tuple[Distribution, ...], purpose: str, folders: list[Path]
) -> list[Trial]:
    """One trial for each distribution and folder, at the shapes of `problem`."""
    with bench.reference(problem) as reference:
        return [
            reference.trial(bench.seeds(index, purpose), distribution, folder)
            for index, (distribution, folder) in enumerate(zip(distributions, folders, strict=True))
        ]
