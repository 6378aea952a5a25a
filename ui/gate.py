"""Who may see the app: this machine alone, or whoever knows the shared password.

Invariant: bound to anything but the loopback, the app shows nothing without a password.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import time

import streamlit as st

PASSWORD_VARIABLE = "WARPSMITH_APP_PASSWORD"
_WRONG_S = 1.0
"""Seconds that a wrong password costs."""


def require_entrance() -> None:
    """Stop the page, with a sentence or a question, unless the viewer may see it."""
    password = os.environ.get(PASSWORD_VARIABLE, "")
    if not password:
        address = str(st.get_option("server.address") or "0.0.0.0")
        if not is_loopback(address):
            st.error(
                f"The app listens on {address}, where others can reach it, and has no password. Set "
                f"{PASSWORD_VARIABLE} and start it again, or leave it at 127.0.0.1."
            )
            st.stop()
        return
    if st.session_state.get("entered"):
        return
    st.title("Warpsmith")
    with st.form("entrance"):
        given = st.text_input("Password", type="password")
        asked = st.form_submit_button("Enter")
    if asked and hmac.compare_digest(given.encode(), password.encode()):
        st.session_state["entered"] = True
        st.rerun()
    if asked:
        time.sleep(_WRONG_S)
        st.error(f"That is not the password; whoever started the app set it in {PASSWORD_VARIABLE}.")
    st.stop()


def is_loopback(address: str) -> bool:
    """True where only this machine can connect to an address."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
