"""The compile cache: what its key covers, damage, concurrency and size; and that the compiler uses it."""

from __future__ import annotations

import dataclasses
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.errors import BadInput
from tools.nvrtc import Compiled, CompileRejected, CompileRequest, NvrtcCompiler
from tools.nvrtc_cache import CompileCache, cache_key
from tools.nvrtc_records import Diagnostic, KernelResources
from tools.nvrtc_toolkit import Headers, Toolkit

TOOLKIT = Toolkit((13, 0), ("sm_80", "sm_90a"), Headers(("/headers",), "fingerprint"))
REQUEST = CompileRequest("source", "sm_80", (("A", "1"),), ("k",))
RESULT = Compiled(
    b"\x7fELF\0cubin",
    {"k": KernelResources("k", 10, 128, 1, 2, 3, 4)},
    (Diagnostic("warning", 3, "unused", "excerpt"),),
    "log",
    cached=False,
    seconds=0.5,
)
REJECTED = CompileRejected((Diagnostic("error", None, "no"),), "log", seconds=0.5)


def test_every_field_of_the_request_and_of_the_toolkit_changes_the_key() -> None:
    changed = {
        "source": "other",
        "arch": "sm_90a",
        "defines": (("A", "2"),),
        "entries": (),
        "fast_math": True,
        "fmad": False,
        "max_registers": 32,
    }
    assert changed.keys() == {f.name for f in dataclasses.fields(CompileRequest)}
    requests = [CompileRequest(**{**vars(REQUEST), name: value}) for name, value in changed.items()]
    keys = {cache_key(r, TOOLKIT) for r in [REQUEST, *requests]}
    keys.add(cache_key(REQUEST, dataclasses.replace(TOOLKIT, version=(13, 1))))
    keys.add(cache_key(REQUEST, dataclasses.replace(TOOLKIT, headers=Headers(("/headers",), "upgraded"))))
    assert len(keys) == len(changed) + 3


def test_fields_cannot_run_into_each_other_in_the_key() -> None:
    one = dataclasses.replace(REQUEST, defines=(("AB", "C"),))
    other = dataclasses.replace(REQUEST, defines=(("A", "BC"),))
    assert cache_key(one, TOOLKIT) != cache_key(other, TOOLKIT)


@pytest.mark.parametrize("result", [RESULT, REJECTED])
def test_a_stored_result_comes_back_whole_and_marked(
    tmp_path: Path, result: Compiled | CompileRejected
) -> None:
    cache = CompileCache(tmp_path)
    cache.store("ab" * 32, result)
    assert CompileCache(tmp_path).load("ab" * 32) == dataclasses.replace(result, cached=True, seconds=0.0)
    assert cache.load("cd" * 32) is None


@settings(max_examples=60, deadline=None)
@given(position=st.floats(0, 0.999), flip=st.integers(1, 255), cut=st.booleans())
def test_any_damage_is_a_miss_and_the_entry_goes(
    tmp_path_factory: pytest.TempPathFactory, position: float, flip: int, cut: bool
) -> None:
    logging.getLogger("tools.entry_cache").setLevel(logging.ERROR)
    cache = CompileCache(tmp_path_factory.mktemp("cache"))
    cache.store("ab" * 32, RESULT)
    (path,) = cache.root.glob("*/*.entry")
    content = bytearray(path.read_bytes())
    at = int(position * len(content))
    if cut:
        del content[at:]
    else:
        content[at] ^= flip
    path.write_bytes(content)
    assert cache.load("ab" * 32) is None
    assert not path.exists()


def test_an_entry_under_another_key_is_not_trusted(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path)
    cache.store("ab" * 32, RESULT)
    (path,) = cache.root.glob("*/*.entry")
    path.rename(path.with_name("ab" + "cd" * 31 + ".entry"))
    assert cache.load("ab" + "cd" * 31) is None


def test_the_longest_unused_entries_go_first(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path, max_bytes=12_000)
    keys = [f"{n:02x}" * 32 for n in range(6)]
    big = dataclasses.replace(RESULT, cubin=b"x" * 2000)
    for age, key in enumerate(keys[:4]):
        cache.store(key, big)
        (path,) = cache.root.glob(f"*/{key}.entry")
        os.utime(path, (1000 + age, 1000 + age))
    assert cache.load(keys[0]) is not None  # used just now, so it stays
    for key in keys[4:]:
        cache.store(key, big)
    kept = [key for key in keys if cache.load(key) is not None]
    assert keys[0] in kept and keys[5] in kept
    assert keys[1] not in kept and keys[2] not in kept
    assert sum(p.stat().st_size for p in cache.root.glob("*/*")) <= 12_000


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot create the cache"):
        CompileCache(tmp_path / "file")


def test_many_processes_can_write_the_same_entries(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.tools.test_nvrtc_cache import RESULT\n"
        "from tools.nvrtc_cache import CompileCache\n"
        "cache = CompileCache(Path(sys.argv[1]), max_bytes=20_000)\n"
        "for n in range(60):\n"
        "    key = f'{n % 7:02x}' * 32\n"
        "    cache.store(key, RESULT)\n"
        "    assert cache.load(key) in (None, cache.load(key)), key\n"
    )
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-W", "error", "-c", program, str(tmp_path)]
    running = [subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in running:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0 and errors == ""
    assert list(tmp_path.rglob("*.tmp")) == []


def test_the_compiler_answers_from_the_cache_without_starting_a_process(tmp_path: Path) -> None:
    good = CompileRequest('extern "C" __global__ void k(float* y) { y[0] = 1.0f; }', "sm_80", (), ("k",))
    bad = dataclasses.replace(good, source="nonsense")
    with NvrtcCompiler(tmp_path) as compiler:
        first, refused = compiler.compile(good), compiler.compile(bad)
        assert not first.cached and not refused.cached
    with NvrtcCompiler(tmp_path) as compiler:
        again, refused_again = compiler.compile(good), compiler.compile(bad)
        assert compiler._worker._child is None
    assert isinstance(first, Compiled) and isinstance(again, Compiled)
    assert again.cached and again.cubin == first.cubin and again.resources == first.resources
    assert isinstance(refused_again, CompileRejected) and refused_again.cached
    assert isinstance(refused, CompileRejected) and refused_again.diagnostics == refused.diagnostics


def test_a_timeout_is_not_remembered(tmp_path: Path) -> None:
    request = CompileRequest("#include <cub/block/block_reduce.cuh>\nint a;", "sm_80")
    with NvrtcCompiler(tmp_path, timeout_s=0.05) as compiler:
        result = compiler.compile(request)
        assert isinstance(result, CompileRejected) and result.reason == "timeout"
        assert list(tmp_path.rglob("*.entry")) == []
