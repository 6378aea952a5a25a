"""How much a run may spend, and whether it has. Pure, but for the meter that a run's threads share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from agents.allowance import Caps
from memory.events import Spend

NOTHING = Spend(0, 0, 0, 0.0)
UNCAPPED = Caps()


@dataclass(frozen=True)
class Spent:
    """What a run has used so far, over all resumes."""

    wall_s: float
    device_s: float = 0.0
    models: Spend = NOTHING
    evaluations: int = 0


@dataclass(frozen=True)
class Budget:
    """Limits of a run's search; None is no limit."""

    generations: int
    wall_s: float
    device_s: float | None = None
    caps: Caps = UNCAPPED
    evaluations: int | None = None

    def exhausted(self, generations: int, spent: Spent) -> str | None:
        """Why the search must stop, or None. generations: finished so far."""
        if generations >= self.generations:
            return f"all {self.generations} generations are done"
        if spent.wall_s >= self.wall_s:
            return f"the budget of {self.wall_s:.0f} s is spent"
        if self.device_s is not None and spent.device_s >= self.device_s:
            return f"the budget of {self.device_s:.0f} s on the device is spent"
        if self.evaluations is not None and spent.evaluations >= self.evaluations:
            return f"the {self.evaluations:,} evaluations are done"
        if self.caps.tokens is not None and spent.models.tokens >= self.caps.tokens:
            return f"the cap of {self.caps.tokens:,} tokens is reached"
        if self.caps.cost_usd is not None and spent.models.cost_usd >= self.caps.cost_usd:
            return f"the cap of ${self.caps.cost_usd:.2f} is reached"
        return None


class Deadline:
    """When a run's time ends, on the clock and on the device; set at the start of every generation, read by all its
    branches."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends = float("inf")
        self._device_s = float("inf")
        self._lock = threading.Lock()

    def set(self, seconds: float, device_s: float = float("inf")) -> None:
        """The time ends in so many seconds, or after so many on the device."""
        self._ends = self._clock() + seconds
        with self._lock:
            self._device_s = device_s

    def use_device(self, seconds: float) -> None:
        """Count seconds on the device."""
        with self._lock:
            self._device_s -= seconds

    def left_s(self) -> float:
        """Seconds that are left on the clock, negative once it has passed, infinite before it was set."""
        return self._ends - self._clock()

    @property
    def passed(self) -> bool:
        """True once no time is left on either."""
        return self.left_s() <= 0 or self._device_s <= 0
