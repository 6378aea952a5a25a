"""What is said where torch and the NVIDIA driver do not fit each other, and when cubins are unloaded. Needs neither."""

from __future__ import annotations

import pytest

from tools.devices.cuda_driver import CubinLoader, DriverError, SharedBytes, mismatch


@pytest.mark.parametrize(
    ("built_for", "driver", "said"),
    [
        (None, 13000, "built without CUDA: install a CUDA build"),
        ("13.0", 12040, "too old: it runs CUDA 12.4, and torch 2.11.0 was built for 13.0; update the driver"),
        ("12.8", 12040, "CUDA_VISIBLE_DEVICES"),
        ("12.8", 13000, "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_a_gpu_that_torch_cannot_use_is_explained_with_a_remedy(
    built_for: str | None, driver: int, said: str
) -> None:
    assert said in mismatch("2.11.0", built_for, driver)


class ScriptedDriver:
    """The driver's calls that load cubins; a cubin's text is its handle."""

    def __init__(self) -> None:
        self.held: list[bytes] = []

    def cuLibraryLoadData(self, cubin: bytes, *_: object) -> tuple[int, bytes]:  # noqa: N802 - the driver's name
        self.held.append(cubin)
        return 0, cubin

    def cuLibraryGetKernel(self, library: bytes, entry: bytes) -> tuple[int, int]:  # noqa: N802
        return (0, 4096) if entry in library else (500, 0)

    def cuLibraryUnload(self, library: bytes) -> tuple[int]:  # noqa: N802
        self.held.remove(library)
        return (0,)


def test_a_cubin_is_unloaded_once_all_its_kernels_are_gone() -> None:
    driver, need = ScriptedDriver(), SharedBytes(0, 0)
    loader = CubinLoader(0, driver)
    first = loader.load(b"one two", {"one": need, "two": need})
    second = loader.load(b"three", {"three": need})
    one = first.pop("one")
    first.clear()
    assert loader.load(b"four", {"four": need}).keys() == {"four"}
    assert driver.held == [b"one two", b"three", b"four"]
    del one, second
    fifth = loader.load(b"five", {"five": need})
    assert driver.held == [b"five"]
    assert int(fifth["five"].handle.handle) == 4096


def test_a_cubin_without_the_entry_is_refused_and_unloaded() -> None:
    driver = ScriptedDriver()
    loader = CubinLoader(0, driver)
    with pytest.raises(DriverError, match="finding absent: 500"):
        loader.load(b"one", {"absent": SharedBytes(0, 0)})
    loader.load(b"two", {})
    assert b"one" not in driver.held
