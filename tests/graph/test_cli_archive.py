"""`warpsmith archive` as people and programs use it: moving an archive, and computing its vectors anew."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from graph.cli import app
from memory.archive import Archive
from memory.archive_entry import ArchiveFilter
from memory.embedding import HashEmbedder
from tests.memory import made


def warpsmith(*words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    found = CliRunner().invoke(app, ["archive", *words])
    return found.exit_code, found.stdout, found.stderr


def filled(home: Path) -> Path:
    """A home whose archive holds two innovations."""
    with Archive.open(home / "archive", HashEmbedder()) as archive:
        archive.add_all(
            made.innovation(made.problem(op)) for op in ("aten.relu.default", "aten.gelu.default")
        )
    return home


def test_an_archive_moves_in_one_file_and_a_bad_record_is_named_by_its_line(tmp_path: Path) -> None:
    home, file, other = filled(tmp_path / "one"), tmp_path / "all.jsonl", tmp_path / "two"
    code, out, _ = warpsmith("export", str(file), "--home", str(home), "--json")
    assert (code, json.loads(out)["written"]) == (0, 2)
    first, second = file.read_text().splitlines()
    boast = json.loads(first)
    boast["innovation"]["speedup"] = -3.0
    file.write_text("\n".join([first, '{"schema_version": 2}', json.dumps(boast), "no JSON", second]) + "\n")
    code, out, said = warpsmith("import", str(file), "--home", str(other), "--json")
    report = json.loads(out)
    assert (code, report["counts"]["added"]) == (1, 2)
    assert [refused["line"] for refused in report["refused"]] == [2, 3, 4]
    assert "line 3: an innovation is refused: speedup is -3.0" in said
    code, out, _ = warpsmith("import", str(file), "--home", str(other), "--json")
    assert json.loads(out)["counts"] == {"added": 0, "replaced": 0, "kept": 2}


def test_what_was_imported_says_so_and_gives_way_to_what_was_verified_here(tmp_path: Path) -> None:
    home, file, other = filled(tmp_path / "one"), tmp_path / "all.jsonl", tmp_path / "two"
    warpsmith("export", str(file), "--home", str(home))
    assert warpsmith("import", str(file), "--home", str(other))[0] == 0
    assert "imported" in warpsmith("search", "relu", "--home", str(other))[1]
    slower = made.innovation(made.problem(), best_us=90.0)
    with Archive.open(other / "archive", HashEmbedder()) as archive:
        assert len(archive.search("relu", where=ArchiveFilter(origin="import"))) == 2
        assert archive.add(slower).replaced == 1
        assert [hit.innovation for hit in archive.search("relu", where=ArchiveFilter(origin="run"))] == [
            slower
        ]


def test_another_embedders_archive_is_refused_by_name_of_the_command_that_mends_it(tmp_path: Path) -> None:
    with Archive.open(tmp_path / "archive", HashEmbedder(256)) as archive:
        archive.add(made.innovation(made.problem()))
    found = CliRunner().invoke(app, ["archive", "search", "relu", "--home", str(tmp_path)])
    assert "warpsmith archive reembed" in str(found.exception)
    assert json.loads(warpsmith("reembed", "--home", str(tmp_path), "--json")[1])["embedded"] == 1
    assert warpsmith("search", "relu", "--home", str(tmp_path))[0] == 0


def test_a_file_that_is_not_there_is_the_users_fault(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["archive", "import", str(tmp_path / "none"), "--home", str(tmp_path)])
    assert "cannot read" in str(found.exception)
