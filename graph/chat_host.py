"""Answers of the chat, made in threads that outlive whoever asked: a page that is reloaded or closed loses none.

Here: which conversation is being answered, and what is being done for it. Not here: the answers (graph.chat), their
keeping (graph.chat_history), showing them. Invariants: one message of a conversation is answered at a time, in this
process; a fault of ours in an answer is raised again for whoever looks next.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field

from graph.build import open_reader
from graph.chat import ChatEngine
from graph.chat_history import Conversation
from graph.chat_parts import ProgressLine
from graph.settings import Settings
from memory.errors import BadInput


@dataclass
class Answering:
    """A message that is being answered."""

    text: str
    since: float = field(default_factory=time.monotonic)
    doing: str = ""
    """What is being done, where that takes a while."""
    done: Future[None] = field(default_factory=Future)

    @property
    def seconds(self) -> float:
        """For how long."""
        return time.monotonic() - self.since


class ChatHost:
    """Answers the messages of all conversations of one home."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._answering: dict[str, Answering] = {}

    def ask(self, talk: Conversation, text: str) -> Answering:
        """Begin to answer a message; at once. Raises BadInput while another one of the conversation is answered."""
        with self._lock:
            if self._at_work(talk.id) is not None:
                raise BadInput(
                    "the message before this one is still being answered; say it again when that is done"
                )
            begun = self._answering[talk.id] = Answering(text)
        # A daemon: an answer that hangs must not keep the server alive. Runs are processes of their own.
        threading.Thread(target=self._answer, args=(talk, begun), name=f"chat {talk.id}", daemon=True).start()
        return begun

    def answering(self, talk: Conversation) -> Answering | None:
        """What is being answered; None where nothing is. Raises, once, what went wrong through our own fault."""
        with self._lock:
            found = self._answering.get(talk.id)
            if found is None or not found.done.done():
                return found
            del self._answering[talk.id]
        found.done.result()
        return None

    def _at_work(self, conversation_id: str) -> Answering | None:
        found = self._answering.get(conversation_id)
        return None if found is None or found.done.done() else found

    def _answer(self, talk: Conversation, begun: Answering) -> None:
        try:
            with open_reader(self._settings) as reader:
                for part in ChatEngine(talk, self._settings, reader=reader).say(begun.text):
                    begun.doing = part.text if isinstance(part, ProgressLine) else ""
        except BaseException as fault:  # noqa: BLE001 - passed on to whoever looks next, see `answering`
            begun.done.set_exception(fault)
        else:
            begun.done.set_result(None)
