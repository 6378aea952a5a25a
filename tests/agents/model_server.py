"""An OpenAI-compatible server on a real socket whose "model" answers from a script.

The script sees each request and says what the server does: answer, refuse, stall, break off, drip. Faults live in the
server, so that what is tested is the client as it ships.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """One request as the server got it."""

    body: Body
    headers: dict[str, str]
    number: int
    """From 0, over all requests."""

    @property
    def model(self) -> str:
        return str(self.body["model"])

    @property
    def text(self) -> str:
        """Every turn of the conversation."""
        return "\n".join(str(turn["content"]) for turn in self.body["messages"])

    @property
    def system(self) -> str:
        return str(self.body["messages"][0]["content"])

    @property
    def opening(self) -> str:
        """The first question, whatever was said since."""
        return str(self.body["messages"][1]["content"])

    @property
    def last(self) -> str:
        """The newest turn."""
        return str(self.body["messages"][-1]["content"])

    @property
    def role(self) -> str:
        """Which agent asks, by how its system prompt begins."""
        starts = {
            "You plan": "planner",
            "You write": "coder",
            "You mend": "compiler",
            "You read": "profiler",
            "You judge": "critic",
            "You turn": "interpreter",
        }
        return next(role for start, role in starts.items() if self.system.startswith(start))


@dataclass(frozen=True)
class Say:
    """A completion."""

    text: str
    tokens_in: int = 1000
    tokens_out: int = 200
    finish: str = "stop"
    usage: bool = True


@dataclass(frozen=True)
class Refuse:
    """An HTTP status with an error body."""

    code: int
    message: str = "scripted"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """Status 200 with a body that may be anything."""

    body: bytes
    kind: str = "application/json"


@dataclass(frozen=True)
class Stall:
    """Nothing is sent for so many seconds."""

    seconds: float


@dataclass(frozen=True)
class BreakOff:
    """Headers promise more than is sent; then the connection is closed."""


@dataclass(frozen=True)
class Drip:
    """A completion sent a byte at a time, with so many seconds between."""

    pause_s: float


Reply = Say | Refuse | Raw | Stall | BreakOff | Drip
Script = Callable[[Asked], Reply]


def completion(say: Say, model: str) -> bytes:
    """The body of an answer."""
    body: Body = {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": say.text}, "finish_reason": say.finish}
        ],
    }
    if say.usage:
        total = say.tokens_in + say.tokens_out
        body["usage"] = {
            "prompt_tokens": say.tokens_in, "completion_tokens": say.tokens_out, "total_tokens": total,
        }  # fmt: skip
    return json.dumps(body).encode()


class ModelServer(ThreadingHTTPServer):
    """The server; `asked` has every request in order."""

    daemon_threads = True

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.asked: list[Asked] = []
        self.lock = threading.Lock()
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what some scripts are about."""


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            asked = Asked(body, {k.lower(): v for k, v in self.headers.items()}, len(self.server.asked))
            self.server.asked.append(asked)
        reply = self.server.script(asked)
        if isinstance(reply, Stall):
            self.server.closing.wait(reply.seconds)
            self.close_connection = True
        elif isinstance(reply, Refuse):
            error = json.dumps({"error": {"message": reply.message, "type": "scripted"}}).encode()
            self._send(reply.code, error, reply.headers)
        elif isinstance(reply, Raw):
            self._send(200, reply.body, {"Content-Type": reply.kind})
        elif isinstance(reply, BreakOff):
            self._send(200, b'{"id": "c", "choices": [', {}, claimed=5000)
            self.close_connection = True
        elif isinstance(reply, Drip):
            self._drip(completion(Say("too late"), asked.model), reply.pause_s)
        else:
            self._send(200, completion(reply, asked.model), {})

    def _send(self, code: int, body: bytes, headers: dict[str, str], *, claimed: int | None = None) -> None:
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(claimed or len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _drip(self, body: bytes, pause_s: float) -> None:
        self._send(200, b"", {}, claimed=len(body))
        for byte in body:
            self.wfile.write(bytes((byte,)))
            self.wfile.flush()
            if self.server.closing.wait(pause_s):
                return


@contextmanager
def serving(script: Script) -> Iterator[ModelServer]:
    """A running server."""
    server = ModelServer(script)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


def in_turn(*replies: Reply) -> Script:
    """One reply after another; the last one for ever."""

    def script(asked: Asked) -> Reply:
        return replies[min(asked.number, len(replies) - 1)]

    return script


def wait_until(happened: Callable[[], bool], timeout_s: float = 30.0) -> None:
    """Fails where it does not happen in time."""
    deadline = time.monotonic() + timeout_s
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)
