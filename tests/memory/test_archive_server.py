"""The archive on a Chroma server.

Chroma's client never closes its HTTP session, so its sockets are left to the garbage collector; that one warning is
let pass here, and the collector is run before the tests of other modules could get it.
"""

from __future__ import annotations

import gc
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.archive import Archive
from memory.archive_entry import AddCounts, ArchiveFilter
from memory.embedding import HashEmbedder
from memory.errors import ArchiveError
from tests.memory import made

pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
)

START_S = 60.0


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """True where something listens."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(autouse=True)
def leave_no_sockets_behind() -> Iterator[None]:
    """Collect Chroma's sockets while their warning is let pass."""
    yield
    gc.collect()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The URL and the process of a Chroma server on this machine."""
    port = free_port()
    command = [
        str(Path(sys.executable).with_name("chroma")),
        "run",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    process = subprocess.Popen(
        [*command, "--path", str(tmp_path)],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + START_S
    while not answers(port) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}", process
    process.kill()
    process.wait()


def test_a_server_keeps_what_a_tmp_path_would_and_its_end_is_reported(
    server: tuple[str, subprocess.Popen[bytes]],
) -> None:
    url, process = server
    relu = made.innovation(made.problem())
    with Archive.open(url, HashEmbedder()) as first, Archive.open(url, HashEmbedder()) as second:
        assert first.add(relu) == AddCounts(added=1)
        assert second.add(relu) == AddCounts(kept=1)
        where = ArchiveFilter(operations=("relu",), arch="sm_90a")
        assert [hit.innovation for hit in second.search("relu", where=where)] == [relu]
        with pytest.raises(ArchiveError, match="reembed=True"):
            Archive.open(url, HashEmbedder(256))
        second.reembed(HashEmbedder(256))
        assert [hit.innovation for hit in second.search("relu", where=where)] == [relu]
        process.kill()
        process.wait()
        with pytest.raises(ArchiveError, match="check that the server runs"):
            second.search("relu")


def test_a_server_that_is_not_there_is_reported_with_the_remedy() -> None:
    with pytest.raises(ArchiveError, match=r"is unreachable: .*Start it with `chroma run`"):
        Archive.open(f"http://127.0.0.1:{free_port()}", HashEmbedder())
