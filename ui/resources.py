"""What the pages share: settings, the store, the archive. Opened once a server, closed with it.

Invariant: nothing here is per viewer; a page that needs a conversation or a choice keeps it in the URL or the store.
"""

from __future__ import annotations

from contextlib import ExitStack

import streamlit as st

from graph.build import open_archive, open_store
from graph.chat_host import ChatHost
from graph.runner import Runner
from graph.settings import Settings, resolve_settings
from memory.archive import Archive
from memory.store import Store


@st.cache_resource(show_spinner=False)
def settings() -> Settings:
    """The settings that the app was started under. Raises BadInput naming a wrong one."""
    return resolve_settings()


@st.cache_resource(show_spinner=False)
def _opened() -> ExitStack:
    return ExitStack()


@st.cache_resource(show_spinner=False)
def store() -> Store:
    """The run store, created on first use. Raises BadInput, StoreError."""
    return _opened().enter_context(open_store(settings()))


@st.cache_resource(show_spinner="opening the archive")
def archive() -> Archive:
    """The innovation archive. Raises ArchiveError."""
    return _opened().enter_context(open_archive(settings()))


@st.cache_resource(show_spinner=False)
def runner() -> Runner:
    """Starts and stops the work on runs, in processes of their own."""
    return Runner(settings())


@st.cache_resource(show_spinner=False)
def chat_host() -> ChatHost:
    """Answers the chat's messages, whether or not anybody looks on."""
    return ChatHost(settings())


def close_all() -> None:
    """Let go of everything that is open; the next page opens it again."""
    _opened().close()
    for opened in (settings, store, archive, runner, chat_host, _opened):
        opened.clear()
