"""Conversations on the disk: what survives a reload, a kill and a second writer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.chat_history import (
    Answered,
    Conversation,
    Pending,
    Said,
    Standing,
    find_conversation,
    list_conversations,
    new_conversation,
)
from graph.chat_intents import read_intent
from graph.chat_parts import Table, Text
from memory.errors import BadInput, StoreError
from tests.graph.test_run import ROOT

NOON = datetime(2026, 12, 2, 12, tzinfo=UTC)


def again(conversation: Conversation, home: Path) -> Conversation:
    """The same conversation, as another process would open it."""
    return find_conversation(home, conversation.id)


def test_everything_said_survives_a_reload(tmp_path: Path) -> None:
    talk = new_conversation(tmp_path, lambda: NOON)
    request = read_intent("optimize for an H100 within 1e-5")
    standing = Standing(run="r", pending=Pending(about="module", request=request))
    talk.say("one\n\ntwo — ü\u2028")
    talk.answer(Table(title="t", columns=("a",), rows=(("1",),)))
    talk.stand(standing)
    lines = again(talk, tmp_path).lines()
    assert lines[0] == Said(at=NOON.isoformat(), text="one\n\ntwo — ü\u2028")
    assert isinstance(lines[1], Answered) and lines[1].part == Table(
        title="t", columns=("a",), rows=(("1",),)
    )
    assert again(talk, tmp_path).standing() == standing
    assert talk.id.startswith("20261202-120000-")


def test_a_standing_that_did_not_change_is_not_written_again(tmp_path: Path) -> None:
    talk = new_conversation(tmp_path)
    for _ in range(3):
        talk.stand(Standing(run="r"))
    assert len(talk.lines()) == 1


@given(cut=st.integers(1, 400))
def test_a_line_that_was_cut_off_costs_that_line_only(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    home = tmp_path_factory.mktemp("home")
    talk = new_conversation(home)
    talk.say("first")
    whole = talk_path(home, talk).stat().st_size
    talk.say("second " * 20)
    size = talk_path(home, talk).stat().st_size
    os.truncate(talk_path(home, talk), max(whole, size - cut))
    talk.answer(Text(text="third"))
    said = [line.text for line in talk.lines() if isinstance(line, Said)]
    # A cut after the closing brace loses nothing.
    assert said in (["first"], ["first", "second " * 20])
    assert isinstance(talk.lines()[-1], Answered)


def talk_path(home: Path, talk: Conversation) -> Path:
    return home / "chats" / f"{talk.id}.jsonl"


def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    talk = new_conversation(tmp_path)
    writer = (
        "import sys; from pathlib import Path; from graph.chat_history import find_conversation\n"
        "talk = find_conversation(Path(sys.argv[1]), sys.argv[2])\n"
        "for n in range(10**6): talk.say(f'{n} ' + 'x' * 5000); print(n, flush=True)\n"
    )
    command = [sys.executable, "-c", writer, str(tmp_path), talk.id]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        acknowledged = [int(process.stdout.readline()) for _ in range(20)][-1]
        process.send_signal(signal.SIGKILL)
        process.stdout.read()
    kept = [int(line.text.split()[0]) for line in talk.lines() if isinstance(line, Said)]
    assert kept == list(range(len(kept)))
    assert len(kept) > acknowledged


def test_two_writers_do_not_garble_each_other(tmp_path: Path) -> None:
    one = new_conversation(tmp_path)
    two = again(one, tmp_path)
    for n in range(20):
        (one if n % 2 else two).say(str(n))
    assert [line.text for line in one.messages() if isinstance(line, Said)] == [str(n) for n in range(20)]


def test_conversations_are_listed_with_their_beginnings_last_changed_first(tmp_path: Path) -> None:
    assert list_conversations(tmp_path) == []
    old, new = new_conversation(tmp_path), new_conversation(tmp_path)
    old.say("optimize   a.py")
    old.stand(Standing(run="a-run"))
    os.utime(talk_path(tmp_path, new), (1, 1))
    heads = list_conversations(tmp_path)
    assert [head.id for head in heads] == [old.id, new.id]
    assert (heads[0].first, heads[0].run, heads[1].first) == ("optimize a.py", "a-run", "")


@pytest.mark.parametrize("name", ["../x", "nobody", "", "a/b", "..", "2026*"])
def test_an_id_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    new_conversation(tmp_path)
    with pytest.raises(BadInput, match=r"--list"):
        find_conversation(tmp_path, name)


def test_a_beginning_that_fits_several_is_refused(tmp_path: Path) -> None:
    for _ in range(2):
        new_conversation(tmp_path, lambda: NOON)
    with pytest.raises(BadInput, match="several"):
        find_conversation(tmp_path, "2026")


def test_pasted_code_is_kept_once_and_never_overwritten(tmp_path: Path) -> None:
    talk = new_conversation(tmp_path)
    first = talk.keep_code("x = 1\n", "My Block/../..")
    assert first.parent == tmp_path / "chats" / talk.id
    assert talk.keep_code("x = 1\n", "My Block/../..") == first
    second = talk.keep_code("x = 2\n", "My Block/../..")
    assert (first.read_text(), second.read_text()) == ("x = 1\n", "x = 2\n")
    assert sorted(path.name for path in first.parent.iterdir()) == ["my_block.py", "my_block_2.py"]


def test_a_place_that_cannot_hold_conversations_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "chats").write_text("taken")
    with pytest.raises(StoreError, match="no conversation can be kept"):
        new_conversation(tmp_path)
