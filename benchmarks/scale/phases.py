"""Where a search's wall time goes, by what it tells of itself."""

from __future__ import annotations

import time
from collections.abc import Callable

from graph.progress import CandidateJudged, GenerationClosed, GenerationPlanned, Progress

STARTING, PLANNING, FIRST, VERDICTS, CLOSING = "starting", "planning", "first verdict", "verdicts", "closing"


class Phases:
    """Sums over generations, in seconds: planning (with the last one's selection), waiting for a generation's first
    verdict, all further verdicts, and closing (from the last verdict to the critic's word)."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._last = clock()
        self._phase = STARTING
        self._sums: dict[str, float] = {}

    @property
    def seconds(self) -> dict[str, float]:
        """The phases that have ended."""
        return {phase: round(total, 1) for phase, total in self._sums.items()}

    def note(self, event: Progress) -> None:
        """Count the time since the last event for the phase that it ends."""
        match event:
            case GenerationPlanned():
                self._enter(FIRST, ended=self._phase)
            case CandidateJudged():
                self._enter(CLOSING, ended=FIRST if self._phase == FIRST else VERDICTS)
            case GenerationClosed():
                self._enter(PLANNING, ended=CLOSING)
            case _:
                pass

    def _enter(self, phase: str, *, ended: str) -> None:
        now = self._clock()
        self._sums[ended] = self._sums.get(ended, 0.0) + now - self._last
        self._last, self._phase = now, phase
