"""Executables that stand in for `ncu` and `compute-sanitizer`: real processes, told what to print and how to end."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tools.nsight_process import Tool

_PRELUDE = """#!{python} -S
import json, os, subprocess, sys, time
args = sys.argv[1:]
def value(option):
    return args[args.index(option) + 1]
def log(text):
    with open(value("--log-file"), "a") as stream:
        stream.write(text)
def report(failure=None):
    "What the wrapped replay would have left."
    job = json.load(open(args[-1]))
    with open(job["report"], "w") as stream:
        json.dump({{"device": "cuda:fake", "launches": {{}}, "passes": 1, "failure": failure}}, stream)
"""


def fake_tool(folder: Path, name: str, body: str) -> Tool:
    """A tool that is found in `folder` alone; `body` is Python that may use args, value(), log() and report()."""
    path = folder / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_PRELUDE.format(python=sys.executable) + body)
    path.chmod(0o755)
    return Tool(name, "FAKE_TOOL", (str(path),))


def missing_tool(folder: Path, name: str) -> Tool:
    """A tool that is nowhere."""
    return Tool(name, "FAKE_TOOL", (f"{folder}/nowhere/*/{name}",))


def ends_soon(pid: int, within_s: float = 5.0) -> bool:
    """Whether a process ends, or is a zombie, in that time: a kill takes effect a little later than it is sent."""
    end = time.monotonic() + within_s
    while _is_running(pid):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"
