"""A Ray cluster of several nodes on this machine, for tests: each node a `ray start` of its own that can be killed."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import ray

from graph.interrupts import descendants

START_S = 60.0
_OBJECTS_BYTES = 100 << 20


def wait_until(happened: Callable[[], object], what: str, timeout_s: float = START_S) -> None:
    """Wait until something has happened. Raises TimeoutError that says what has not."""
    deadline = time.monotonic() + timeout_s
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout_s:g} s: {what}")
        time.sleep(0.1)


class Node:
    """One `ray start` with one core, and a home of its own as on a machine of its own."""

    def __init__(self, home: Path, *arguments: str) -> None:
        home.mkdir()
        command = [
            sys.executable,
            "-m",
            "ray.scripts.scripts",
            "start",
            "--block",
            "--num-cpus=1",
            *arguments,
        ]
        with (home / "ray.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*command, f"--object-store-memory={_OBJECTS_BYTES}"],
                env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "HOME": str(home)},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def actors(self) -> list[int]:
        """Pids of the actors that run on it."""
        return [pid for pid in descendants(self._process.pid) if _command(pid).startswith("ray::SeatActor")]

    def workers(self) -> list[int]:
        """Pids of what its actors started."""
        return [pid for actor in self.actors() for pid in descendants(actor)]

    def kill(self) -> None:
        """As if the machine lost its power, but that what its actors started is left alone."""
        spared = set(self.workers())
        for pid in [*descendants(self._process.pid), self._process.pid]:
            if pid not in spared:
                kill(pid)
        self._process.wait()


class Cluster:
    """A head, and further nodes. This process is connected to it."""

    def __init__(self, folder: Path) -> None:
        self.nodes: list[Node] = []
        """Those that live."""
        self._folder = folder
        self._begun = 0
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        self._begin("--head", "--include-dashboard=false", f"--port={port}", f"--temp-dir={folder / 'ray'}")
        wait_until(lambda: _listens(port), "the head listens")
        ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)

    def add(self) -> Node:
        """Another node that has joined. One after the other: two that start at once take each other's ports."""
        node = self._begin(f"--address={self.address}")
        # Those that were lost are listed too.
        wait_until(lambda: len(ray.nodes()) == self._begun, f"{self._begun} nodes")
        return node

    def kill(self, node: Node) -> None:
        """Lose a node."""
        self.nodes.remove(node)
        node.kill()

    def close(self) -> None:
        """Leave the cluster and kill every node."""
        ray.shutdown()
        for node in self.nodes:
            node.kill()

    def _begin(self, *arguments: str) -> Node:
        node = Node(self._folder / f"home{self._begun}", *arguments)
        self._begun += 1
        self.nodes.append(node)
        return node


def alive(pid: int) -> bool:
    """True for a process that runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def kill(pid: int) -> None:
    """Kill a process, unless it has ended by itself."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
