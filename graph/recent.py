"""What was used last, kept in memory up to a limit. Not here: what is kept, and when it is out of date."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The entries used last. Threads may share it."""

    def __init__(self, limit: int) -> None:
        """limit: entries kept at most."""
        self._limit = limit
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """The entry, or None where it is not kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: K, value: V) -> V:
        """Keep an entry in place of the one used longest ago; returns it."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            if len(self._kept) > self._limit:
                self._kept.popitem(last=False)
        return value

    def forget(self, key: K) -> None:
        """Keep it no longer."""
        with self._lock:
            self._kept.pop(key, None)
