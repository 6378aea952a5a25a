"""A run's past for its models: what is in it, and that a generation's branches share one reading of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.novelty import fingerprint
from agents.schemas import Recalled
from graph.past import Past
from memory.archive import Archive
from memory.embedding import HashEmbedder
from memory.records import Program
from memory.store import Store
from tests.memory import made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with one run on one problem."""
    with Store(tmp_path / "store.db") as opened:
        opened.put_problem(made.problem())
        opened.put_run(made.run())
        yield opened


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive.open(tmp_path / "archive", HashEmbedder()) as opened:
        yield opened


def judged(store: Store, name: str, program: Program, generation: int) -> None:
    """A candidate of the run that failed."""
    program_hash = store.put_program(program)
    store.put_candidate(made.candidate(name, program_hash, generation=generation))
    store.put_evaluation(made.evaluation(program_hash))


def test_only_earlier_generations_are_in_it_and_a_program_is_known_by_its_first_candidate(
    store: Store, archive: Archive
) -> None:
    first, again = made.program("int a;"), made.program("int a; // again")
    judged(store, "run-1-000-000", first, 0)
    judged(store, "run-1-001-000", again, 1)
    judged(store, "run-1-002-000", made.program("int b;", block="128"), 2)
    past = Past(store, archive, "run-1")
    assert past.before(0).failures == () and past.before(0).known == {}
    assert [f.candidate_id for f in past.before(2).failures] == ["run-1-000-000", "run-1-001-000"]
    assert past.before(2).known == {fingerprint(first): "run-1-000-000"}
    assert past.before(2).outcomes == ()


def test_the_branches_of_a_generation_share_one_reading(store: Store, archive: Archive) -> None:
    judged(store, "run-1-000-000", made.program("int a;"), 0)
    past = Past(store, archive, "run-1")
    read = past.before(1)
    judged(store, "run-1-001-000", made.program("int b;"), 1)
    assert past.before(1) is read
    assert len(past.before(2).failures) == 2


def test_what_the_archive_no_longer_has_is_left_out(store: Store, archive: Archive) -> None:
    recalled = [Recalled(id="gone", similarity=0.9)]
    assert Past(store, archive, "run-1").neighbours(recalled) == ()
