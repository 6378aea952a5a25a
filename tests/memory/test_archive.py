"""The archive: what it keeps, what replaces what, and what a search finds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import chromadb
import pytest
from chromadb.config import Settings
from hypothesis import HealthCheck, given, settings

from memory.archive import Archive
from memory.archive_entry import AddCounts, ArchiveFilter, innovation_id
from memory.embedding import HashEmbedder
from memory.errors import ArchiveError
from memory.records import Argument, DType, Innovation, Problem
from tests import strategies
from tests.memory import made

ROOT = Path(__file__).parents[2]
OPERATIONS: dict[str, tuple[str, tuple[int, ...], tuple[Argument, ...], str]] = {
    "softmax": ("aten._softmax.default", (4096, 4096), (-1, False), "online softmax, one block a row"),
    "softmax-columns": ("aten._softmax.default", (4096, 64), (0, False), "transpose through shared memory"),
    "log-softmax": (
        "aten._log_softmax.default",
        (128, 32000),
        (-1, False),
        "two passes with vectorized loads",
    ),
    "layer-norm": (
        "aten.native_layer_norm.default",
        (64, 1024),
        ((1024,), None, None, 1e-5),
        "Welford in a warp",
    ),
    "matmul": ("aten.mm.default", (1024, 1024), ("x",), "tensor cores with double-buffered tiles"),
    "sum": ("aten.sum.dim_IntList", (128, 65536), ((1,), False), "tree reduction with warp shuffles"),
    "mean-all": ("aten.mean.default", (2048, 2048), (), "grid-wide atomics on partial sums"),
    "relu": ("aten.relu.default", (16, 16384), (), "float4 loads and stores"),
    "gelu": ("aten.gelu.default", (16, 16384), (), "fast tanh by exponent"),
    "convolution": ("aten.convolution.default", (16, 64, 56, 56), ("x",), "implicit gemm in channels-last"),
    "max-pool": ("aten.max_pool2d_with_indices.default", (16, 64, 56, 56), ((2, 2),), "one thread a window"),
    "cumsum": ("aten.cumsum.default", (128, 4000), (1,), "decoupled look-back scan"),
}


def winner(name: str) -> Innovation:
    """A winner for one of OPERATIONS."""
    op, shape, rest, idea = OPERATIONS[name]
    problem = made.problem(op, shape, *rest).model_copy(update={"name": name})
    return made.innovation(
        problem, idea=idea, source=f'extern "C" __global__ void {name.replace("-", "_")}(float* x)'
    )


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """An empty archive."""
    with Archive.open(tmp_path / "archive", HashEmbedder()) as opened:
        yield opened


@pytest.fixture
def filled(archive: Archive) -> Archive:
    """One winner for each of OPERATIONS."""
    archive.add_all(winner(name) for name in OPERATIONS)
    return archive


def test_an_empty_archive_finds_nothing(archive: Archive) -> None:
    assert archive.search("softmax") == []
    assert archive.all_ids() == archive.lines() == []
    assert archive.get("none") is None
    assert archive.stats().total == 0


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(innovation=strategies.innovations)
def test_any_innovation_comes_back_as_it_was(archive: Archive, innovation: Innovation) -> None:
    counts = archive.add(innovation)
    kept = archive.get(innovation_id(innovation))
    assert kept is not None
    assert kept.program == innovation.program
    assert kept == innovation or counts.kept == 1


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("softmax over the last dimension, fp32", "softmax"),
        ("row-wise softmax 4096x4096", "softmax"),
        ("softmax down the columns", "softmax-columns"),
        ("log softmax float32", "log-softmax"),
        ("LayerNorm over 1024 features", "layer-norm"),
        ("native_layer_norm", "layer-norm"),
        ("gemm with tensor cores", "matmul"),
        ("matrix multiplication 1024", "matmul"),
        ("sum each row", "sum"),
        ("average of all elements, mean", "mean-all"),
        ("conv2d nhwc implicit gemm", "convolution"),
        ("max pooling", "max-pool"),
        ("prefix sum scan cumsum", "cumsum"),
        ("gelu activation", "gelu"),
        ("float4 elementwise relu", "relu"),
    ],
)
def test_a_search_in_words_finds_the_operation_meant(filled: Archive, query: str, wanted: str) -> None:
    assert [hit.innovation.problem_name for hit in filled.search(query, limit=1)] == [wanted]


def test_hits_come_best_first_with_their_likeness_and_no_more_than_asked(filled: Archive) -> None:
    hits = filled.search("softmax over the last dimension, fp32", limit=5)
    likeness = [hit.similarity for hit in hits]
    assert len(hits) == 5
    assert likeness == sorted(likeness, reverse=True)
    assert 0.3 < likeness[0] <= 1.0
    assert filled.search("softmax", limit=0) == []
    assert len(filled.search("softmax", limit=1000)) == len(OPERATIONS)


def test_the_same_innovation_twice_is_one_entry(archive: Archive) -> None:
    assert archive.add(winner("relu")) == AddCounts(added=1)
    assert archive.add(winner("relu")) == AddCounts(kept=1)
    assert archive.add_all([winner("gelu"), winner("gelu")]) == AddCounts(added=1, kept=1)
    assert len(archive.all_ids()) == 2


def test_of_two_for_the_same_program_problem_and_arch_the_better_verified_stays(archive: Archive) -> None:
    slow = winner("relu")
    fast = slow.model_copy(update={"best_us": 5.0})
    soaked = slow.model_copy(update={"verification": "soak"})
    measured = slow.model_copy(
        update={"provenance": slow.provenance.model_copy(update={"time_source": "measured"}), "best_us": 50.0}
    )
    for better in (fast, soaked, measured):
        assert archive.add(better).kept == 0
        assert archive.add(slow) == AddCounts(kept=1)
        assert archive.get(innovation_id(slow)) == better
    elsewhere = slow.model_copy(update={"arch": "sm_80"})
    assert archive.add(elsewhere) == AddCounts(added=1)


def test_filters_work_alone_together_and_in_any_spelling(filled: Archive) -> None:
    filled.add(winner("softmax").model_copy(update={"arch": "sm_80", "verification": "soak"}))

    def names(where: ArchiveFilter) -> list[str]:
        return sorted(hit.innovation.problem_name for hit in filled.search("kernel", limit=50, where=where))

    assert names(ArchiveFilter(operations=("softmax",))) == ["softmax", "softmax", "softmax-columns"]
    assert names(ArchiveFilter(operations=("gemm",))) == ["matmul"]
    assert names(ArchiveFilter(operations=("softmax", "mm"))) == []
    assert names(ArchiveFilter(arch="sm_80")) == ["softmax"]
    assert names(ArchiveFilter(operations=("_softmax",), arch="sm_90a", verification="trials")) == [
        "softmax",
        "softmax-columns",
    ]
    assert names(ArchiveFilter(dtype=DType.F16)) == names(ArchiveFilter(time_source="measured")) == []
    assert len(names(ArchiveFilter(dtype=DType.F32, time_source="modelled"))) == len(OPERATIONS) + 1


def test_neighbours_of_a_problem_are_those_for_its_arch_first(filled: Archive) -> None:
    problem = made.problem("aten._softmax.default", (2048, 2048), -1, False)
    filled.add(winner("softmax").model_copy(update={"arch": "sm_80"}))
    assert [h.innovation.problem_name for h in filled.neighbours(problem, "sm_90a", 2)] == [
        "softmax",
        "softmax-columns",
    ]
    found = [(h.innovation.arch, h.innovation.problem_name) for h in filled.neighbours(problem, "sm_80", 3)]
    # The same program for another architecture says nothing new, and comes only once nothing else is left.
    assert found[:2] == [("sm_80", "softmax"), ("sm_90a", "softmax-columns")]
    assert len({h.id for h in filled.neighbours(problem, "sm_80", 50)}) == len(OPERATIONS) + 1


def test_stats_count_by_what_entries_are(filled: Archive) -> None:
    stats = filled.stats()
    assert (stats.total, stats.refused) == (12, 0)
    assert stats.by_operation["softmax"] == 2
    assert stats.by_operation["layernorm"] == 1
    assert (stats.by_dtype, stats.by_arch, stats.by_time_source, stats.by_verification) == (
        {"f32": 12},
        {"sm_90a": 12},
        {"modelled": 12},
        {"trials": 12},
    )


def test_lines_move_an_archive_and_wrong_ones_are_refused(filled: Archive, tmp_path: Path) -> None:
    lines = filled.lines()
    with Archive.open(tmp_path / "second", HashEmbedder()) as second:
        assert second.add_lines(lines) == AddCounts(added=12)
        assert second.all_ids() == filled.all_ids()
        old = json.dumps(json.loads(lines[0]) | {"schema_version": 99})
        with pytest.raises(ArchiveError, match="written under schema version 99"):
            second.add_lines([old])
        with pytest.raises(ArchiveError, match="is refused"):
            second.add_lines(['{"schema_version": 1}'])


@pytest.mark.parametrize("field", ["best_us", "speedup"])
def test_an_innovation_made_invalid_behind_validations_back_is_refused(archive: Archive, field: str) -> None:
    with pytest.raises(ArchiveError, match="is refused"):
        archive.add(winner("relu").model_copy(update={field: float("nan")}))
    assert archive.all_ids() == []


def raw(path: Path) -> chromadb.Collection:
    """The collection behind an archive, unguarded."""
    client = chromadb.PersistentClient(path=path, settings=Settings(anonymized_telemetry=False))
    return client.get_collection("innovations", embedding_function=None)


def test_an_entry_of_another_version_is_left_out_counted_and_may_be_replaced(
    filled: Archive, tmp_path: Path
) -> None:
    entry_id = innovation_id(winner("relu"))
    record = json.dumps(json.loads(filled.lines()[0]) | {"schema_version": 0})
    raw(tmp_path / "archive").update(ids=[entry_id], metadatas=[{"record": record, "schema_version": 0}])
    for index in (tmp_path / "archive").glob("index-*"):  # as a program that knows of no index leaves it
        index.unlink()
    assert "relu" not in [hit.innovation.problem_name for hit in filled.search("relu", limit=50)]
    assert (filled.stats().total, filled.stats().refused) == (12, 1)
    with pytest.raises(ArchiveError, match="archive it again"):
        filled.get(entry_id)
    assert filled.add(winner("relu")) == AddCounts(added=1)
    assert filled.get(entry_id) == winner("relu")
    filled.remove(entry_id)
    assert filled.get(entry_id) is None


def test_another_embedder_is_refused_with_the_remedy_and_reembedding_is_it(tmp_path: Path) -> None:
    path = tmp_path / "archive"
    with Archive.open(path, HashEmbedder()) as archive:
        archive.add_all(winner(name) for name in OPERATIONS)
        ids = archive.all_ids()
    with pytest.raises(ArchiveError, match=r"1024.* not .*256.*archive reembed"):
        Archive.open(path, HashEmbedder(256))
    with Archive.open(path, HashEmbedder(256), reembed=True) as archive:
        assert archive.all_ids() == ids
        assert archive.search("softmax over the last dimension", limit=1)[0].innovation == winner("softmax")
        archive.reembed(HashEmbedder(512))
        archive.add(winner("relu").model_copy(update={"arch": "sm_80"}))
        assert len(archive.search("relu", limit=50)) == 13
    with Archive.open(path, HashEmbedder(512)) as archive:
        assert len(archive.all_ids()) == 13


def test_a_reembedding_killed_before_its_last_step_is_finished_on_opening(tmp_path: Path) -> None:
    path = tmp_path / "archive"
    with Archive.open(path, HashEmbedder()) as archive:
        archive.add(winner("relu"))
    raw(path).modify(name="innovations-rebuilt")
    with Archive.open(path, HashEmbedder()) as archive:
        assert len(archive.search("relu")) == 1


def test_an_open_archive_whose_vectors_another_reembedded_says_so(tmp_path: Path) -> None:
    path = tmp_path / "archive"
    with Archive.open(path, HashEmbedder()) as first, Archive.open(path, HashEmbedder()) as second:
        first.add(winner("relu"))
        second.reembed(HashEmbedder(256))
        with pytest.raises(ArchiveError, match="archive reembed"):
            first.search("relu")


def test_an_archive_of_a_newer_schema_is_refused_even_for_reembedding(tmp_path: Path) -> None:
    path = tmp_path / "archive"
    Archive.open(path, HashEmbedder()).close()
    collection = raw(path)
    collection.modify(metadata={**(collection.metadata or {}), "records": 99})
    for reembed in (False, True):
        with pytest.raises(ArchiveError, match="records of version 99"):
            Archive.open(path, HashEmbedder(), reembed=reembed)


def test_threads_may_share_an_archive(archive: Archive) -> None:
    def work(number: int) -> int:
        archive.add(winner("relu").model_copy(update={"arch": f"sm_{number % 20}"}))
        return len(archive.search("relu", limit=50))

    with ThreadPoolExecutor(8) as pool:
        assert min(pool.map(work, range(40))) >= 1
    assert len(archive.all_ids()) == 20


WRITER = """
import sys
from memory.archive import Archive
from memory.embedding import HashEmbedder
from tests.memory.test_archive import winner
with Archive.open(sys.argv[1], HashEmbedder()) as archive:
    for name in sys.argv[2:]:
        base, _, arch = name.partition(":")
        archive.add(winner(base).model_copy(update={"arch": arch or "sm_90a"}))
