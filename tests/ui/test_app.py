"""The app as a whole: who gets in, where it listens, and that its pages come up in a real browser."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from streamlit.testing.v1 import AppTest

from graph.cli_app import arguments
from tests.ui.conftest import ROOT, ShowPage
from ui.gate import is_loopback
from ui.navigation import PAGES


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_an_empty_home_says_what_to_do(page: str, show: ShowPage) -> None:
    shown = show(page)
    assert not shown.exception
    assert [title.value for title in shown.title] == [page.capitalize()]


@pytest.mark.parametrize(
    ("address", "alone"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("10.1.2.3", False),
        ("", False),
        ("example.org", False),
    ],
)
def test_only_the_loopback_needs_no_password(address: str, alone: bool) -> None:
    assert is_loopback(address) is alone


def test_a_password_is_asked_for_and_compared(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    monkeypatch.setenv("WARPSMITH_APP_PASSWORD", "öpen")
    shown = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30).run()
    assert [title.value for title in shown.title] == ["Warpsmith"]
    shown.text_input[0].set_value("wrong")
    shown.button[0].click().run()
    assert "not the password" in shown.error[0].value
    shown.text_input[0].set_value("öpen")
    shown.button[0].click().run()
    assert [title.value for title in shown.title] == ["Chat"]


def test_listening_to_others_without_a_password_shows_nothing(home: Path) -> None:  # noqa: ARG001
    # AppTest has no server and so no address: as if it were all of them.
    shown = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30).run()
    assert "has no password" in shown.error[0].value
    assert not shown.title


def test_streamlit_run_by_hand_is_as_closed_as_the_command() -> None:
    said = dict(word.removeprefix("--").split("=") for word in arguments("127.0.0.1", 8501)[1:])
    by_hand = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
    flat = {
        f"{section}.{name}": value for section, values in by_hand.items() for name, value in values.items()
    }
    shared = flat.keys() & said.keys()
    assert {"server.address", "browser.gatherUsageStats"} <= shared
    assert {name: str(flat[name]).lower() for name in shared} == {name: said[name].lower() for name in shared}


def test_every_page_comes_up_in_a_browser(
    tmp_path: Path, serve: Callable[..., str], browser: Browser
) -> None:
    url = serve(tmp_path / "home")
    page = browser.new_page()
    asked, said = set[str](), list[str]()
    page.on("request", lambda request: asked.add(request.url.split("/")[2]))
    # Not the console: Streamlit looks for its own server below a page's path first, and the browser notes the 404.
    page.on("pageerror", lambda error: said.append(error.message))
    for name in PAGES:
        page.goto(f"{url}/{name}")
        heading = page.get_by_role("heading", name=name.capitalize(), exact=True).first
        # The first page waits until the server has imported torch, langgraph and Chroma.
        expect(heading).to_be_visible(timeout=60_000)
    assert asked == {url.split("/")[2]}, "a page asks another host for something"
    assert not said
