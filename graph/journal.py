"""The store as the journal of a run's model calls: what was asked, answered and paid, found again by its key.

Invariants: an answer and what it cost are one event, committed together, so that neither a crash nor a resume can pay
for it twice or forget to count it; a request that was under way when a process died counts at its most.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from agents.calls import Call
from agents.endpoint import Role
from graph.budget import Deadline
from memory.events import AgentEvent
from memory.store import Store

DIED = "the process ended while this request was under way"


class StoreJournal:
    """The journal of one run."""

    def __init__(self, store: Store, run_id: str, now: Callable[[], datetime], deadline: Deadline) -> None:
        self._store = store
        self._run_id = run_id
        self._now = now
        self._deadline = deadline

    def answered(self, key: str) -> Call | None:
        """See agents.calls.Journal."""
        event = self._store.event(self._event_id(key))
        if event is None:
            return None
        assert event.model is not None, "only calls of models are kept under a key"
        return Call(
            key=key, role=Role(event.role), model=event.model, generation=event.generation,
            candidate_id=event.candidate_id, move=event.move, prompt=event.prompt, prompt_hash=event.prompt_hash or "",
            reply=event.reply, tokens_in=event.tokens_in, tokens_out=event.tokens_out, cost_usd=event.cost_usd,
            latency_s=event.latency_s, decision=event.decision, failure=event.failure,
        )  # fmt: skip

    def sent(self, call: Call) -> None:
        """See agents.calls.Journal."""
        counted = (call.tokens_in or 0) + (call.tokens_out or 0)
        lost = replace(call, failure=f"{DIED}; counted as {counted:,} tokens", decision=DIED)
        self._store.put_request(call.slip, self._event(lost, uuid.uuid4().hex))

    def count_lost(self) -> int:
        """Count, at their most, the requests that died with earlier processes of the run; how many.

        Only for who holds the run: another process's requests under way would be counted as well.
        """
        return self._store.close_requests(self._run_id)

    def keep(self, call: Call, *, answered: bool) -> None:
        """See agents.calls.Journal. A call without an answer is kept under an id of its own, and may be repeated."""
        event = self._event(call, call.key if answered else uuid.uuid4().hex)
        with self._store.together():
            self._store.put_event(event)
            self._store.answer_requests(call.slip)

    def _event(self, call: Call, key: str) -> AgentEvent:
        return AgentEvent(
            id=self._event_id(key), run_id=self._run_id, at=self._now().isoformat(), role=call.role.value,
            agent="model", model=call.model, generation=call.generation, candidate_id=call.candidate_id,
            move=call.move, prompt=call.prompt, reply=call.reply, prompt_hash=call.prompt_hash,
            tokens_in=call.tokens_in, tokens_out=call.tokens_out, cost_usd=call.cost_usd, latency_s=call.latency_s,
            decision=call.decision, failure=call.failure,
        )  # fmt: skip

    def seconds_left(self) -> float:
        """See agents.calls.Journal."""
        return self._deadline.left_s()

    def _event_id(self, key: str) -> str:
        return f"{self._run_id}-{key[:24]}"
