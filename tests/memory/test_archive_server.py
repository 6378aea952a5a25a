"""The archive on a Chroma server; see tests/memory/chroma_server.py on the sockets that its client leaves."""

from __future__ import annotations

import gc
import http.server
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.archive import Archive
from memory.archive_entry import AddCounts, ArchiveFilter
from memory.embedding import HashEmbedder
from memory.errors import ArchiveError
from tests.memory import made
from tests.memory.chroma_server import chroma_server, free_port

pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(autouse=True)
def leave_no_sockets_behind() -> Iterator[None]:
    """Collect Chroma's sockets while their warning is let pass."""
    yield
    gc.collect()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The URL and the process of a Chroma server on this machine."""
    with chroma_server(tmp_path) as served:
        yield served


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
        with pytest.raises(ArchiveError, match="archive reembed"):
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


def test_a_server_of_another_kind_is_reported_with_the_remedy() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with pytest.raises(ArchiveError, match="or name a"):
        Archive.open(f"http://127.0.0.1:{server.server_port}", HashEmbedder())
    server.shutdown()
    server.server_close()
