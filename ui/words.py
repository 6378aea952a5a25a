"""What every page says alike: errors as sentences, and what to do where there is nothing to see."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st

from memory.errors import WarpsmithError


def nothing_yet(what: str, remedy: str) -> None:
    """An empty state: what is not there, and what to do next; both sentences."""
    st.info(f"{what} {remedy}", icon=":material/explore:")


def as_sentence(text: str) -> str:
    """A message as a sentence, on one line."""
    joined = " ".join(text.split())
    head = joined[:1].upper() + joined[1:]
    return head if head.endswith((".", "!", "?")) else f"{head}."


def plain(text: str) -> str:
    """Anybody's text for a place that reads Markdown: on one line, shown as it is, without links, images or icons."""
    escaped = re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(text.split()))
    # Icons, emoji and addresses are looked for after escapes are undone; an invisible character keeps them apart.
    return escaped.replace("\\:", "\\:\u2060").replace("www\\.", "www\u2060\\.").replace("\\@", "\u2060\\@")


@contextmanager
def telling_errors() -> Iterator[None]:
    """Errors that Warpsmith raises on purpose become a sentence on the page; any other is ours and is shown whole."""
    try:
        yield
    except WarpsmithError as error:
        st.error(as_sentence(str(error)), icon=":material/error:")


def told(draw: Callable[[], None]) -> Callable[[], None]:
    """A page whose errors are sentences."""

    def page() -> None:
        with telling_errors():
            draw()

    return page
