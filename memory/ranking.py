"""Which of the entries found are worth showing: likeness and verified gain, without near-duplicates. Pure.

Here: the order. Not here: finding entries (`memory.archive`). Invariants: a gain counts only where it was verified on
the architecture asked for; the best entry comes first; no program comes twice while others are left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from memory.archive_entry import Hit
from memory.records import Innovation

GAIN_WEIGHT = 0.15
"""Likeness that the highest gain is worth."""
HIGHEST_GAIN = 8.0
"""Speedup from which on more of it counts no more."""
MODELLED_SHARE = 0.5
"""Of its gain, what a modelled time counts."""
DIVERSITY = 0.3
"""Likeness that an entry loses which says the same as one already chosen."""


def worth(hit: Hit, arch: str) -> float:
    """Likeness plus what the verified gain adds; nothing is added for another architecture or an unchecked import."""
    found = hit.innovation
    origin = found.provenance
    if found.arch != arch or found.verification == "refuted" or origin.origin != "run":
        return hit.similarity
    gain = math.log(min(max(found.speedup, 1.0), HIGHEST_GAIN)) / math.log(HIGHEST_GAIN)
    return hit.similarity + GAIN_WEIGHT * gain * (MODELLED_SHARE if origin.time_source == "modelled" else 1.0)


def sameness(one: Innovation, other: Innovation) -> float:
    """0 where two entries share nothing, 1 where they hold the same program."""
    if one.program.content_hash() == other.program.content_hash():
        return 1.0
    # Not the operations: entries for the operations asked for are meant to come.
    shared = float(one.problem_hash == other.problem_hash) + _overlap(one.techniques, other.techniques)
    return 0.9 * shared / 2


def ranked(hits: Sequence[Hit], arch: str, limit: int) -> list[Hit]:
    """At most `limit` of the hits, the most useful for `arch` first; refuted ones are left out."""
    left = {hit.id: hit for hit in hits if hit.innovation.verification != "refuted"}
    chosen: list[Hit] = []
    while left and len(chosen) < limit:
        best = max(left.values(), key=lambda hit: (_marginal(hit, chosen, arch), hit.id))
        chosen.append(left.pop(best.id))
    return chosen


def _marginal(hit: Hit, chosen: Sequence[Hit], arch: str) -> tuple[bool, bool, float]:
    """Fresh programs before ones already shown, then the architecture asked for, then worth less what is known."""
    most = max((sameness(hit.innovation, other.innovation) for other in chosen), default=0.0)
    return most < 1.0, hit.innovation.arch == arch, worth(hit, arch) - DIVERSITY * most


def _overlap(one: Sequence[str], other: Sequence[str]) -> float:
    """Shared part of two sets of words; 0 where both are empty."""
    together = {*one, *other}
    return len({*one} & {*other}) / len(together) if together else 0.0
