"""Fixtures shared by the whole suite: compile caches and a simulated device that live as long as the session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.devices.build import DeviceSpec, open_device
from tools.devices.port import Device


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile caches of this test session."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def simulated_h200(cache_dir: Path) -> Iterator[Device]:
    """The simulator standing for an H200, with short limits so that hangs end soon."""
    with open_device(DeviceSpec("simulator", "h200", timeout_s=5.0), cache_dir) as device:
        yield device
