"""What models may still use: caps on tokens and cost, kept by every thread of a run.

Invariant: a call is let through only where its worst case fits under the caps together with all that is spent and
all that is under way, so that a cap is never passed. One that would fit once calls under way have turned out cheaper
waits for them. Not here: time (graph.budget).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class CapReached(Exception):
    """A call might pass a cap; the message says which."""


@dataclass(frozen=True)
class Caps:
    """Limits over a whole run, all resumes included; None is no limit."""

    tokens: int | None = None
    cost_usd: float | None = None


class Allowance:
    """Counts what models use against the caps."""

    def __init__(self, caps: Caps, *, spent_tokens: int = 0, spent_usd: float = 0.0) -> None:
        self._caps = caps
        self._spent = _Bill(spent_tokens, spent_usd)
        self._under_way: list[_Bill] = []
        """Worst case of each call."""
        self._settled = threading.Condition()
        self.exhausted = ""
        """Why a call was refused; empty while none was."""

    @contextmanager
    def call(self, tokens: int, cost_usd: float | None) -> Iterator[_Bill]:
        """Room for one call of at most so many tokens and USD; what it really used is set on the bill.

        Raises CapReached before anything is spent. A model without a price counts against the tokens alone.
        """
        worst = _Bill(tokens, cost_usd or 0.0)
        with self._settled:
            while self._passed_by(self._spent, *self._under_way, worst):
                if reached := self._passed_by(self._spent, worst):
                    self.exhausted = f"{reached} leaves no room for another model call"
                    raise CapReached(self.exhausted)
                self._settled.wait()
            self._under_way.append(worst)
        bill = _Bill()
        try:
            yield bill
        finally:
            with self._settled:
                self._spent = _Bill(self._spent.tokens + bill.tokens, self._spent.cost_usd + bill.cost_usd)
                self._under_way.remove(worst)
                self._settled.notify_all()

    def _passed_by(self, *bills: _Bill) -> str:
        """The cap that these together pass, in words; empty where there is none."""
        caps = self._caps
        if caps.tokens is not None and sum(b.tokens for b in bills) > caps.tokens:
            return f"the cap of {caps.tokens:,} tokens"
        if caps.cost_usd is not None and sum(b.cost_usd for b in bills) > caps.cost_usd:
            return f"the cap of ${caps.cost_usd:.2f}"
        return ""


@dataclass
class _Bill:
    """What a call used in the end; nothing, where it failed."""

    tokens: int = 0
    cost_usd: float = 0.0
