"""How much a run may spend, and whether it has. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """Limits of a run's search."""

    generations: int
    wall_s: float

    def exhausted(self, generations: int, spent_s: float) -> str | None:
        """Why the search must stop, or None. generations: finished so far; spent_s: over all resumes."""
        if generations >= self.generations:
            return f"all {self.generations} generations are done"
        if spent_s >= self.wall_s:
            return f"the budget of {self.wall_s:.0f} s is spent"
        return None
