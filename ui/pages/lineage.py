"""The page of lineage."""

from __future__ import annotations

import streamlit as st


def page() -> None:
    """Draw it."""
    st.title("Lineage")
