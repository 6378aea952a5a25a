"""Tests of the app: each page by Streamlit's AppTest, and the whole in a real Chromium."""
