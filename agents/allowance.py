"""What models may still use: caps on tokens and cost, kept by every thread of a run.

Invariant: a request is let through only where the most that it can use fits under the caps together with all that is
used and all that is under way, so that no cap is passed, whatever tokenizer the model has. What nobody tells is counted
at that most: a request that may have been answered without us, an endpoint that does not count. One that would fit
once calls under way have turned out cheaper waits for them; the last calls get shorter answers.
Does not cover: an endpoint that reads or writes more than it was sent or asked for (docs/models.md). Not here: time
(graph.budget).
"""

from __future__ import annotations

import math
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agents.calls import ModelRequest
from agents.prices import MILLION, Price

TURN_TOKENS = 16
"""That a chat template puts around a turn: its marks and its role."""
REQUEST_TOKENS = 256
"""That a chat template puts before a conversation: a date, a cutoff, an effort, channels."""
CHEAPEST = 1e-9
"""USD for a million tokens; what costs nothing is reckoned as this."""
LEAST_ANSWER = 2048
"""Tokens; where there is no room for that, no answer is worth asking for."""


class CapReached(Exception):
    """A call might pass a cap; the message says which."""


@dataclass(frozen=True)
class Caps:
    """Limits over a whole run, all resumes included; None is no limit."""

    tokens: int | None = None
    cost_usd: float | None = None


def most_read(request: ModelRequest) -> int:
    """Tokens that no tokenizer makes more of: one for each byte, and what the chat template adds."""
    size = sum(map(_bytes, (*(turn.text for turn in request.messages), request.schema or "")))
    return size + TURN_TOKENS * len(request.messages) + REQUEST_TOKENS


def _bytes(text: str) -> int:
    """As it is, or with its characters taken apart, as some tokenizers do first."""
    apart = text if text.isascii() else unicodedata.normalize("NFKD", text)
    return max(len(form.encode(errors="surrogatepass")) for form in (text, apart))


@dataclass(frozen=True)
class Need:
    """What a request may use at most."""

    tokens_in: int
    tokens_out: int
    """Of the longest answer wanted."""
    price: Price | None = None
    """None where it is not known: the call counts against the tokens alone."""

    @property
    def least_out(self) -> int:
        """Tokens of the shortest answer worth asking for."""
        return min(self.tokens_out, LEAST_ANSWER)


@dataclass(eq=False)
class Bill:
    """What a call has used; begun by `Allowance.call`."""

    need: Need
    limit: int
    """Tokens of the longest answer that may be asked for."""
    tokens_in: int = 0
    tokens_out: int = 0
    pending: bool = True
    """A request is under way, or may be sent."""

    @property
    def tokens(self) -> int:
        """Read and written."""
        return self.tokens_in + self.tokens_out

    @property
    def cost_usd(self) -> float | None:
        """None where the price is not known."""
        price = self.need.price
        return price.of(self.tokens_in, self.tokens_out) if price is not None else None

    @property
    def most(self) -> tuple[int, float]:
        """Tokens and USD once the request that is pending has used all it may."""
        read, written = (self.need.tokens_in, self.limit) if self.pending else (0, 0)
        price = self.need.price
        cost = price.of(self.tokens_in + read, self.tokens_out + written) if price is not None else 0.0
        return self.tokens + read + written, cost

    @property
    def most_cost_usd(self) -> float | None:
        """USD of one request that uses all it may; None where the price is not known."""
        price = self.need.price
        return price.of(self.need.tokens_in, self.limit) if price is not None else None

    def settle(self, tokens_in: int | None, tokens_out: int | None) -> None:
        """Count an answer; what the endpoint does not tell counts at its most."""
        self.tokens_in += tokens_in if tokens_in is not None and tokens_in >= 0 else self.need.tokens_in
        self.tokens_out += tokens_out if tokens_out is not None and tokens_out >= 0 else self.limit
        self.pending = False


class Allowance:
    """Counts what models use against the caps."""

    def __init__(self, caps: Caps, *, spent_tokens: int = 0, spent_usd: float = 0.0) -> None:
        self._caps = caps
        self._tokens, self._usd = spent_tokens, spent_usd
        self._under_way: list[Bill] = []
        self._settled = threading.Condition()
        self.exhausted = ""
        """Why a call was refused; empty while none was."""

    @contextmanager
    def call(self, need: Need) -> Iterator[Bill]:
        """Room for one request, whose answer is settled on the bill.

        Raises CapReached before anything is spent.
        """
        with self._settled:
            bill = Bill(need, self._granted(need))
            self._under_way.append(bill)
        try:
            yield bill
        finally:
            with self._settled:
                self._under_way.remove(bill)
                self._tokens += bill.tokens
                self._usd += bill.cost_usd or 0.0
                self._settled.notify_all()

    def lost(self, bill: Bill) -> bool:
        """Count the pending request at its most, as nobody will say what it used; True where another one fits now.

        It does not wait: who asks holds one of the endpoint's slots, which those under way may be waiting for.
        """
        with self._settled:
            bill.settle(None, None)
            others = [other for other in self._under_way if other is not bill]
            tokens, usd = bill.most
            bill.pending = self._room(bill.need, others, tokens, usd) >= bill.limit
            return bill.pending

    def _granted(self, need: Need) -> int:
        """Tokens of an answer. Waits for calls under way where these leave no room for the longest one."""
        while (room := self._room(need, self._under_way)) < need.tokens_out:
            if self._room(need, ()) < need.least_out:
                self.exhausted = self._refusal(need)
                raise CapReached(self.exhausted)
            if not self._under_way:
                return room
            self._settled.wait()
        return need.tokens_out

    def _room(self, need: Need, beside: Iterable[Bill], tokens: int = 0, usd: float = 0.0) -> int:
        """Tokens of the longest answer wanted that fits beside these bills; negative where the prompt does not."""
        room = float(need.tokens_out)
        held = [bill.most for bill in beside]
        if self._caps.tokens is not None:
            used = self._tokens + tokens + sum(most for most, _ in held)
            room = min(room, self._caps.tokens - used - need.tokens_in)
        if self._caps.cost_usd is not None and need.price is not None:
            left = self._caps.cost_usd - self._usd - usd - sum(cost for _, cost in held)
            left -= need.price.of(need.tokens_in, 0)
            # Rounding may take away as much as a millionth of a token.
            room = min(room, left * MILLION / max(need.price.output, CHEAPEST) + 1e-6)
        return math.floor(room)

    def _refusal(self, need: Need) -> str:
        cap, least = self._caps.tokens, need.least_out
        if cap is not None and self._tokens + need.tokens_in + least > cap:
            return (
                f"the cap of {cap:,} tokens leaves no room for another model call: {self._tokens:,} are used, and this "
                f"one may read up to {need.tokens_in:,} and needs {least:,} for its answer"
            )
        cost = need.price.of(need.tokens_in, least) if need.price is not None else 0.0
        return (
            f"the cap of ${self._caps.cost_usd:.2f} leaves no room for another model call: ${self._usd:.4f} is used, "
            f"and this one may cost ${cost:.4f}"
        )
