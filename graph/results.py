"""What a finished run leaves: an innovation in the archive, an exported module, a status. Not here: graph.summary."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from agents.schemas import Member
from graph.context import RunContext
from graph.folders import write_whole
from graph.settings import Settings
from graph.state import RunState
from memory.archive_entry import innovation_id
from memory.errors import WarpsmithError
from memory.records import Innovation, Problem, Profile, Program, Provenance, Run, RunStatus, Timing
from memory.signature import problem_operations, problem_signature
from memory.store import Store
from tools.export import ExportReport, export_module, write_export
from tools.machine import gpus_present


def run_status(state: RunState) -> RunStatus:
    """IMPROVED where a winner beat the baseline and passed its soak."""
    return RunStatus.IMPROVED if state.winner else RunStatus.NOT_IMPROVED


def versions() -> dict[str, str]:
    """Versions that a result depends on."""
    names = ("warpsmith", "torch", "cuda-core", "nvidia-cuda-nvrtc")
    return {"python": platform.python_version()} | {name: _version(name) for name in names}


def _version(name: str) -> str:
    """A package's version; Warpsmith may run from its source tree, and NVRTC come with a CUDA toolkit."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed as a package"


def driver_of(settings: Settings) -> str:
    """The GPU and its driver's version as the driver reports them; empty on a simulator."""
    present = gpus_present() if settings.on_gpu else ()
    return present[settings.gpu_index] if settings.gpu_index < len(present) else ""


def passed_timing(member: Member) -> tuple[Timing, Profile]:
    """A passed candidate's time and profile. Raises WarpsmithError for any other."""
    timing, profile = member.evaluation.timing, member.evaluation.profile
    if timing is None or profile is None:
        raise WarpsmithError(
            f"candidate {member.candidate.id} is {member.evaluation.status.value}, not passed"
        )
    return timing, profile


def winning_idea(member: Member, context: RunContext) -> str:
    """The idea that the winner's line began with, and where its tuning ended; one sentence."""
    root = context.store.lineage(member.candidate.id)[0]
    idea = root.idea.rstrip(".").partition(" (at ")[0]
    values = ", ".join(f"{name}={value}" for name, value in member.program.tunable_values().items())
    return f"{idea} (at {values})" if values else idea


def archive_winner(member: Member, state: RunState, context: RunContext) -> str:
    """Put the winner into the archive; returns its id there."""
    timing, profile = passed_timing(member)
    innovation = Innovation(
        problem_hash=context.run.problem_hash,
        problem_name=context.problem.name,
        signature=problem_signature(context.problem),
        operations=problem_operations(context.problem),
        dtype=context.problem.dtype,
        arch=context.gpu.arch,
        program=member.program,
        idea=winning_idea(member, context),
        techniques=member.candidate.techniques,
        best_us=timing.median_us,
        speedup=timing.speedup,
        floor_fraction=profile.floor_fraction,
        verification="soak" if state.trials else "trials",
        provenance=Provenance(
            run_id=context.run.id,
            device=context.run.device,
            time_source=timing.source,
            created=context.now().isoformat(timespec="seconds"),
            versions=versions(),
            driver=driver_of(context.settings),
            trials=state.trials + len(context.case.trials),
        ),
    )
    context.archive.add(innovation)
    return innovation_id(innovation)


def export_winner(member: Member, state: RunState, context: RunContext) -> Path:
    """Write the winner as one Python file under the export folder; returns its absolute path."""
    timing, _ = passed_timing(member)
    trials = state.trials + len(context.case.trials)
    report = ExportReport(
        device=context.run.device,
        arch=context.gpu.arch,
        time_source=timing.source,
        best_us=timing.median_us,
        baseline_us=timing.eager_us,
        floor_us=timing.floor_us,
        trials=trials,
        verified_shapes=_input_shapes(context.twin),
        full_shape_trials=state.full_shape_trials,
        relative_tolerance=context.settings.relative_tolerance,
        eager_factor=context.settings.eager_factor,
        distributions=tuple(str(d) for d in context.settings.policy.distributions),
        idea=winning_idea(member, context),
        versions=versions(),
        created=context.now().isoformat(timespec="seconds"),
        run_id=context.run.id,
        candidate_id=member.candidate.id,
    )
    path = export_path(context.run)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = export_module(context.problem, member.program, report, constants=_constants(context))
    write_export(path, text)
    return path


def _constants(context: RunContext) -> dict[str, bytes]:
    """Content of the tensors that forward makes from numbers in its code; they are in every trial's state."""
    names = [entry.value for entry in context.problem.graph.state if entry.kind == "constant"]
    if not names:
        return {}
    state = context.case.trials[0].load().state
    return {name: state[name].tobytes() for name in names}


def export_path(run: Run) -> Path:
    """Where a run's winner is exported."""
    return Path(run.settings["export_dir"]) / f"{run.id}.py"


def _input_shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    return {name: problem.graph.values[name].shape for name in problem.graph.inputs}


def write_best(run: Run, store: Store, settings: Settings, *, winner: str | None) -> None:
    """Write the winner, or else the fastest program that passed, as JSON; nothing where none did. Raises DiskFull."""
    candidate = store.candidate(winner) if winner else None
    if candidate is None:
        found = store.best_candidate(run.id, policy_hash=settings.policy.content_hash())
        candidate = found.candidate if found else None
    if candidate is not None:
        write_program(store.program(candidate.program_hash), program_path(run, settings))


def program_path(run: Run, settings: Settings) -> Path:
    """Where a run's best program is written as JSON."""
    return settings.root / "runs" / run.id / "program.json"


def write_program(program: Program, path: Path) -> Path:
    """The program as JSON, for `warpsmith verify`; written whole or not at all."""
    write_whole(path, program.model_dump_json(indent=1))
    return path
