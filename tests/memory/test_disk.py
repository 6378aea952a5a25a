"""How a full disk is told from a broken one, and what is said of it."""

from __future__ import annotations

import errno
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from memory.disk import disk_full, no_room, sqlite_full, telling_full
from memory.errors import DiskFull


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """A limit on the size of files, as `ulimit -f` sets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_room_is_found_by_trying_it_beside_the_file_and_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    assert no_room(path) is None
    path.write_bytes(bytes(5 << 20))
    with no_file_above(6 << 20):
        assert no_room(path) is None
        assert no_room(path, (1 << 20) + 1) == errno.EFBIG
        (tmp_path / "store.db-wal").write_bytes(bytes(5 << 20 | 1))
        assert no_room(path) == errno.EFBIG
        assert no_room(tmp_path) is None
    assert no_room(tmp_path / "absent" / "store.db") is None
    assert {p.name for p in tmp_path.iterdir()} == {"store.db", "store.db-wal"}


def test_only_a_file_that_cannot_grow_is_a_full_disk(tmp_path: Path) -> None:
    for other in (errno.EIO, errno.EACCES, errno.EROFS):
        with pytest.raises(OSError) as kept, telling_full(tmp_path / "x"):
            raise OSError(other, "other")
        assert kept.value.errno == other
    for full in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        with (
            pytest.raises(DiskFull, match=r"MiB free.*/x' could not be written"),
            telling_full(tmp_path / "x"),
        ):
            raise OSError(full, "full")


def test_what_is_said_names_the_disk_and_what_is_free(tmp_path: Path) -> None:
    said = str(disk_full(tmp_path / "not" / "there"))
    assert said.startswith("the disk at '/") and said.endswith("; make room there")
    limited = str(disk_full(tmp_path, errno.EFBIG))
    assert "`ulimit -f`" in limited and limited.endswith("; raise it")
    assert "quota" in str(disk_full(tmp_path, errno.EDQUOT))


def test_a_database_that_may_not_grow_is_told_from_one_that_is_used_wrongly(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")
        with no_file_above(4096), pytest.raises(sqlite3.OperationalError) as limited:
            connection.execute("INSERT INTO t VALUES (?)", ("x" * 100_000,))
            connection.commit()
        with no_file_above(4096):
            assert sqlite_full(limited.value, path) == errno.EFBIG
        assert sqlite_full(limited.value, path) is None
        connection.rollback()
        connection.execute("PRAGMA max_page_count = 2")
        with pytest.raises(sqlite3.OperationalError) as full:
            connection.execute("INSERT INTO t VALUES (?)", ("x" * 100_000,))
        assert sqlite_full(full.value, path) == errno.ENOSPC
        with pytest.raises(sqlite3.OperationalError) as wrong:
            connection.execute("SELECT y FROM t")
        assert sqlite_full(wrong.value, path) is None
