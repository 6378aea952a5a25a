"""NVIDIA's command-line tools as processes: where they are, what they inherit, and their end at a deadline.

Here: `ncu` and `compute-sanitizer` alike. Not here: their options and what they print (tools.nsight,
tools.compute_sanitizer), or the process that they wrap (tools.replay).
Covers: a tool or a wrapped process that hangs (the whole process group is killed), floods its output (kept in a
file, read head and tail) or leaves children behind. Secrets are left out of the environment. Does not cover: a
process that leaves its session; a replay ends by an alarm of its own then.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory.errors import ToolMissing

_ROOT = Path(__file__).resolve().parents[1]
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_KEPT_BYTES = 64 << 10
_POLL_S = 0.02


@dataclass(frozen=True)
class Tool:
    """An executable that NVIDIA's toolkits install in more places than one."""

    name: str
    variable: str
    """Environment variable that names the executable, before all other places."""
    places: tuple[str, ...]
    """Glob patterns, searched after PATH; the newest version of the first pattern that matches is taken."""


NCU = Tool(
    "ncu",
    "NCU",
    (
        "/usr/local/cuda/bin/ncu",
        "/usr/local/cuda-*/bin/ncu",
        "/usr/local/cuda*/nsight-compute-*/ncu",
        "/opt/nvidia/nsight-compute/*/ncu",
    ),
)
COMPUTE_SANITIZER = Tool(
    "compute-sanitizer",
    "COMPUTE_SANITIZER",
    (
        "/usr/local/cuda/bin/compute-sanitizer",
        "/usr/local/cuda-*/bin/compute-sanitizer",
        "/usr/local/cuda*/compute-sanitizer/compute-sanitizer",
    ),
)


@dataclass(frozen=True)
class Ended:
    """How a tool's run ended."""

    returncode: int | None
    """None where the deadline ended it."""
    output: str
    """Head and tail of what it and the wrapped process printed."""
    seconds: float


def find_tool(tool: Tool, environ: Mapping[str, str] | None = None) -> Path:
    """The executable: of its own variable, of PATH, or of the usual places. `environ` None: the process' own.

    Raises: ToolMissing, with what to install or to set.
    """
    values = os.environ if environ is None else environ
    named = values.get(tool.variable)
    if named:
        if not os.access(named, os.X_OK) or Path(named).is_dir():
            raise ToolMissing(
                f"{tool.variable} names {named!r}, which is no executable file; correct or unset it"
            )
        return Path(named)
    found = shutil.which(tool.name, path=values.get("PATH", os.defpath))
    if found is not None:
        return Path(found)
    for pattern in tool.places:
        matches = [path for path in Path("/").glob(pattern.lstrip("/")) if os.access(path, os.X_OK)]
        if matches:
            return max(matches, key=_version)
    raise ToolMissing(
        f"{tool.name} is neither on PATH nor in {', '.join(tool.places)}; it comes with the CUDA toolkit. Install it,"
        f" or name it in {tool.variable}"
    )


def tool_environment(environ: Mapping[str, str] | None = None, **changes: str) -> dict[str, str]:
    """What a tool and the replay in it inherit: no secrets, plain number formats, this package importable."""
    values = os.environ if environ is None else environ
    kept = {name: value for name, value in values.items() if not _SECRET.search(name)}
    paths = [str(_ROOT), *filter(None, [kept.get("PYTHONPATH")])]
    return {**kept, "LC_ALL": "C", "PYTHONPATH": os.pathsep.join(paths), **changes}


def run_tool(
    command: Sequence[str], *, environment: Mapping[str, str], deadline_s: float, folder: Path
) -> Ended:
    """Run a tool in a process group of its own, in `folder`, and kill the whole group at the deadline."""
    started = time.monotonic()
    output = folder / "output.txt"
    with output.open("wb") as stream:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=folder,
            env=dict(environment),
        )
    try:
        in_time = _ends_by(process, started + deadline_s)
    finally:
        # The leader is not reaped yet, so the group's id is still ours; what it left behind goes with it.
        _kill_group(process)
    code = process.wait()
    return Ended(code if in_time else None, _head_and_tail(output), time.monotonic() - started)


def _ends_by(process: subprocess.Popen[bytes], end: float) -> bool:
    """Wait for the leader's end without reaping it."""
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_S)
    return True


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        # It has not made its own group yet, or every member is gone.
        process.kill()


def _head_and_tail(path: Path) -> str:
    size = path.stat().st_size
    with path.open("rb") as stream:
        head = stream.read(_KEPT_BYTES)
        if size <= 2 * _KEPT_BYTES:
            return (head + stream.read()).decode(errors="replace")
        stream.seek(-_KEPT_BYTES, os.SEEK_END)
        return f"{head.decode(errors='replace')}\n[...]\n{stream.read().decode(errors='replace')}"


def _version(path: Path) -> list[int]:
    """The numbers in a path, so that cuda-13.0 comes after cuda-12.8."""
    return [int(number) for number in re.findall(r"\d+", str(path))]
