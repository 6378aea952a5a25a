"""How fast and large an archive of many entries is: `python -m benchmarks.archive.scale FOLDER --entries 100000`.

Fills the folder with made-up innovations where it lacks them (about 5 ms each), then measures in a process of its own:
opening, the first search, filtered searches for the best 8 with the embedding of their words, memory, and how many of
the exactly best 8 a search finds. Prints JSON, and writes it with --out.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from benchmarks.archive.synthetic import OPERATIONS, TECHNIQUES, Remembering, innovations
from graph.bench import machine_line
from memory.archive import Archive
from memory.archive_entry import ArchiveFilter
from memory.chroma_requests import EQUAL, LISTED
from memory.embedding import HashEmbedder
from memory.facet_index import FacetIndex
from memory.records import DType, Innovation

FILTERS: dict[str, ArchiveFilter | None] = {
    "none": None,
    "arch (half match)": ArchiveFilter(arch="sm_90a"),
    "measured (half match)": ArchiveFilter(time_source="measured"),
    "operation": ArchiveFilter(operations=("softmax",)),
    "arch and dtype": ArchiveFilter(arch="sm_90a", dtype=DType.F32),
    "operation, arch and dtype": ArchiveFilter(operations=("gelu",), arch="sm_80", dtype=DType.F16),
    "operation, arch, dtype, soak, measured": ArchiveFilter(
        operations=("convolution",),
        arch="sm_90a",
        dtype=DType.F32,
        verification="soak",
        time_source="measured",
    ),
}
QUERIES = 60
LIMIT = 8


def fill(folder: Path, entries: int) -> float:
    """Add what is missing; returns the seconds that took."""
    began = time.perf_counter()
    with Archive.open(folder, Remembering()) as archive:
        have = archive.browse(limit=0)[1] or 0
        rows = innovations(entries)
        for _ in range(have):
            next(rows, None)
        for number, row in enumerate(_pages(rows, 500), start=have // 500 + 1):
            archive.add_all(row)
            if number % 20 == 0:
                sys.stderr.write(f"{number * 500} entries, {time.perf_counter() - began:.0f} s\n")
    return time.perf_counter() - began


def _pages(rows: Iterator[Innovation], size: int) -> Iterator[list[Innovation]]:
    page: list[Innovation] = []
    for row in rows:
        page.append(row)
        if len(page) == size:
            yield page
            page = []
    if page:
        yield page


def measure(folder: Path) -> dict[str, object]:
    """In this process, which has done nothing else."""
    before = _resident_mib()
    began = time.perf_counter()
    archive = Archive.open(folder, HashEmbedder())
    opened_s = time.perf_counter() - began
    began = time.perf_counter()
    archive.search("softmax", limit=LIMIT)
    first_s = time.perf_counter() - began
    random = Random(1)
    found: dict[str, dict[str, object]] = {}
    for name, where in FILTERS.items():
        times, short = [], 0
        for _ in range(QUERIES):
            query = _query(random)
            began = time.perf_counter()
            hits = archive.search(query, limit=LIMIT, where=where)
            times.append((time.perf_counter() - began) * 1e3)
            short += len(hits) < LIMIT
        times.sort()
        matching = archive.browse(where, limit=0)[1]
        found[name] = {
            "matching": matching,
            "fewer_than_8": short,
            "median_ms": round(statistics.median(times), 2),
            "p95_ms": round(times[int(len(times) * 0.95)], 2),
            "most_ms": round(times[-1], 2),
        }
    began = time.perf_counter()
    archive.browse(ArchiveFilter(arch="sm_90a"), limit=50, offset=500)
    browse_ms = (time.perf_counter() - began) * 1e3
    began = time.perf_counter()
    stats = archive.stats()
    stats_s = time.perf_counter() - began
    resident, most = _resident_mib(), _resident_mib("VmHWM")
    archive.replace(next(innovations(1)))
    began = time.perf_counter()
    archive.replace(next(innovations(1)))
    write_ms = (time.perf_counter() - began) * 1e3
    after, most_after = _resident_mib(), _resident_mib("VmHWM")
    for (
        name,
        where,
    ) in FILTERS.items():  # last, for comparing everything exactly takes memory that no search does
        found[name]["recall_at_8"] = _recall(folder, archive, where, random)
    return {
        "entries": stats.total,
        "opened_s": round(opened_s, 3),
        "first_search_s": round(first_s, 3),
        "filters": found,
        "browse_50_ms": round(browse_ms, 1),
        "stats_s": round(stats_s, 2),
        "resident_mib": resident,
        "most_resident_mib": most,
        "imports_mib": before,
        "one_write_ms": round(write_ms, 1),
        "resident_after_a_write_mib": after,
        "most_resident_after_a_write_mib": most_after,
    }


def _recall(folder: Path, archive: Archive, where: ArchiveFilter | None, random: Random) -> float:
    wanted = where or ArchiveFilter()
    (path,) = folder.glob("index-*.db")
    index = FacetIndex(path, EQUAL, LISTED)
    hit = possible = 0
    for _ in range(10):
        query = _query(random)
        vector = HashEmbedder().embed([query])[0]
        exact = index.nearest(
            vector, LIMIT, wanted.equalities(), {"operations": wanted.members()}, exact=True
        )
        possible += len(exact)
        hit += len({i for i, _ in exact} & {h.id for h in archive.search(query, limit=LIMIT, where=where)})
    index.close()
    return hit / possible


def _query(random: Random) -> str:
    operations = " ".join(random.sample(OPERATIONS, 2))
    return f"{operations} {random.choice(TECHNIQUES)} {random.choice(('fp32', 'half', 'bf16'))} over the last dimension"


def _resident_mib(field: str = "VmRSS") -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(field)) // 1024


def _measured(folder: Path, queue: multiprocessing.Queue[dict[str, object]]) -> None:
    queue.put(measure(folder))


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description="Measure a large archive.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    filled_s = fill(given.folder, given.entries)
    context = multiprocessing.get_context("spawn")
    queue: multiprocessing.Queue[dict[str, object]] = context.Queue()
    process = context.Process(target=_measured, args=(given.folder, queue))
    process.start()
    while queue.empty():
        if process.exitcode is not None:
            sys.exit("measuring failed")
        time.sleep(0.2)
    found = queue.get()
    process.join()
    result = {
        "what": "innovation archive of made-up entries: searches for the best 8, query embedding included",
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine_line(),
        "load_average": round(os.getloadavg()[0], 1),
        "filled_s": round(filled_s),
        **found,
        "disk_mib": sum(f.stat().st_size for f in given.folder.rglob("*") if f.is_file()) >> 20,
    }
    text = json.dumps(result, indent=2) + "\n"
    sys.stdout.write(text)
    if given.out:
        given.out.write_text(text)


if __name__ == "__main__":
    main()
