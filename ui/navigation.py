"""The app's pages, in the order in which the sidebar shows them."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from streamlit.navigation.page import Page

from ui.links import REGISTERED, go
from ui.pages import archive, chat, export, lineage, review, runs, traces
from ui.words import told

PAGES: dict[str, tuple[Callable[[], None], str]] = {
    "chat": (chat.page, "forum"),
    "runs": (runs.page, "monitoring"),
    "lineage": (lineage.page, "account_tree"),
    "traces": (traces.page, "list_alt"),
    "review": (review.page, "fact_check"),
    "archive": (archive.page, "inventory_2"),
    "export": (export.page, "download"),
}
"""Name in the URL -> what draws it, and its icon."""


def navigate(first: str = "chat") -> Page:
    """Draw the sidebar; the page that the viewer is on. `first` is shown where the URL names none."""
    for name, (draw, icon) in PAGES.items():
        REGISTERED[name] = st.Page(
            told(draw), title=name.capitalize(), icon=f":material/{icon}:", url_path=name
        )

    def start() -> None:
        go(first, **st.query_params.to_dict())

    # Streamlit knows its default page by "/" alone and calls its name in a URL unknown; so no real page is the default.
    unnamed = st.Page(start, title="Warpsmith", default=True, visibility="hidden")
    return st.navigation([unnamed, *REGISTERED.values()])
