"""The Streamlit entry: `warpsmith app`, or `streamlit run app.py`. Pages are in `ui/`; no logic is here."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from ui.gate import require_entrance
from ui.navigation import navigate

# A file, since a :material/…: icon of the browser's tab is fetched from another host.
ICON = Path(__file__).parent / "ui" / "icon.svg"

st.set_page_config(page_title="Warpsmith", page_icon=str(ICON), layout="wide")
current = navigate()
require_entrance()
current.run()
