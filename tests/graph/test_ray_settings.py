"""`--pool ray` without a cluster, and without Ray: what is said."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from graph.doctor import ray_check
from tests.graph.test_run import environment, warpsmith
from tests.memory.chroma_server import free_port
from tests.problems import module_text

needs_ray = pytest.mark.skipif(
    find_spec("ray") is None, reason="Ray is not installed: pip install 'warpsmith[ray]'"
)
WITHOUT_RAY = (
    "import sys; sys.modules['ray'] = None; sys.argv[0] = 'warpsmith'; from graph.cli import main; main()"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scaled.py").write_text(module_text())
    return tmp_path


def test_without_ray_it_says_what_to_install(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RAY, "optimize", "scaled.py", "--pool", "ray", "--quiet"],
        cwd=folder, env=environment("home"), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "pip install 'warpsmith[ray]'" in done.stderr and "Traceback" not in done.stderr


@needs_ray
@pytest.mark.parametrize(
    ("address", "code", "words"),
    [
        ("ray://10.0.0.1:10001", 2, "is not host:port"),
        ("127.0.0.1:{port}", 1, "no Ray cluster answers at 127.0.0.1"),
    ],
)
def test_an_address_where_no_cluster_is_ends_in_a_sentence(
    address: str, code: int, words: str, folder: Path
) -> None:
    where = address.format(port=free_port())
    done = warpsmith(folder, "optimize", "scaled.py", "--quiet", "--pool", "ray", "--ray-address", where)
    assert done.returncode == code and words in done.stderr and "Traceback" not in done.stderr


def test_the_doctor_says_what_is_lost_without_ray() -> None:
    check = ray_check(None)
    assert not check.found and not check.needed and "warpsmith[ray]" in check.detail
    assert ray_check("2.60.0").found


def test_a_pool_of_another_kind_is_refused(folder: Path) -> None:
    done = warpsmith(folder, "optimize", "scaled.py", "--pool", "slurm")
    assert done.returncode == 2 and "'pool' is 'slurm'" in done.stderr
