"""A model's Markdown rendered without anything that could reach out: no links, images, HTML, icons or formulas."""

from __future__ import annotations

import re
from collections.abc import Iterator

import streamlit as st

_FENCE = re.compile(r"^\s{0,3}(`{3,}|~{3,})\s*([A-Za-z0-9_+#.-]*)")
_HEADING = re.compile(r"^(#{1,6}\s+)(.*)$")
_ITEM = re.compile(r"^(\s*(?:[-*+]|\d{1,3}[.)])\s+)(.*)$")
_LANGUAGES = frozenset("cpp c cuda json python diff text bash".split())
_SHOWN = 200_000
"""Characters that are rendered; the raw text has all."""


def draw_rendered(text: str) -> None:
    """Draw headings, lists and paragraphs of the text as such, and its blocks of code as code."""
    for language, block in blocks(text[:_SHOWN]):
        if language is not None:
            st.code(block, language=language)
        elif block.strip():
            st.markdown("\n".join(_line(line) for line in block.splitlines()))
    if len(text) > _SHOWN:
        st.caption(f"The first {_SHOWN:,} characters of {len(text):,}; the raw text has all.")


def blocks(text: str) -> Iterator[tuple[str | None, str]]:
    """The text in pieces: (language, content) of a block of code, (None, content) of anything else."""
    lines: list[str] = []
    fence, language = "", ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if not fence and found:
            yield None, "\n".join(lines)
            lines, fence = [], found[1]
            word = found[2].lower()
            language = "cpp" if word in ("cu", "cuda", "c++") else word if word in _LANGUAGES else "text"
        elif fence and found and found[1][0] == fence[0] and len(found[1]) >= len(fence) and not found[2]:
            yield language, "\n".join(lines)
            lines, fence = [], ""
        else:
            lines.append(line)
    yield (language if fence else None), "\n".join(lines)


def _line(line: str) -> str:
    """Only the signs of a heading or a list keep their meaning."""
    for pattern in (_HEADING, _ITEM):
        found = pattern.match(line)
        if found:
            sign = found[1]
            # Smaller than the page's own headings.
            sign = "#### " if pattern is _HEADING else sign
            return f"{sign}{_escaped(found[2])}"
    return f"{_escaped(line)}  "


def _escaped(text: str) -> str:
    escaped = re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text.strip())
    # As in `ui.words.plain`.
    return escaped.replace("\\:", "\\:\u2060").replace("www\\.", "www\u2060\\.").replace("\\@", "\u2060\\@")
