"""A form for a module that the viewer brings: a file or pasted code, and what its forward is called with."""

from __future__ import annotations

import streamlit as st

from graph.pasted import keep_module
from graph.settings import Settings
from memory.records import Target


def ask_module(label: str, settings: Settings, *, key: str) -> Target | None:
    """Draw it; the module once the button named `label` is pressed, else None. Raises BadInput with the remedy."""
    with st.form(key):
        dropped = st.file_uploader("A Python file", type="py", key=f"{key}-file")
        pasted = st.text_area(
            "or its code",
            placeholder="class Model(nn.Module): … with get_inputs() and get_init_inputs()",
            key=f"{key}-code",
        )
        with st.expander("Where the file has no get_inputs() or get_init_inputs()"):
            inputs = st.text_input("Inputs", placeholder="f32[16,1024],i64[16]", key=f"{key}-inputs")
            init = st.text_input("Constructor arguments", placeholder="[1024]", key=f"{key}-init")
        pressed = st.form_submit_button(label)
    if not pressed:
        return None
    code = dropped.getvalue().decode(errors="replace") if dropped is not None else pasted
    return keep_module(code, settings, inputs=inputs, init=init)
