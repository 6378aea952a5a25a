"""What candidates are judged on: trials drawn from the user's module, and the baselines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from memory.errors import BadInput, WarpsmithError
from memory.records import BaselineTime, Problem
from tools.baselines import modelled_eager
from tools.devices.build import DeviceSpec, gpu_of
from tools.devices.port import CompileMode
from tools.evaluation import Case
from tools.inputs import Distribution
from tools.null_kernels import passing_null_kernels
from tools.policy import Policy
from tools.pool import EvaluationPool
from tools.reference import Reference
from tools.reference_records import DeviceKind
from tools.trial import MANIFEST, Manifest, Trial
from tools.worker import BaselineJob

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

    def reference(self, problem: Problem) -> Reference:
        """The user's module in a child of its own, on the kind of device that the programs run on."""
        kind: DeviceKind = "cuda" if self.device.kind == "cuda" else "cpu"
        return Reference(problem.target, problem, deadline_s=self.deadline_s, device=kind)


def prepare_case(bench: Bench, pool: EvaluationPool) -> Case:
    """The case of a run, with one trial for each distribution; trials already on disk are reused.

    The user's module runs in a child. Raises BadInput where it cannot be run in float64.
    """
    folders = [bench.directory / f"{i:03d}" for i in range(len(bench.policy.distributions))]
    trials = [_existing(folder) for folder in folders]
    if any(trial is None for trial in trials):
        trials = list(draw_trials(bench, bench.twin, bench.policy.distributions, "trial", folders))
    kept = tuple(trial for trial in trials if trial is not None)
    _refuse_degenerate(bench, kept)
    case = Case(bench.problem, bench.twin, kept, (), bench.policy)
    return replace(case, baselines=_baselines(bench, case, pool))


def _baselines(bench: Bench, case: Case, pool: EvaluationPool) -> tuple[BaselineTime, ...]:
    """Measured on a GPU, modelled where programs are simulated, so that both sides are of one kind."""
    if bench.device.kind != "cuda":
        return (modelled_eager(bench.problem.graph, gpu_of(bench.device)),)
    found = pool.measure_baselines(BaselineJob(case, bench.modes))
    if "eager" in found.absent:
        raise WarpsmithError(
            f"eager PyTorch could not be timed on {bench.device.name}: {found.absent['eager']}"
        )
    return found.times


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
