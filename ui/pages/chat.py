"""The page of chat."""

from __future__ import annotations

import streamlit as st


def page() -> None:
    """Draw it."""
    st.title("Chat")
