"""What a verdict rests on: tolerance, trials, deadlines. Part of every evaluation's identity."""

from __future__ import annotations

from pydantic import Field

from memory.records import Record
from tools.correctness import Tolerance
from tools.inputs import Distribution

DEFAULT_DISTRIBUTIONS = tuple(d for d in Distribution if d is not Distribution.CONSTANT_ROWS)
"""Constant rows are left out: a normalisation divides by nearly nothing there, so that the last bit of a mean decides
the result, and honest kernels fail where eager happens to round luckily."""


class Policy(Record):
    """How candidates are judged. Two evaluations compare only where their policies' hashes agree."""

    relative_tolerance: float = Field(default=1e-6, gt=0)
    """Errors up to this always pass (relative to max(|oracle|, rms(oracle)))."""
    eager_factor: float = Field(default=2.0, ge=1)
    """Errors up to this multiple of eager PyTorch's own pass."""
    distributions: tuple[Distribution, ...] = DEFAULT_DISTRIBUTIONS
    """Input distributions of the trials every candidate must pass, one fresh draw each."""
    soak_trials: int = Field(default=100, ge=0)
    """Further random trials that a winner must pass."""
    deadline_s: float = Field(default=60.0, gt=0)
    """Wall seconds one evaluation may take before its worker is killed."""

    @property
    def tolerance(self) -> Tolerance:
        """The comparison rule."""
        return Tolerance(self.relative_tolerance, self.eager_factor)
