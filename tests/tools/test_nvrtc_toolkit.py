"""Finding NVRTC, its architectures and its headers on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory.errors import BadInput, ToolMissing
from tools.nvrtc_toolkit import find_headers, find_toolkit


def fake_toolkit(root: Path, version: int, *, complete: bool) -> Path:
    include = root / "include"
    for name in ["cuda_fp16.h", "crt/host_defines.h", *(["cccl/cuda/std/cstdint"] if complete else [])]:
        (include / name).parent.mkdir(parents=True, exist_ok=True)
        (include / name).write_text("")
    (include / "cuda_runtime_api.h").write_text(f"#define CUDART_VERSION  {version}\n")
    return root


def test_this_machines_toolkit_knows_the_architectures_we_name() -> None:
    toolkit = find_toolkit()
    assert toolkit.version >= (13, 0)
    assert {"sm_80", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a"} <= set(toolkit.archs)
    assert "sm_80a" not in toolkit.archs
    for name in ("cuda_fp16.h", "cooperative_groups.h", "cuda/std/cstdint", "cub/block/block_reduce.cuh"):
        assert any((Path(d) / name).is_file() for d in toolkit.headers.dirs), name


def test_an_unknown_architecture_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"sm_20.*sm_90a"):
        find_toolkit().check_arch("sm_20")


def test_a_toolkit_named_by_the_environment_serves_where_no_package_does(tmp_path: Path) -> None:
    home = fake_toolkit(tmp_path / "cuda", 99010, complete=True)
    found = find_headers(99, {"CUDA_HOME": str(home)})
    assert found.dirs == (str(home / "include"), str(home / "include/cccl"))
    (home / "include/cuda_fp16.h").write_text("upgraded")
    assert find_headers(99, {"CUDA_PATH": str(home)}).fingerprint != found.fingerprint


def test_incomplete_headers_are_named_with_what_they_lack_and_what_to_install(tmp_path: Path) -> None:
    home = fake_toolkit(tmp_path / "cuda", 99010, complete=False)
    with pytest.raises(ToolMissing, match=r"cuda/std/cstdint.*pip install") as raised:
        find_headers(99, {"CUDA_HOME": str(home)})
    assert str(home) in str(raised.value)
