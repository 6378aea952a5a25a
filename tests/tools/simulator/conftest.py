"""One compiler cache a session, so that the runner and its headers are built once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.simulator.bench import Bench
from tools.simulator.arena import Arena
from tools.simulator.compiler import HostCompiler


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp().parent / "simulator-cache"


@pytest.fixture(scope="session")
def compiler(cache_dir: Path) -> HostCompiler:
    return HostCompiler(cache_dir)


@pytest.fixture
def bench(compiler: HostCompiler) -> Iterator[Bench]:
    with Arena() as arena:
        yield Bench(compiler, arena)
