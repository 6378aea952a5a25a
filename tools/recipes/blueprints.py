"""Ways to turn a problem into a Program, and the Program of each: what the planner and the coder call.

A Blueprint is a choice (how much to fuse, which thread layout each region gets); `build` carries it out. Both are pure
functions of the captured graph, so that a Blueprint can be stored, mutated and built again elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from memory.records import Graph, KernelStep, Problem, Program
from tools.recipes import (
    activations,
    library_shapes,
    norm_lowering,
    rowwise_lowering,
    view_lowering,
    window_lowering,
)
from tools.recipes.assemble import Assembler
from tools.recipes.channels_last import NOWHERE, find, with_copies
from tools.recipes.fusion import Fusion, Region, Unit, is_view
from tools.recipes.kernels import RegionPlan, Variant
from tools.recipes.shapes import Shapes
from tools.recipes.variants import options

REGISTRATIONS = (activations, library_shapes, norm_lowering, rowwise_lowering, view_lowering, window_lowering)
"""Modules that enter their rules into the registries when they are imported."""


REMEMBERED = 4
"""Problems whose programs are kept; a program of a large graph takes a megabyte."""


class FusionLevel(StrEnum):
    """How much of the graph becomes kernels of our own."""

    LIBRARY_ONLY = "library_only"
    POINTWISE = "pointwise"
    NO_WINDOWS = "no_windows"
    """All but pools and convolutions."""
    FULL = "full"


@dataclass(frozen=True)
class Blueprint:
    """One way to build a Program for a problem."""

    name: str
    idea: str
    """One sentence."""
    techniques: tuple[str, ...]
    recipes: tuple[str, ...]
    """Names of the recipes it uses, as in `catalog()`."""
    fusion: FusionLevel
    channels_last: bool = False
    """Convolutions, and the kernels around them, keep each pixel's channels side by side."""
    variants: Mapping[str, Variant] = field(default_factory=dict)
    """Thread layout by region (`R0`, `R1`, ... in the order they run); a region left out takes its best one."""


TECHNIQUES: dict[Variant, tuple[str, ...]] = {
    Variant.VECTOR: ("elementwise fusion", "vectorized loads"),
    Variant.TILED: ("elementwise fusion", "shared memory transpose"),
    Variant.WARP_PER_ROW: ("reduction fusion", "warp shuffle", "register caching"),
    Variant.BLOCK_PER_ROW: ("reduction fusion", "block reduction", "register caching"),
    Variant.SHARED_ROW: ("reduction fusion", "block reduction", "shared memory caching"),
    Variant.MULTI_PASS: ("reduction fusion", "block reduction", "multi-pass"),
    Variant.SPLIT_ROW: ("reduction fusion", "split reduction", "multi-kernel"),
    Variant.COLUMNS: ("reduction fusion", "coalesced column reduction", "register caching"),
    Variant.COLUMNS_MULTI_PASS: ("reduction fusion", "coalesced column reduction", "multi-pass"),
}


def blueprints(problem: Problem, twin: Problem | None = None) -> tuple[Blueprint, ...]:
    """Distinct ways to build the problem, most promising first; the library-only plan is always last."""
    plans = _plans(problem, twin, FusionLevel.FULL)
    found = _fused(plans) if plans else []
    if _has_windows(plans) and (around := _plans(problem, twin, FusionLevel.NO_WINDOWS)):
        found.append(_full("fused_around_windows", _best(around), around, FusionLevel.NO_WINDOWS))
    if last := _plans(problem, twin, FusionLevel.FULL, channels_last=True):
        found.append(_full("channels_last", _best(last), last, channels_last=True))
    reduces = any(plan.solved.reduced for plan in plans.values())
    if reduces and _plans(problem, twin, FusionLevel.POINTWISE):
        found.append(_POINTWISE)
    return (*found, _LIBRARY)


_POINTWISE = Blueprint(
    name="pointwise",
    idea="Fuse chains of elementwise operations and leave every reduction to the library.",
    techniques=TECHNIQUES[Variant.VECTOR],
    recipes=("pointwise",),
    fusion=FusionLevel.POINTWISE,
)
_LIBRARY = Blueprint(
    name="library",
    idea="Call the library for every operation, without PyTorch's own overhead.",
    techniques=("library calls",),
    recipes=("library",),
    fusion=FusionLevel.LIBRARY_ONLY,
)


def _best(plans: Mapping[str, RegionPlan]) -> dict[str, Variant]:
    return {prefix: plan.variant for prefix, plan in plans.items()}


def _fused(plans: dict[str, RegionPlan]) -> list[Blueprint]:
    """Everything fused: each region in its most promising layout, then in the ones after that."""
    best = _best(plans)
    found = [_full("fused", best, plans)]
    for rank in (1, 2):
        other = {p: _option(plan, rank) for p, plan in plans.items()}
        if other not in [b.variants for b in found]:
            changed = sorted({v.value for p, v in other.items() if v != best[p]})
            found.append(_full(f"fused_{'_'.join(changed)}", other, plans))
    return found


