"""Messages of a conversation, drawn: both sides' texts are shown as they are, never read as Markdown or HTML."""

from __future__ import annotations

import streamlit as st

from graph.chat_history import Answered, Said
from graph.chat_parts import ChatPart, Code, Failure, ProgressLine, Question, Table
from graph.chat_source import segments
from ui.words import plain

_LONG = 24
"""Lines of code that are shown without a click."""
PERSON, WARPSMITH = ":material/person:", ":material/bolt:"


def draw_exchange(lines: list[Said | Answered]) -> None:
    """Messages in order; the parts of one answer stand together."""
    parts: list[ChatPart] = []
    for line in lines:
        if isinstance(line, Answered):
            parts.append(line.part)
            continue
        _draw_answer(parts)
        parts = []
        draw_said(line.text)
    _draw_answer(parts)


def draw_said(text: str) -> None:
    """What the person said."""
    with st.chat_message("user", avatar=PERSON):
        for is_code, segment in segments(text):
            if is_code:
                _draw_code(segment, "python")
            else:
                st.text(segment)


def _draw_answer(parts: list[ChatPart]) -> None:
    if parts:
        with st.chat_message("assistant", avatar=WARPSMITH):
            for part in parts:
                _draw_part(part)


def _draw_part(part: ChatPart) -> None:
    if isinstance(part, Table):
        _draw_table(part)
    elif isinstance(part, Code):
        _draw_code(part.text, None)
    elif isinstance(part, Failure):
        st.error(plain(part.text), icon=":material/error:")
    elif isinstance(part, Question):
        st.info(plain(part.text), icon=":material/help:")
    elif isinstance(part, ProgressLine):
        st.caption(plain(part.text))
    else:
        st.text(part.text)


def _draw_table(table: Table) -> None:
    st.markdown(f"**{plain(table.title)}**")
    names = table.columns or ("label", "value")
    content = {
        name: [plain(row[i]) if i < len(row) else "" for row in table.rows] for i, name in enumerate(names)
    }
    st.table(content, border="horizontal", hide_index=True, hide_header=not table.columns)


def _draw_code(code: str, language: str | None) -> None:
    count = code.count("\n") + 1
    if count <= _LONG:
        st.code(code, language=language)
        return
    with st.expander(f"{count} lines of code", icon=":material/code:"):
        st.code(code, language=language, height=400)