"""


def writer(path: Path, *names: str) -> subprocess.Popen[bytes]:
    """Another process that adds winners."""
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), *names], cwd=ROOT)


def test_a_long_lived_reader_finds_what_another_process_wrote(archive: Archive, tmp_path: Path) -> None:
    archive.add(winner("relu"))
    assert archive.search("softmax", limit=1)[0].innovation.problem_name == "relu"
    for name in ("softmax", "matmul"):
        assert writer(tmp_path / "archive", name).wait(60) == 0
        assert archive.search(name, limit=1)[0].innovation.problem_name == name


def test_two_archives_of_one_process_find_each_others_writes(tmp_path: Path) -> None:
    path = tmp_path / "archive"
    with Archive.open(path, HashEmbedder()) as first, Archive.open(path, HashEmbedder()) as second:
        first.add(winner("relu"))
        second.add(winner("softmax"))
        for archive in (first, second):
            assert {hit.innovation.problem_name for hit in archive.search("relu")} == {"relu", "softmax"}


def test_two_processes_that_write_at_once_lose_nothing(archive: Archive, tmp_path: Path) -> None:
    path = tmp_path / "archive"
    writers = [writer(path, *(f"relu:sm_{number}" for number in span)) for span in (range(20), range(10, 30))]
    assert [process.wait(60) for process in writers] == [0, 0]
    assert len(archive.all_ids()) == len(archive.search("relu", limit=100)) == 30


def test_a_damaged_archive_is_refused_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "chroma.sqlite3").write_bytes(b"these are my notes" * 1000)
    with pytest.raises(ArchiveError, match=r"cannot be used: .*not a database; restore a copy"):
        Archive.open(tmp_path, HashEmbedder())


def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArchiveError, match="name another archive"):
        Archive.open(tmp_path / "file", HashEmbedder())


def test_a_closed_archive_says_so(tmp_path: Path) -> None:
    archive = Archive.open(tmp_path, HashEmbedder())
    archive.close()
    archive.close()
    with pytest.raises(ArchiveError, match="is closed; open it again"):
        archive.search("relu")


def test_problems_of_one_signature_are_near_whatever_their_code(filled: Archive) -> None:
    problem: Problem = made.problem("aten.gelu.default", (32, 8192))
    assert filled.neighbours(problem, "sm_90a", 1)[0].innovation.problem_name == "gelu"