def build(problem: Problem, blueprint: Blueprint, twin: Problem | None = None) -> Program:
    """The Program of a blueprint. Any captured graph has one.

    `twin`: the problem at reduced shapes. One capture cannot tell a 64 that is the batch from a 64 that is a width;
    two can, so that the Program binds to both. Without a twin, sizes are matched by value and place.
    """
    assembler, units = _cut(problem, twin, blueprint.fusion, channels_last=blueprint.channels_last)
    return assembler.program(units, blueprint.variants)


def built(problem: Problem, twin: Problem | None = None) -> tuple[tuple[Blueprint, Program], ...]:
    """Every blueprint of the problem with its Program, most promising first. Remembered for the last few problems:
    a search asks for it with every generation and with every candidate that begins from a recipe."""
    return _built(_Pair(problem.content_hash(), twin.content_hash() if twin else "", problem, twin))


@dataclass(frozen=True)
class _Pair:
    """A problem and its twin, told apart by their hashes."""

    problem_hash: str
    twin_hash: str
    problem: Problem = field(compare=False)
    twin: Problem | None = field(compare=False)


@lru_cache(maxsize=REMEMBERED)
def _built(pair: _Pair) -> tuple[tuple[Blueprint, Program], ...]:
    ways = blueprints(pair.problem, pair.twin)
    return tuple((way, build(pair.problem, way, pair.twin)) for way in ways)


def _cut(
    problem: Problem, twin: Problem | None, level: FusionLevel, *, channels_last: bool
) -> tuple[Assembler, list[Unit]]:
    """The graph's units, and what writes them."""
    graph, other = problem.graph, twin.graph if twin else None
    fusion = _fusion(graph, other, level)
    last = NOWHERE
    if channels_last:
        graph, other = with_copies(fusion), with_copies(_fusion(other, None, level)) if other else None
        fusion = _fusion(graph, other, level)
        last = find(fusion)
    if level is FusionLevel.LIBRARY_ONLY:
        units: list[Unit] = [i for i, node in enumerate(graph.nodes) if not is_view(node)]
        return Assembler(graph, fusion.shapes, fusion, hoist=False), units
    return Assembler(graph, fusion.shapes, fusion, last=last), fusion.units()


def _fusion(graph: Graph, twin: Graph | None, level: FusionLevel) -> Fusion:
    return Fusion(
        graph,
        Shapes(graph, twin),
        reductions=level in (FusionLevel.FULL, FusionLevel.NO_WINDOWS),
        windows=level is FusionLevel.FULL,
    )


def _plans(
    problem: Problem, twin: Problem | None, level: FusionLevel, *, channels_last: bool = False
) -> dict[str, RegionPlan]:
    """Region plans with their best variants, by prefix; none where a call launches no kernel and computes no less, or
    where there is nothing to keep channels-last."""
    assembler, units = _cut(problem, twin, level, channels_last=channels_last)
    if not any(isinstance(unit, Region) for unit in units) or (channels_last and not assembler.last.made):
        return {}
    program = assembler.program(units, {})
    launches = any(isinstance(step, KernelStep) for step in program.steps)
    return assembler.plans if launches or assembler.saved_flops else {}


def _option(plan: RegionPlan, rank: int) -> Variant:
    allowed = options(plan)
    return allowed[min(rank, len(allowed) - 1)]


def _has_windows(plans: Mapping[str, RegionPlan]) -> bool:
    return any(
        access.window is not None for plan in plans.values() for access in plan.geometry.loads.values()
    )


def _full(
    name: str,
    variants: dict[str, Variant],
    plans: dict[str, RegionPlan],
    level: FusionLevel = FusionLevel.FULL,
    *,
    channels_last: bool = False,
) -> Blueprint:
    used = list(dict.fromkeys(variants.values()))
    techniques = tuple(dict.fromkeys(t for v in used for t in TECHNIQUES[v]))
    windows = _has_windows(plans)
    techniques += ("sliding window",) if windows else ()
    techniques += ("channels-last convolutions",) if channels_last else ()
    titles = [f"{plan.title} ({variants[p].value.replace('_', ' ')})" for p, plan in plans.items()]
    listed = "; ".join(titles[:4]) + (f"; and {len(titles) - 4} more regions" if len(titles) > 4 else "")
    marks = (("window", windows), ("channels_last", channels_last))
    return Blueprint(
        name=name,
        idea=f"Fuse into {len(plans)} region{'s' if len(plans) > 1 else ''}, so that no intermediate of one touches "
        f"memory: {listed}.",
        techniques=techniques,
        recipes=(*dict.fromkeys(recipe_of(v) for v in used), *(word for word, is_so in marks if is_so)),
        fusion=level,
        channels_last=channels_last,
        variants=variants,
    )


def recipe_of(variant: Variant) -> str:
    """Name of the recipe a variant belongs to."""
    return {Variant.VECTOR: "pointwise", Variant.COLUMNS_MULTI_PASS: "columns_multi_pass"}.get(
        variant, variant.value
    )
