"""Innovations that a run is told to begin with: found in the archive, and checked against the problem.

Invariant: a run that was recorded with seeds has whole ids of innovations that are valid programs for its problem.
Whether they are right, and fast, is for the verifier.
"""

from __future__ import annotations

from collections.abc import Sequence

from agents.schemas import Recalled
from graph.settings import Settings
from memory.archive import Archive
from memory.errors import BadInput
from memory.records import Innovation, Problem
from tools.devices.build import gpu_of
from tools.gpus import GpuSpec
from tools.problem import Captured
from tools.program import validate

LIKENESS_AMONG = 64
"""Neighbours among which a seed's likeness is looked for; 0 for one that is further away."""
_RECALLED = 4


def with_checked_seeds(settings: Settings, captured: Captured, archive: Archive) -> Settings:
    """The settings with every seed's whole id. Raises BadInput naming one that is absent or does not fit."""
    if len(settings.seed_ids) > settings.population:
        raise BadInput(
            f"{len(settings.seed_ids)} seeds do not fit into a population of {settings.population}; "
            "give fewer, or a larger --population"
        )
    gpu = gpu_of(settings.device_spec)
    whole: list[str] = []
    for name in settings.seed_ids:
        entry_id, innovation = find_innovation(name, archive)
        if (why := why_unfit(innovation, captured, gpu)) is not None:
            raise BadInput(
                f"innovation {entry_id[:12]} ({innovation.problem_name}) cannot be a seed here: {why}"
            )
        whole.append(entry_id)
    return settings.model_copy(update={"seeds": ",".join(dict.fromkeys(whole))})


def find_innovation(prefix: str, archive: Archive) -> tuple[str, Innovation]:
    """The one whose id is or begins with `prefix`, with its whole id. Raises BadInput where none or several do."""
    found = archive.get(prefix)
    if found is not None:
        return prefix, found
    fitting = [entry_id for entry_id in archive.all_ids() if entry_id.startswith(prefix)]
    if len(fitting) != 1:
        what = f"{len(fitting)} innovations have" if fitting else "no innovation has"
        raise BadInput(f"{what} an id that begins with {prefix!r}; see `warpsmith archive search --json`")
    innovation = archive.get(fitting[0])
    if innovation is None:
        raise BadInput(f"innovation {prefix!r} has just been taken out of the archive")
    return fitting[0], innovation


def why_unfit(innovation: Innovation, captured: Captured, gpu: GpuSpec) -> str | None:
    """Why its program is not valid for a captured module or its twin; None where it is."""
    for problem in (captured.problem, captured.reduced):
        if problem is None:
            continue
        _, complaints = validate(innovation.program, problem, gpu)
        if complaints:
            return complaints[0].message
    return None


def recalled(archive: Archive, problem: Problem, arch: str, seeds: Sequence[str]) -> list[Recalled]:
    """The seeds in their order, then what resembles the problem, most similar first."""
    hits = archive.neighbours(problem, arch, limit=LIKENESS_AMONG if seeds else _RECALLED)
    likeness = {hit.id: hit.similarity for hit in hits}
    chosen = [Recalled(id=seed, similarity=likeness.get(seed, 0.0), chosen=True) for seed in seeds]
    others = [hit for hit in hits if hit.id not in seeds][:_RECALLED]
    return [*chosen, *(Recalled(id=hit.id, similarity=hit.similarity) for hit in others)]
