"""Seeds: innovations that a run is told to begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from agents.rules.planner import RulesPlanner
from agents.schemas import Move, Neighbour
from graph.seeds import find_innovation, recalled
from graph.session import record_run
from graph.settings import Settings, resolve_settings
from memory.archive import Archive
from memory.archive_entry import innovation_id
from memory.embedding import HashEmbedder
from memory.errors import BadInput
from memory.records import Innovation
from memory.store import Store
from tests.agents.test_rules import briefing
from tests.memory import made
from tests.problems import scaled_relu_problem, scaled_relu_program
from tools.problem import Captured


def innovation(**changes: object) -> Innovation:
    """Of other operations than relu(x * weight), with a program that is valid for it."""
    found = made.innovation(made.problem("aten.gelu.default"), idea="unlike")
    return found.model_copy(update={"program": scaled_relu_program(), **changes})


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive.open(tmp_path / "home" / "archive", HashEmbedder()) as opened:
        yield opened


def settings(tmp_path: Path, seeds: str, **given: object) -> Settings:
    return resolve_settings(home=tmp_path / "home", device="simulator", seeds=seeds, **given)


def test_a_run_keeps_the_whole_ids_of_its_seeds_and_recalls_them_first(
    tmp_path: Path, archive: Archive
) -> None:
    seed = innovation()
    archive.add(seed)
    archive.add(made.innovation(scaled_relu_problem(), idea="alike"))
    whole = innovation_id(seed)
    with Store(tmp_path / "home" / "store.db") as store:
        # Without an open archive it is opened beside the one that is open already, as the command line does.
        run = record_run(Captured(scaled_relu_problem(), None), settings(tmp_path, whole[:10]), store)
    assert run.settings["seeds"] == whole
    found = recalled(archive, scaled_relu_problem(), "sm_90a", (whole,))
    assert [(one.id == whole, one.chosen) for one in found] == [(True, True), (False, False)]
    assert archive.get(whole) is not None


def test_what_is_absent_or_does_not_fit_is_refused_with_a_sentence(tmp_path: Path, archive: Archive) -> None:
    seed, broken = innovation(), made.innovation(made.problem(), source="no kernel")
    archive.add_all((seed, broken))
    captured = Captured(scaled_relu_problem(), None)
    with Store(tmp_path / "home" / "store.db") as store:
        with pytest.raises(BadInput, match="no innovation has an id that begins with 'zzz'"):
            record_run(captured, settings(tmp_path, "zzz"), store, archive=archive)
        with pytest.raises(BadInput, match=r"\(made\) cannot be a seed here: "):
            record_run(captured, settings(tmp_path, innovation_id(broken)), store, archive=archive)
        both = f"{innovation_id(seed)}, {innovation_id(broken)}"
        with pytest.raises(BadInput, match="2 seeds do not fit into a population of 1"):
            record_run(captured, settings(tmp_path, both, population=1), store, archive=archive)
        assert store.runs() == []


def test_several_that_fit_a_prefix_are_refused(archive: Archive) -> None:
    archive.add_all((innovation(), made.innovation(made.problem())))
    with pytest.raises(BadInput, match="2 innovations have an id that begins with ''"):
        find_innovation("", archive)


def test_the_rules_begin_with_a_seed_whose_operations_are_others() -> None:
    unlike = innovation()
    chosen = Neighbour("seed", unlike, 0.0, chosen=True)
    first = RulesPlanner().plan(briefing(neighbours=(chosen,)), Random(0))[0]
    assert (first.move, first.innovation) == (Move.RECALL, "seed")
    merely_alike = Neighbour("other", unlike, 0.9)
    planned = RulesPlanner().plan(briefing(neighbours=(merely_alike,)), Random(0))
    assert all(proposal.move is not Move.RECALL for proposal in planned)
