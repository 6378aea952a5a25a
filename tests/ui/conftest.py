"""The app under test: pages run by AppTest over a home of their own, and a real server seen by a real Chromium."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import streamlit as st
from playwright.sync_api import Browser, sync_playwright
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
UP_S = 60.0

ShowPage = Callable[..., AppTest]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty home that the app's settings name; what the server keeps open is let go with it."""
    folder = tmp_path / "home"
    monkeypatch.setenv("WARPSMITH_HOME", str(folder))
    monkeypatch.setenv("WARPSMITH_DEVICE", "simulator")
    monkeypatch.chdir(tmp_path)
    yield folder
    from ui.resources import close_all

    close_all()
    st.cache_data.clear()


@pytest.fixture
def show(home: Path) -> ShowPage:  # noqa: ARG001 - the home comes first
    """`show("runs", run=…)`: the page as a viewer with this URL sees it first."""

    def shown(page: str, /, **query: str) -> AppTest:
        script = f"from ui.navigation import navigate\nnavigate({page!r}).run()\n"
        test = AppTest.from_string(script, default_timeout=30)
        for name, value in query.items():
            test.query_params[name] = value
        return test.run()

    return shown


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium; without one the test is skipped, or fails where CI says that there must be one."""
    if CHROMIUM is None:
        if os.environ.get("WARPSMITH_NEEDS_BROWSER"):
            pytest.fail("no chromium is installed: apt-get install chromium")
        pytest.skip("no chromium is installed: apt-get install chromium")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield found
        found.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """`serve(home, **environment)` starts the app's server over a home; returns its URL. Ended with the test."""
    servers: list[subprocess.Popen[bytes]] = []

    def started(home: Path, **environment: str) -> str:
        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        log = tmp_path / f"server-{port}.log"
        with log.open("wb") as stream:
            servers.append(
            subprocess.Popen(
                [sys.executable, "-m", "graph.cli", "app", "--port", str(port), "--home", str(home)],
                cwd=tmp_path, stdout=stream, stderr=subprocess.STDOUT,
                env=os.environ | {"PYTHONPATH": str(ROOT), "WARPSMITH_DEVICE": "simulator"} | environment,
            )
        )  # fmt: skip
        deadline = time.monotonic() + UP_S
        while time.monotonic() < deadline and servers[-1].poll() is None:
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return f"http://127.0.0.1:{port}"
            time.sleep(0.1)
        raise AssertionError(log.read_text())

    yield started
    for server in servers:
        server.terminate()
        server.wait(10)
