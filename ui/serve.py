"""Starts the server with everything that pages import there already: the first viewer would wait seconds for it."""

from __future__ import annotations

import streamlit.web.cli

import ui.navigation  # noqa: F401 - for what it imports


def main() -> None:
    """`streamlit` with the arguments of this process."""
    streamlit.web.cli.main(prog_name="streamlit")
