"""The page of chat: a conversation, and how far its run is. Answers are made by graph.chat_host, not here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import streamlit as st

from graph.chat_examples import examples
from graph.chat_history import (
    Conversation,
    Pending,
    Said,
    find_conversation,
    list_conversations,
    new_conversation,
)
from graph.chat_source import fenced
from graph.folders import prepare_home
from graph.glance import glance
from memory.errors import BadInput, WarpsmithError
from ui.chat_view import draw_exchange, draw_said
from ui.links import asked
from ui.resources import chat_host, runner, settings, store
from ui.run_view import draw_run, replies
from ui.words import as_sentence, nothing_yet, plain, telling_errors

MAX_FILE_MB = 1
LISTED = 30
_ANSWER_POLL_S, _RUN_POLL_S = 0.5, 1.0
_OPTIMIZE = "optimize this module"


def page() -> None:
    """Draw it."""
    st.title("Chat")
    root = prepare_home(settings())
    talk = _conversation(root)
    _draw_sidebar(root, talk)
    busy = False
    if talk is None:
        _draw_welcome()
    else:
        busy = _draw_conversation(talk)
    sent = st.chat_input(
        "Paste code, drop a .py file, or name one: optimize net.py for an H100, within 1e-5, ten minutes",
        accept_file=True,
        file_type=["py"],
        max_upload_size=MAX_FILE_MB,
        disabled=busy,
    )
    if sent is not None and (sent.text.strip() or sent.files):
        _say(talk, _message(sent.text, sent.files))


def _conversation(root: Path) -> Conversation | None:
    """The one that the URL names; None for a new one, which begins with its first message."""
    wanted = asked("c")
    if wanted is None:
        return None
    try:
        return find_conversation(root, wanted)
    except BadInput as error:
        st.error(as_sentence(str(error).partition(";")[0]), icon=":material/error:")
        return None


def _message(text: str, files: Sequence[object]) -> str:
    """What was typed, and the file's text as a block of code: it is kept as text and captured in a child process."""
    if not files:
        return text
    content = bytes(files[0].getvalue())  # type: ignore[attr-defined]
    if len(content) > MAX_FILE_MB << 20:
        raise BadInput(f"the file has {len(content) >> 20} MB; at most {MAX_FILE_MB} MB can be dropped here")
    try:
        code = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput("the file is no Python source in UTF-8; save it as UTF-8 and drop it again") from error
    return f"{text.strip() or _OPTIMIZE}\n\n{fenced(code, str(getattr(files[0], 'name', '')))}"


def _say(talk: Conversation | None, text: str) -> None:
    """Begin an answer, and draw the page again."""
    if talk is None:
        talk = new_conversation(prepare_home(settings()))
        st.query_params["c"] = talk.id
    try:
        chat_host().ask(talk, text)
    except WarpsmithError as error:
        st.error(as_sentence(str(error)), icon=":material/error:")
        st.code(text, language=None)  # what was typed is not lost
        return
    st.rerun()


def _draw_sidebar(root: Path, talk: Conversation | None) -> None:
    with st.sidebar:
        if st.button("New conversation", icon=":material/add:", width="stretch", disabled=talk is None):
            st.query_params.clear()
            st.rerun()
        heads = [head for head in list_conversations(root, limit=LISTED) if head.first]
        if heads:
            st.caption("Conversations")
        for head in heads:
            current = talk is not None and head.id == talk.id
            label = head.first if len(head.first) <= 34 else f"{head.first[:33]}…"
            at = datetime.fromisoformat(head.changed).astimezone(UTC)
            if st.button(
                plain(label),
                key=f"talk {head.id}",
                type="secondary" if current else "tertiary",
                width="stretch",
                help=f"{at:%Y-%m-%d %H:%M} UTC" + (plain(f", run {head.run}") if head.run else ""),
            ):
                st.query_params["c"] = head.id
                st.rerun()


def _draw_welcome() -> None:
    nothing_yet(
        "Nothing has been said yet.",
        "Paste a PyTorch module below, drop its file, or pick an example; say what matters: the GPU, the error that you"
        " allow, the time that you give. It is captured in a process of its own and searched for faster kernels.",
    )
    known = examples()
    if not known:
        return
    picker, button = st.columns([3, 1], vertical_alignment="bottom")
    chosen = picker.selectbox("An example", list(known))
    code = known[chosen].read_text(encoding="utf-8")
    if button.button("Optimize it", icon=":material/bolt:", type="primary", width="stretch"):
        _say(None, f"{_OPTIMIZE}\n\n{fenced(code, known[chosen].name)}")
    with st.expander("Its code", icon=":material/code:"):
        st.code(code, height=300)


def _draw_conversation(talk: Conversation) -> bool:
    """History, then what may still change; True while a message is being answered."""
    answering = chat_host().answering(talk) is not None
    lines = list(talk.messages())
    said = [at for at, line in enumerate(lines) if isinstance(line, Said)]
    start = said[-1] if said else len(lines)
    draw_exchange(lines[:start])
    run = talk.standing().run
    at_work = run is not None and runner().worker(run) is not None
    poll_s = _ANSWER_POLL_S if answering else _RUN_POLL_S if at_work else None
    st.fragment(_draw_rest, run_every=poll_s)(talk, start, answering, at_work)
    return answering


def _draw_rest(talk: Conversation, start: int, answering: bool, at_work: bool) -> None:
    """The last exchange and the run, as they are now; when they come to rest, the whole page is drawn again."""
    with telling_errors():
        now = chat_host().answering(talk)
        lines = list(talk.messages())[start:]
        standing = talk.standing()
        draw_exchange(lines)
        last = lines[-1] if lines else None
        if now is not None:
            if not any(isinstance(line, Said) and line.text == now.text for line in lines):
                draw_said(now.text)
            st.status(
                plain(f"{as_sentence(now.doing or 'answering')[:-1]} · {now.seconds:.0f} s"), state="running"
            )
        elif isinstance(last, Said):
            st.warning(
                "This message has no answer: the app was stopped meanwhile.", icon=":material/link_off:"
            )
            if st.button("Say it again", icon=":material/replay:"):
                _say(talk, last.text)
        suggested = _answers_to(standing.pending)
        working = False
        if standing.run is not None:
            seen = glance(store().run(standing.run), store(), settings(), runner())
            working = seen.worker is not None
            draw_run(seen)
            suggested = suggested or replies(seen)
        if now is None:
            _draw_suggestions(talk, suggested)
        if (answering and now is None) or (at_work and not working):
            st.rerun()


def _answers_to(pending: Pending | None) -> tuple[str, ...]:
    if pending is None:
        return ()
    return ("Yes", "Never mind") if pending.about == "new_run" else ("Never mind",)


def _draw_suggestions(talk: Conversation, suggested: Sequence[str]) -> None:
    with st.container(horizontal=True):
        for text in suggested:
            if st.button(text, key=f"suggested {text}"):
                _say(talk, text)
