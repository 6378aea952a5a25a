"""Kinship in the store: ancestors nearest first, children fastest first, both bounded and counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.records import Status
from memory.store import Store
from tests.memory import made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store.db") as opened:
        opened.put_problem(made.problem())
        opened.put_run(made.run())
        yield opened


def put(store: Store, name: str, *parents: str, generation: int = 0, median_us: float | None = None) -> None:
    program = made.program(source=name)
    store.put_program(program)
    digest = program.content_hash()
    store.put_candidate(made.candidate(name, digest, parents=parents, generation=generation))
    store.put_evaluation(made.evaluation(digest, median_us=median_us))


def test_ancestors_come_nearest_first_each_once_and_only_those_that_are_known(store: Store) -> None:
    put(store, "a")
    put(store, "b", "a")
    put(store, "c", "a", "elsewhere")
    put(store, "d", "b", "c")
    assert store.ancestor_ids("d", limit=9) == ["d", "c", "b", "a"]
    assert store.ancestor_ids("d", limit=2) == ["d", "c"]
    assert store.ancestor_count("d") == 3 and store.ancestor_count("a") == 0


def test_children_come_fastest_first_with_their_number(store: Store) -> None:
    put(store, "a", median_us=50)
    put(store, "slow", "a", median_us=40)
    put(store, "failed", "a")
    put(store, "fast", "a", "slow", median_us=20)
    put(store, "a-1")
    put(store, "grandchild", "fast", median_us=1)
    put(store, "namesake", "a-1", median_us=2)
    found, count = store.children("a", limit=2)
    assert [child.candidate.id for child in found] == ["fast", "slow"] and count == 3
    found, _ = store.children("a", limit=9)
    assert found[-1].status is Status.INCORRECT and found[-1].median_us is None
    assert store.children("grandchild", limit=9) == ([], 0)


def test_an_id_with_signs_of_a_pattern_is_only_itself(store: Store) -> None:
    put(store, 'a"%_*')
    put(store, "b", 'a"%_*', median_us=3)
    found, count = store.children('a"%_*', limit=9)
    assert [child.candidate.id for child in found] == ["b"] and count == 1


def test_relatives_are_judged_under_the_policy_that_is_asked_for(store: Store) -> None:
    put(store, "a", median_us=5)
    assert store.relatives(["a"], policy_hash="another")[0].status is None
    assert store.relatives(["a"], policy_hash=made.POLICY)[0].median_us == 5
    assert store.relatives(["nobody"]) == []


def test_the_newest_candidate_is_the_last_one_put(store: Store) -> None:
    assert store.newest_candidate("run-1") is None
    put(store, "a")
    put(store, "b")
    assert store.newest_candidate("run-1") == "b"
