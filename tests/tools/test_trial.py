"""Trials on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memory.errors import StoreError
from tools.inputs import Distribution
from tools.trial import Manifest, Trial, write_array, write_manifest


def written(folder: Path) -> Trial:
    for name in ("inputs", "state", "expected", "eager"):
        write_array(folder / name / "x.npy", np.arange(6.0).reshape(2, 3).T)
    names = dict.fromkeys(("inputs", "state", "expected", "eager"), ("x",))
    write_manifest(folder, Manifest.model_validate({"seed": 1, "distribution": "normal", **names}))
    return Trial(1, Distribution.NORMAL, folder)


def test_a_trial_loads_what_was_written_row_major(tmp_path: Path) -> None:
    data = written(tmp_path).load()
    assert data.inputs["x"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert not [path for path in tmp_path.rglob("*") if "partial" in path.name]


def test_a_large_array_is_mapped_read_only(tmp_path: Path) -> None:
    trial = written(tmp_path)
    write_array(tmp_path / "inputs" / "x.npy", np.zeros(3 << 20))
    loaded = trial.load().inputs["x"]
    assert isinstance(loaded, np.memmap) and not loaded.flags.writeable


def test_an_unfinished_or_damaged_trial_is_refused(tmp_path: Path) -> None:
    trial = written(tmp_path)
    (tmp_path / "eager" / "x.npy").write_bytes(b"rubbish")
    with pytest.raises(StoreError, match="delete it"):
        trial.load()
    (tmp_path / "trial.json").unlink()
    with pytest.raises(StoreError, match="cannot be read"):
        trial.load()


def test_a_pickled_array_is_never_unpickled(tmp_path: Path) -> None:
    trial = written(tmp_path)
    np.save(tmp_path / "inputs" / "x.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(StoreError):
        trial.load()
