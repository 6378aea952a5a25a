"""What follows a generation in which too much failed: the requirements' rollback policy. Pure.

More than 20 % of the proposals failed after their repairs: the run returns to the last good generation, and the next
one changes its members gently and by rules alone. If small steps away from what was right fail again, it is the device
or the measuring that cannot be trusted, and the run falls back to the module as PyTorch runs it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from enum import StrEnum

from agents.schemas import Member, proposal_of

FAILURE_SHARE = 0.2
"""Above this share of failed proposals a generation is not a good one."""
LEAST = 2
"""One failure alone is no pattern, however small the generation."""


class Course(StrEnum):
    """How a run goes on after a generation."""

    ONWARD = "onward"
    ROLL_BACK = "roll back"
    """Return to the last good generation; the next one is gentle."""
    FALL_BACK = "fall back"
    """The result is the module as PyTorch runs it."""


def course(generation: Sequence[Member], *, gentle: bool, good: bool) -> Course:
    """What follows a generation of these judged candidates.

    gentle: it was a gentle one. good: there is a good generation to return to; without one there is no telling a bad
    device from bad ideas, and what passed is all there is.
    """
    if not too_many_failures(generation):
        return Course.ONWARD
    return Course.FALL_BACK if gentle and good else Course.ROLL_BACK


def too_many_failures(generation: Sequence[Member]) -> bool:
    """True where more than FAILURE_SHARE of the proposals, and LEAST of them at least, failed after their repairs."""
    passed: dict[str, bool] = defaultdict(bool)
    for member in generation:
        passed[proposal_of(member.candidate.id)] |= member.passed
    failed = len(passed) - sum(passed.values())
    return failed >= LEAST and failed > FAILURE_SHARE * len(passed)
