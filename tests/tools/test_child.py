"""Captures in a real child process: whatever the user's file does, one message comes back in time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from memory.errors import CaptureFailed
from tests.tools.modules import source_of, target_of, written
from tools.child import Child, Ending, Failure, Limits, Lost
from tools.problem import capture, parse_target

LIMITS = Limits(threads=1, memory_bytes=2 << 30)
IDENTITY = source_of("return x + 1", "[torch.randn(4)]")


def test_a_file_that_prints_and_forks_is_captured_once(tmp_path: Path) -> None:
    source = "import os\nprint('noise' * 100_000)\nos.fork()\n" + IDENTITY
    captured = capture(parse_target(str(written(tmp_path, source))), limits=LIMITS)
    assert [node.op for node in captured.problem.graph.nodes] == ["aten.add.Tensor"]


@pytest.mark.parametrize(
    ("forward", "part"),
    [
        ("import ctypes\nctypes.string_at(0)", "killed by SIGSEGV"),
        ("import os\nos._exit(3)", "exited with status 3"),
        ("import os\nos.closerange(3, 100)\nimport time\ntime.sleep(60)", "closed its channel"),
    ],
)
def test_a_dying_file_is_described(tmp_path: Path, forward: str, part: str) -> None:
    with pytest.raises(CaptureFailed, match=part):
        capture(target_of(tmp_path, forward, "[torch.randn(4)]"), limits=LIMITS)


def test_a_hanging_file_is_killed_at_the_deadline_with_all_it_started(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    source = (
        f"import os, time\nchild = os.fork()\nif child == 0:\n    time.sleep(600)\n"
        f"open({str(note)!r}, 'w').write(str(child))\ntime.sleep(600)\n{IDENTITY}"
    )
    began = time.monotonic()
    with pytest.raises(CaptureFailed, match=r"running the file's top level .* after 8 s"):
        capture(parse_target(str(written(tmp_path, source))), limits=LIMITS, deadline_s=8)
    assert time.monotonic() - began < 15
    assert _is_gone(int(note.read_text()))


def test_a_file_that_fills_memory_is_told_so(tmp_path: Path) -> None:
    target = target_of(
        tmp_path, "return x", "[torch.randn(4)]", init="self.a = [bytearray(1 << 28) for _ in range(99)]"
    )
    with pytest.raises(CaptureFailed, match="ran out of memory"):
        capture(target, limits=LIMITS)


def test_secrets_do_not_reach_the_users_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hidden")
    forward = "import os\nassert 'SOME_API_KEY' not in os.environ\nreturn x"
    assert capture(target_of(tmp_path, forward, "[torch.randn(4)]"), limits=LIMITS).problem.graph.nodes == ()


def test_our_own_fault_is_a_failure_and_the_next_request_finds_the_child_lost() -> None:
    with Child("capture_child", LIMITS) as child:
        failure = child.ask(b"not json", deadline_s=60)
        assert isinstance(failure, Failure) and failure.kind == "internal"
        lost = child.ask(b"not json", deadline_s=60)
        assert isinstance(lost, Lost) and lost.ending is Ending.EXIT


def _is_gone(pid: int) -> bool:
    """True where the process has ended, reaped or not."""
    for _ in range(100):
        stat = Path(f"/proc/{pid}/stat")
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    os.kill(pid, 9)
    return False
