"""The connection to a Ray cluster: a running one, or one of this machine alone for as long as it is used.

Here: connecting, with an answer in seconds where nothing is there, and what the cluster has. Not here: actors.
Does not cover: Ray Client (`ray://`), through which references cannot travel inside of what is sent.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import ray

from memory.errors import BadInput, WorkerLost

REACH_S = 5.0
ANSWER_S = 20.0
_REMEDY = "start it with `ray start --head`, name another with --ray-address, or leave --pool ray out"


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Connected to the cluster whose head is at `host:port`; without one to the cluster that this machine belongs to,
    or else to a new one of this machine alone. A connection that the process has already is used and left open.

    Raises: BadInput for an address of another form; WorkerLost where no cluster answers.
    """
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is not None:
        _require_cluster(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError) as error:
        where = address or "this machine"
        raise WorkerLost(
            f"the Ray cluster at {where} cannot be joined: {error}; this machine must be one of its nodes: "
            f"`ray start --address={address or 'HEAD:6379'}`"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def units(resource: str) -> int:
    """What the cluster's nodes have of a resource together, in use or not."""
    return int(ray.cluster_resources().get(resource, 0))


def shortage(wanted: dict[str, int]) -> str:
    """Why no actor may have been started, in numbers."""
    needs = " and ".join(f"{count} {name}" for name, count in wanted.items() if count)
    nodes = sum(1 for node in ray.nodes() if node["Alive"])
    free = ray.available_resources()
    has = ", ".join(f"{free.get(name, 0):g} of {units(name)} {name} free" for name in wanted)
    return (
        f"each worker needs {needs}, and the cluster has {nodes} nodes with {has}; add a node with `ray start`, or "
        "raise WARPSMITH_RAY_WAIT_S where nodes take longer"
    )


def _require_cluster(address: str) -> None:
    """Ray itself would try for minutes, and end the process."""
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdigit():
        raise BadInput(
            f"Ray address {address!r} is not host:port; give the head node's, such as 10.0.0.1:6379"
        )
    try:
        socket.create_connection((host, int(port)), timeout=REACH_S).close()
    except OSError as error:
        raise WorkerLost(f"no Ray cluster answers at {address}: {error}; {_REMEDY}") from error
    command = [sys.executable, "-m", "ray.scripts.scripts", "status", "--address", address]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise WorkerLost(f"what listens at {address} is no Ray cluster; {_REMEDY}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().rpartition("\n")[2]
        raise WorkerLost(f"the Ray cluster at {address} does not answer: {said}; {_REMEDY}")
