"""The command's main module is light, for every spawned worker imports it again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.metadata import entry_points

LIGHT = """
import sys
import graph.entry
heavy = {"torch", "langgraph", "chromadb", "graph.cli"} & set(sys.modules)
sys.exit(", ".join(sorted(heavy)) or 0)
"""


def test_what_the_command_imports_first_is_next_to_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_command_is_that_module() -> None:
    (command,) = entry_points(group="console_scripts", name="warpsmith")
    assert command.value == "graph.entry:main"


def test_an_interrupt_during_the_imports_ends_quietly() -> None:
    # As a terminal would have it; a test run in the background of a script has interrupts ignored.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from graph.entry import main; print('begun', flush=True); main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "doctor"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGINT)
        said = process.stderr.read()
        assert process.wait(60) == 130
    assert said == "warpsmith: interrupted\n"
