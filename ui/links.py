"""Links from one page to another. What a page shows is in its URL, so a reload and a copied link keep it."""

from __future__ import annotations

from typing import NoReturn

import streamlit as st
from streamlit.navigation.page import Page

REGISTERED: dict[str, Page] = {}
"""Pages by name, as `ui.navigation` made them; the same for every viewer."""


def link(page: str, label: str, /, *, icon: str | None = None, **query: str) -> None:
    """Draw a link to a page, such as `link("lineage", "its family", run=run.id, candidate=candidate.id)`."""
    st.page_link(REGISTERED[page], label=label, icon=icon, query_params=query)


def go(page: str, /, **query: str) -> NoReturn:
    """Leave for a page."""
    st.switch_page(REGISTERED[page], query_params=query)


def asked(name: str) -> str | None:
    """A word of the page's URL; None where it is absent or empty."""
    return st.query_params.get(name) or None
