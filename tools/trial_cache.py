"""Trials held in memory between candidates: a device that keeps uploads by array finds the same arrays again."""

from __future__ import annotations

from collections import OrderedDict

from tools.trial import MANIFEST, Trial, TrialData

MAX_TRIALS = 16


class TrialCache:
    """The most recently used trials; one that was drawn again on disk is read again."""

    def __init__(self, limit: int = MAX_TRIALS) -> None:
        self._limit = limit
        self._held: OrderedDict[tuple[Trial, int], TrialData] = OrderedDict()

    def load(self, trial: Trial) -> TrialData:
        """The trial's arrays, which nobody may write to. Raises: StoreError where its files are damaged."""
        path = trial.directory / MANIFEST
        key = (trial, path.stat().st_mtime_ns if path.exists() else 0)
        found = self._held.get(key)
        if found is None:
            found = self._held[key] = trial.load()
        self._held.move_to_end(key)
        while len(self._held) > self._limit:
            self._held.popitem(last=False)
        return found
