"""Moves in the numeric genome: a program's tunables. Pure; every choice comes from the given generator."""

from __future__ import annotations

from random import Random

from memory.records import Program, Tunable


def mutate(program: Program, rng: Random, *, gentle: bool) -> dict[str, int]:
    """Another point near `program`: one tunable stepped to a neighbouring choice, or, if not gentle, up to three
    set to any other choice. Empty where nothing can change."""
    movable = [t for t in program.tunables if len(set(t.choices)) > 1]
    if not movable:
        return {}
    if gentle or rng.random() < 0.5:
        return _step(rng.choice(movable), rng)
    count = min(len(movable), rng.randint(1, 3))
    return {t.name: rng.choice([c for c in t.choices if c != t.value]) for t in rng.sample(movable, count)}


def scatter(program: Program, rng: Random) -> dict[str, int]:
    """A point anywhere: every tunable drawn anew; only those that changed. Empty where nothing can change."""
    movable = [t for t in program.tunables if len(set(t.choices)) > 1]
    drawn = {t.name: rng.choice(t.choices) for t in movable}
    changed = {t.name: drawn[t.name] for t in movable if drawn[t.name] != t.value}
    return changed or mutate(program, rng, gentle=False)


def cross(first: Program, second: Program, rng: Random) -> dict[str, int]:
    """Values of `first` with about half of the tunables that differ taken from `second`; empty if none differ."""
    other = second.tunable_values()
    differing = [t for t in first.tunables if t.name in other and other[t.name] != t.value]
    differing = [t for t in differing if other[t.name] in t.choices]
    if not differing:
        return {}
    taken = [t for t in differing if rng.random() < 0.5] or [rng.choice(differing)]
    return {t.name: other[t.name] for t in taken}


def smaller(program: Program) -> dict[str, int]:
    """Every tunable one choice down: what to try where a resource ran out. Empty at the smallest point."""
    steps: dict[str, int] = {}
    for tunable in program.tunables:
        below = [choice for choice in tunable.choices if choice < tunable.value]
        if below:
            steps[tunable.name] = max(below)
    return steps


def _step(tunable: Tunable, rng: Random) -> dict[str, int]:
    ordered = sorted(set(tunable.choices))
    at = ordered.index(tunable.value)
    around = [ordered[i] for i in (at - 1, at + 1) if 0 <= i < len(ordered)]
    return {tunable.name: rng.choice(around)}


def describe(values: dict[str, int]) -> str:
    """`BLOCK=256, VEC=4`."""
    return ", ".join(f"{name}={value}" for name, value in sorted(values.items()))
