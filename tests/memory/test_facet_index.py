"""The index beside a folder's collection: as right as comparing everything, quick, and mended after a kill."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.archive.synthetic import Remembering, innovations
from memory.archive import Archive
from memory.archive_entry import ArchiveFilter
from memory.chroma_requests import EQUAL, LISTED
from memory.embedding import HashEmbedder
from memory.facet_index import EXACT, FacetIndex
from memory.records import DType
from tests.memory import made

ROOT = Path(__file__).parents[2]
ENTRIES = EXACT + 1500
"""More than are compared by their whole vectors at once."""


@pytest.fixture
def index(tmp_path: Path) -> Iterator[FacetIndex]:
    """An index of random directions, one in three of them `sm_80`."""
    opened = FacetIndex(tmp_path / "index-test.db", EQUAL, LISTED)
    opened.put(*random_rows(ENTRIES))
    yield opened
    opened.close()


def random_rows(count: int) -> tuple[list[str], list[dict[str, str | int | float | list[str]]], np.ndarray]:
    """Ids, facets and vectors."""
    vectors = np.random.default_rng(1).standard_normal((count, 1024)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    arches = ["sm_80" if number % 3 == 0 else "sm_90a" for number in range(count)]
    return [str(n) for n in range(count)], [{"arch": a, "operations": ["mm"]} for a in arches], vectors


def test_an_entry_is_found_by_its_own_vector_and_only_where_it_matches(index: FacetIndex) -> None:
    vectors = random_rows(ENTRIES)[2]
    for number in (0, 1, 2999, ENTRIES - 1):
        (best, similarity), *_ = index.nearest(vectors[number], 3, {}, {"operations": ["mm"]})
        assert best == str(number)
        assert similarity == pytest.approx(1.0, abs=1e-3)
    assert all(int(i) % 3 == 0 for i, _ in index.nearest(vectors[1], 8, {"arch": "sm_80"}, {}))
    assert index.nearest(vectors[1], 8, {"arch": "sm_70"}, {}) == []
    assert index.nearest(vectors[1], 8, {}, {"operations": ["softmax"]}) == []


def test_two_steps_find_what_comparing_everything_finds_where_texts_are_alike(tmp_path: Path) -> None:
    with Archive.open(tmp_path, Remembering()) as archive:
        archive.add_all(innovations(ENTRIES))
        (path,) = tmp_path.glob("index-*.db")
        other = FacetIndex(path, EQUAL, LISTED)
        times = []
        for query in (
            "softmax gelu warp shuffles fp32",
            "mm tensor cores half",
            "cumsum over the last dimension",
        ):
            vector = HashEmbedder().embed([query])[0]
            exact = {i for i, _ in other.nearest(vector, 8, {}, {}, exact=True)}
            assert len(exact & {i for i, _ in other.nearest(vector, 8, {}, {})}) >= 7
            for _ in range(5):
                began = time.perf_counter()
                hits = archive.search(query, where=ArchiveFilter(arch="sm_90a", dtype=DType.F32))
                times.append(time.perf_counter() - began)
                assert len(hits) == 8
                assert all((h.innovation.arch, h.innovation.dtype) == ("sm_90a", DType.F32) for h in hits)
        other.close()
        assert statistics.median(times) < 0.25  # about 0.01 where nothing else runs
        began = time.perf_counter()
        page, total = archive.browse(ArchiveFilter(arch="sm_80"), limit=50, offset=100)
        assert time.perf_counter() - began < 1.0
        assert len(page) == 50
        assert total is not None and total > 150
        assert page == sorted(page, key=lambda hit: hit.innovation.provenance.created, reverse=True)


def test_an_index_that_was_deleted_is_made_anew(tmp_path: Path) -> None:
    with Archive.open(tmp_path, HashEmbedder()) as archive:
        archive.add(made.innovation(made.problem()))
    for file in tmp_path.glob("index-*"):
        file.unlink()
    with Archive.open(tmp_path, HashEmbedder()) as archive:
        assert len(archive.search("relu")) == 1


def test_a_write_killed_between_collection_and_index_is_found_after_opening(tmp_path: Path) -> None:
    with Archive.open(tmp_path, HashEmbedder()) as archive:
        archive.add(made.innovation(made.problem()))
        (entry_id,) = archive.all_ids()
    (path,) = tmp_path.glob("index-*.db")
    index = FacetIndex(
        path, EQUAL, LISTED
    )  # as the kill leaves it: begun, in the collection, not in the index
    index.remove([entry_id])
    index.begin([entry_id, "never written"])
    index.close()
    with Archive.open(tmp_path, HashEmbedder()) as archive:
        assert [hit.id for hit in archive.search("relu")] == [entry_id]


REEMBEDDER = """
import sys
from memory.archive import Archive
from memory.embedding import HashEmbedder
print("begun", flush=True)
Archive.open(sys.argv[1], HashEmbedder(512), reembed=True).close()
"""


@pytest.mark.parametrize("after_s", [0.3, 0.9, 1.6])
def test_a_reembedding_that_is_killed_leaves_every_entry_to_be_found(tmp_path: Path, after_s: float) -> None:
    with Archive.open(tmp_path, Remembering()) as archive:
        archive.add_all(innovations(600))
    command = [sys.executable, "-c", REEMBEDDER, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(after_s)
        os.kill(process.pid, signal.SIGKILL)
    with Archive.open(tmp_path, HashEmbedder(512), reembed=True) as archive:
        assert len(archive.all_ids()) == len(archive.search("mm", limit=1000)) == 600
