"""The page of chat: what it shows in each state, that it survives reloads and kills, and that texts stay texts."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from streamlit.testing.v1 import AppTest

from graph.chat_history import (
    Conversation,
    Pending,
    Said,
    find_conversation,
    list_conversations,
    new_conversation,
)
from graph.chat_parts import Code, Failure, Question, Table, Text
from graph.chat_source import fenced
from graph.runner import Runner
from graph.settings import resolve_settings
from memory.errors import BadInput
from tests.graph.test_runner import until
from tests.problems import module_text
from tests.ui.conftest import ShowPage
from ui.pages.chat import MAX_FILE_MB, _message
from ui.words import plain

EVIL = "![x](http://evil.example/x.png) <img src=http://evil.example> $a$ :material/home: **b** [c](http://evil.example)"


class Dropped:
    """A file as the browser hands it over."""

    def __init__(self, name: str, content: bytes) -> None:
        self.name, self._content = name, content

    def getvalue(self) -> bytes:
        return self._content


def old_conversation(home: Path, *parts: Text | Failure | Question | Table | Code) -> Conversation:
    home.mkdir(parents=True, exist_ok=True)
    talk = new_conversation(home)
    talk.say("optimize net.py")
    for part in parts:
        talk.answer(part)
    return talk


def texts(shown: AppTest) -> str:
    return " ".join(element.value for kind in (shown.text, shown.markdown, shown.caption) for element in kind)


def test_an_empty_home_offers_examples(show: ShowPage) -> None:
    shown = show("chat")
    assert not shown.exception and "Paste a PyTorch module" in shown.info[0].value
    assert "examples/layernorm_gelu" in shown.selectbox[0].options
    assert any(option.startswith("suite/level1/") for option in shown.selectbox[0].options)
    assert "class Model" in shown.code[0].value


def test_a_message_begins_a_conversation_whose_id_is_in_the_url(home: Path, show: ShowPage) -> None:
    shown = show("chat")
    shown.chat_input[0].set_value("help").run()
    [talk_id] = [head.id for head in list_conversations(home)]
    assert shown.query_params["c"] in (talk_id, [talk_id])
    until(lambda: len(list(find_conversation(home, talk_id).messages())) >= 2, 30)
    until(lambda: "I optimize a module" in texts(shown.run()), 30)
    assert not shown.exception and not shown.status
    assert [line.text for line in find_conversation(home, talk_id).messages() if isinstance(line, Said)] == [
        "help"
    ]
    assert "help" in [button.label for button in shown.button]
    shown.button[0].click().run()
    assert "c" not in shown.query_params and "Nothing has been said yet" in shown.info[0].value


def test_every_kind_of_part_is_drawn_as_text(home: Path, show: ShowPage) -> None:
    table = Table(title=EVIL, columns=("a", "b"), rows=((EVIL, "1"), ("x", "2")))
    pairs = Table(title="pairs", rows=(("status", "improved"),))
    talk = old_conversation(
        home,
        Text(text=EVIL),
        Question(text=EVIL),
        Failure(text=EVIL),
        table,
        pairs,
        Code(text="x\n" * 40),
        Code(text="y"),
    )
    talk.say(f"optimize this {EVIL}\n{fenced('import torch')}")
    shown = show("chat", c=talk.id)
    assert not shown.exception and len(shown.table) == 2
    assert EVIL in [text.value for text in shown.text]
    drawn = [*shown.markdown, *shown.error, *shown.info, *shown.caption]
    for element in drawn:
        assert (
            "![x](" not in element.value
            and "<img" not in element.value.replace("\\<", "")
            and "$a$" not in element.value
        )
    assert "import torch" in [code.value for code in shown.code]
    assert "app was stopped meanwhile" in shown.warning[0].value


def test_an_unknown_conversation_is_a_sentence(show: ShowPage) -> None:
    shown = show("chat", c="20260101-000000-abcd")
    assert not shown.exception and "No conversation has an id that begins" in shown.error[0].value
    assert shown.info  # and a new one can be begun


def test_an_open_question_offers_its_answers(home: Path, show: ShowPage) -> None:
    talk = old_conversation(home, Question(text="Shall I start another?"))
    talk.stand(talk.standing().model_copy(update={"pending": Pending(about="new_run", run="r", hint="h")}))
    shown = show("chat", c=talk.id)
    next(button for button in shown.button if button.label == "Never mind").click().run()
    until(lambda: talk.standing().pending is None, 30)
    until(lambda: "dropped the question" in texts(shown.run()), 30)


def test_a_dropped_file_is_text_in_a_fence_and_never_run() -> None:
    code = "raise SystemExit('imported')\n```\n"
    message = _message("", [Dropped("my_net.py", code.encode())])
    assert message.startswith("optimize this module\n\n````python my_net.py\nraise SystemExit")
    assert _message("within 1e-5", [Dropped("a b.py", b"x = 1")]).startswith(
        "within 1e-5\n\n```python\nx = 1"
    )
    with pytest.raises(BadInput, match="UTF-8"):
        _message("", [Dropped("a.py", b"\xff\xfe\x00")])
    with pytest.raises(BadInput, match=f"at most {MAX_FILE_MB} MB"):
        _message("", [Dropped("a.py", b"#" * ((MAX_FILE_MB << 20) + 1))])


def test_plain_text_shows_as_it_is_and_links_nowhere() -> None:
    shown = plain(EVIL)
    for sign in ("![", "](", " <img", ":material/", "**", "http://"):
        assert sign not in shown, sign
    assert shown.count("\\$") == EVIL.count("$")
    assert shown.replace("\\", "").replace("\u2060", "") == EVIL


def begun(page: Page) -> None:
    expect(page.get_by_text("has begun in a process of its own")).to_be_visible(timeout=60_000)


def test_a_run_is_begun_by_a_dropped_file_and_goes_on_over_a_reload_and_a_killed_server(
    tmp_path: Path, serve: Callable[..., str], browser: Browser
) -> None:
    home = tmp_path / "home"
    (tmp_path / "scaled.py").write_text(module_text(2048, 512))
    table = Table(title=EVIL, columns=("a", "b"), rows=((EVIL, "1"),))
    evil = old_conversation(home, Text(text=EVIL), Question(text=EVIL), Failure(text=EVIL), table)
    evil.say(EVIL)
    url = serve(home)
    page = browser.new_page()
    page.set_default_timeout(30_000)
    asked = set[str]()
    page.on("request", lambda request: asked.add(request.url.split("/")[2]))
    page.goto(f"{url}/chat?c={evil.id}")
    expect(page.get_by_role("table")).to_be_visible()
    expect(page.get_by_text("![x](http://evil.example/x.png)").first).to_be_visible()
    assert page.locator("main img, main a[href*='evil']").count() == 0
    assert asked == {url.split("/")[2]}, "somebody's text asks another host for something"
    page.goto(f"{url}/chat")
    page.locator("input[type=file]").set_input_files(str(tmp_path / "scaled.py"))
    box = page.get_by_test_id("stChatInputTextArea")
    box.fill("optimize this, 60 generations, population 2")
    expect(page.get_by_text("scaled.py")).to_be_visible(timeout=30_000)
    box.press("Enter")
    begun(page)
    expect(page.get_by_text("Captured scaled")).to_be_visible()
    expect(page.get_by_text("The floor (speed of light)")).to_be_visible()
    head = list_conversations(home)[0]
    assert head.run is not None and head.run.startswith("scaled-") and f"c={head.id}" in page.url
    page.reload()
    begun(page)
    [server] = [
        pid for pid in children(os.getpid()) if f"--server.port={url.rpartition(':')[2]}" in command(pid)
    ]
    os.kill(server, signal.SIGKILL)
    runner = Runner(resolve_settings(home=home, device="simulator"))
    assert runner.worker(head.run) is not None
    again = serve(home)
    page.goto(f"{again}/chat?c={head.id}")
    begun(page)
    expect(page.get_by_text("running", exact=True)).to_be_visible(timeout=60_000)
    # It moves by itself.
    expect(page.get_by_text("planner: ").first).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text(f"Stopped run {head.run}")).to_be_visible(timeout=60_000)
    assert runner.worker(head.run) is None
    expect(page.get_by_role("button", name="Resume")).to_be_visible(timeout=30_000)
    page.close()


def children(pid: int) -> list[int]:
    """Processes that this one started and that still are its own."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
