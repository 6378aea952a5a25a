"""One trial: inputs, weights, the oracle's answer and eager's, as files. No torch here.

Here: where the files are and how they are read. Not here: making them (tools.reference).
Invariants: files appear whole or not at all, and the manifest last; arrays hold a tensor's values row-major,
whatever its strides (those are in the graph); bf16 travels as `uint16` bit patterns; nothing is unpickled.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from memory.disk import replacing, telling_full
from memory.errors import StoreError
from memory.records import Record
from tools.inputs import Distribution

Array = NDArray[np.generic]

MANIFEST = "trial.json"
_MMAP_BYTES = 16 << 20


class Manifest(Record):
    """Names of the arrays in each folder of a trial."""

    seed: int
    distribution: Distribution
    inputs: tuple[str, ...]
    state: tuple[str, ...]
    expected: tuple[str, ...]
    eager: tuple[str, ...]


@dataclass(frozen=True)
class TrialData:
    """A trial's arrays by Graph value name."""

    inputs: dict[str, Array]
    state: dict[str, Array]
    """Parameters, buffers and constants before the forward."""
    expected: dict[str, Array]
    """Outputs and updated buffers of the float64 module: float64 where floating, else the value's own dtype."""
    eager: dict[str, Array]
    """The same from eager PyTorch in the problem's own precision."""


@dataclass(frozen=True)
class Trial:
    """A seed and a distribution, with the folder that holds what they gave."""

    seed: int
    distribution: Distribution
    directory: Path

    def load(self) -> TrialData:
        """Read the arrays, large ones memory-mapped and read-only. Raises: StoreError where files are damaged."""
        try:
            manifest = Manifest.model_validate_json((self.directory / MANIFEST).read_bytes())
            return TrialData(
                self._folder("inputs", manifest.inputs),
                self._folder("state", manifest.state),
                self._folder("expected", manifest.expected),
                self._folder("eager", manifest.eager),
            )
        except (OSError, ValueError, ValidationError) as error:
            raise StoreError(
                f"trial in {self.directory} cannot be read: {error}; delete it and run again"
            ) from error

    def _folder(self, name: str, members: tuple[str, ...]) -> dict[str, Array]:
        return {member: _read(self.directory / name / f"{member}.npy") for member in members}


def write_array(path: Path, array: Array) -> None:
    """Write one array atomically, row-major. The folder is made where absent. Raises DiskFull."""
    with telling_full(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    rows = np.ascontiguousarray(array)
    with replacing(path) as draft, draft.open("xb") as stream:
        # np.save would write past Python and not say why it could not.
        header = np.lib.format.header_data_from_array_1_0(rows)
        np.lib.format.write_array_header_1_0(stream, {**header, "shape": array.shape})
        # As bytes and without a copy: weights come to gigabytes.
        stream.write(rows.reshape(-1).view(np.uint8).data)


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write the manifest atomically: the trial is complete from then on. Raises DiskFull."""
    with replacing(directory / MANIFEST) as draft:
        draft.write_text(manifest.model_dump_json())


def _read(path: Path) -> Array:
    large = path.stat().st_size > _MMAP_BYTES
    array: Array = np.load(path, mmap_mode="r" if large else None, allow_pickle=False)
    return array
