"""One archive for several machines: runs with homes of their own share a Chroma server's entries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graph.settings import resolve_settings
from memory.errors import BadInput
from tests.graph.test_run import warpsmith
from tests.memory.chroma_server import chroma_server
from tests.problems import module_text

SIZE = ["--population", "2", "--generations", "1", "--soak", "0", "--quiet", "--json"]


def test_a_winner_of_one_home_is_found_from_another(tmp_path: Path) -> None:
    (tmp_path / "scaled.py").write_text(module_text(2048, 512))
    with chroma_server(tmp_path) as (url, process):
        shared = ["--archive-url", url]
        done = warpsmith(tmp_path, "optimize", "scaled.py", *SIZE, *shared, home="one")
        assert done.returncode == 0, done.stdout + done.stderr
        found = warpsmith(tmp_path, "archive", "search", "relu", "--json", *shared, home="two")
        assert len(json.loads(found.stdout)) == 1, found.stdout + found.stderr
        counted = warpsmith(tmp_path, "archive", "stats", *shared, home="two")
        assert counted.returncode == 0 and "relu" in counted.stdout, counted.stdout + counted.stderr
        process.kill()
        process.wait()
        # A server that is not there is found out before any work, and leaves no run behind.
        refused = warpsmith(tmp_path, "optimize", "scaled.py", *SIZE, *shared, home="two")
    assert refused.returncode == 1
    assert "is unreachable" in refused.stderr and "chroma run" in refused.stderr
    assert json.loads(warpsmith(tmp_path, "show", "--json", home="two").stdout) == []
    assert not (tmp_path / "one" / "archive").exists()


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "http://", "ftp://here:8000", "shared/archive"])
def test_an_archive_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="is not one such as http"):
        resolve_settings(archive_url=url)
