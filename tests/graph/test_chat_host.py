"""Answers that outlive whoever asked: one at a time, whole, and with faults of ours told."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pydantic import ValidationError

from graph.chat_history import Answered, Conversation, Said, new_conversation
from graph.chat_host import ChatHost
from graph.folders import prepare_home
from memory.errors import BadInput
from tests.graph.test_runner import settings_in, until


def words(talk: Conversation) -> list[str]:
    return [
        line.text if isinstance(line, Said) else getattr(line.part, "text", "") for line in talk.messages()
    ]


def test_a_message_is_answered_though_nobody_waits(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    prepare_home(settings)
    host, talk = ChatHost(settings), new_conversation(settings.root)
    assert host.answering(talk) is None
    assert host.ask(talk, "help").text == "help"
    until(lambda: host.answering(talk) is None)
    said, *answer = words(talk)
    assert said == "help" and "I optimize a module" in answer[0]


def test_two_tabs_of_one_conversation_are_answered_one_after_the_other(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    prepare_home(settings)
    host, talk = ChatHost(settings), new_conversation(settings.root)
    other = new_conversation(settings.root)
    (tmp_path / "slow.py").write_text(
        "import time\nimport torch\ntime.sleep(4)\nclass Model(torch.nn.Module):\n"
        "    def forward(self, x):\n        raise ValueError('too late')\n\n"
        "def get_inputs():\n    return [torch.ones(4)]\n\ndef get_init_inputs():\n    return []\n"
    )
    host.ask(talk, f"optimize {tmp_path}/slow.py")
    until(lambda: (now := host.answering(talk)) is not None and "capturing" in now.doing)
    with pytest.raises(BadInput, match="still being answered"):
        host.ask(talk, "status")
    host.ask(other, "help")  # another conversation is not held up
    until(lambda: host.answering(other) is None)
    assert host.answering(talk) is not None
    until(lambda: host.answering(talk) is None)
    lines = list(talk.messages())
    assert [isinstance(line, Said) for line in lines].count(True) == 1
    assert isinstance(lines[-1], Answered) and lines[-1].part.kind == "error"
    host.ask(talk, "help")
    until(lambda: host.answering(talk) is None)
    assert "I optimize a module" in words(talk)[-1]


def test_many_tabs_that_ask_at_once_begin_one_answer(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    prepare_home(settings)
    host, talk = ChatHost(settings), new_conversation(settings.root)
    taken: list[str] = []
    ready = threading.Barrier(8)

    def ask(number: int) -> None:
        ready.wait()
        try:
            taken.append(host.ask(talk, f"use run {number}").text)
        except BadInput:
            return

    tabs = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()
    until(lambda: host.answering(talk) is None)
    said = [line.text for line in talk.messages() if isinstance(line, Said)]
    assert sorted(said) == sorted(taken) and taken


def test_a_fault_of_ours_is_raised_for_whoever_looks_next_and_only_once(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    prepare_home(settings)
    host, talk = ChatHost(settings), new_conversation(settings.root)
    begun = host.ask(talk, None)  # type: ignore[arg-type]
    until(begun.done.done)
    with pytest.raises(ValidationError):
        host.answering(talk)
    assert host.answering(talk) is None
