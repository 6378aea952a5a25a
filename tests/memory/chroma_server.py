"""A Chroma server on this machine, for tests.

Chroma's client never closes its HTTP session, so its sockets are left to the garbage collector: a test of this process
that uses one lets that one warning pass, and collects before the tests of other modules could get it.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_S = 60.0


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def chroma_server(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The URL and the process of a server that keeps its data in `folder`."""
    port = free_port()
    command = [sys.executable, "-c", "from chromadb.cli.cli import app; app()", "run"]
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port), "--path", str(folder)],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + START_S
    while not _answers(port) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
