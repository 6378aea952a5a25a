"""Trials that travel: packed whole, put on a shelf elsewhere, kept while they are held."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from memory.errors import StoreError
from tests.cases import scaled_relu_case
from tools.device_trials import DeviceTrial
from tools.inputs import Distribution
from tools.owned_folder import own_folder
from tools.parcel import Files, Parcel, Shelf, pack, relocated, trials_of
from tools.trial import Trial


@pytest.fixture
def trials(tmp_path: Path) -> tuple[Trial, ...]:
    return scaled_relu_case(tmp_path / "trials").trials


def holding_one(shelf: Shelf, parcel: Parcel, fetched: list[str]) -> None:
    def fetch() -> Files:
        fetched.append(parcel.digest)
        return parcel.files

    with shelf.holding({parcel.digest: fetch}):
        assert (shelf.place(parcel.digest) / "trial.json").exists()


def test_a_trial_is_the_same_on_a_shelf_when_its_own_folder_is_gone(
    tmp_path: Path, trials: tuple[Trial, ...]
) -> None:
    trial, parcel = trials[0], pack(trials[0])
    before = trial.load()
    shutil.rmtree(trial.directory)
    shelf = Shelf(tmp_path / "shelf")
    with shelf.holding({parcel.digest: lambda: parcel.files}):
        after = Trial(trial.seed, trial.distribution, shelf.place(parcel.digest)).load()
    for place in ("inputs", "state", "expected", "eager"):
        mine, theirs = getattr(after, place), getattr(before, place)
        assert mine.keys() == theirs.keys()
        for name in mine:
            assert mine[name].tobytes() == theirs[name].tobytes()
    shelf.close()
    assert not shelf.folder.exists()


def test_the_digest_is_of_the_content(trials: tuple[Trial, ...], tmp_path: Path) -> None:
    copy = scaled_relu_case(tmp_path / "again").trials
    assert pack(trials[0]).digest == pack(copy[0]).digest
    assert len({pack(trial).digest for trial in trials}) == len(trials)


def test_a_damaged_trial_is_not_sent(trials: tuple[Trial, ...]) -> None:
    (trials[0].directory / "inputs" / "x.npy").unlink()
    with pytest.raises(StoreError, match="delete it"):
        pack(trials[0])


def test_a_full_shelf_lets_the_longest_unused_go_but_none_that_is_held(
    tmp_path: Path, trials: tuple[Trial, ...]
) -> None:
    first, second, third, *_ = (pack(trial) for trial in trials)
    size = sum(content.size for content in first.files.values())
    shelf, fetched = Shelf(tmp_path / "shelf", limit_bytes=2 * size + size // 2), list[str]()
    holding_one(shelf, first, fetched)
    with shelf.holding({first.digest: lambda: first.files}):
        holding_one(shelf, second, fetched)
        holding_one(shelf, third, fetched)
        assert shelf.place(first.digest).exists() and not shelf.place(second.digest).exists()
    holding_one(shelf, third, fetched)
    holding_one(shelf, second, fetched)
    assert fetched == [one.digest for one in (first, second, third, second)]
    assert not shelf.place(first.digest).exists()
    shelf.close()


def test_a_case_is_moved_with_the_trials_that_drawn_ones_start_from(tmp_path: Path) -> None:
    case = scaled_relu_case(tmp_path)
    lone = Trial(9, Distribution.NORMAL, tmp_path / "lone")
    drawn = (DeviceTrial(1, Distribution.LARGE, case.trials[0]), DeviceTrial(2, Distribution.LARGE, lone))
    case = replace(case, drawn=drawn)
    assert trials_of(case) == (*case.trials, lone)
    moved = relocated(case, lambda folder: Path("elsewhere") / folder.name)
    assert {trial.directory.parent for trial in trials_of(moved)} == {Path("elsewhere")}
    assert moved.problem_hash == case.problem_hash and moved.policy_hash == case.policy_hash


def test_folders_whose_owner_is_gone_are_swept_and_those_of_the_living_are_not(tmp_path: Path) -> None:
    living = Shelf(tmp_path)
    dead = tmp_path / "trials-0123"
    dead.mkdir()
    (dead / "lock").touch()
    folder, lock_fd = own_folder(tmp_path, "trials")
    assert folder.exists() and living.folder.exists() and not dead.exists()
    living.close()
    os.close(lock_fd)
