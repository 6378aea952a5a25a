"""What runs first inside a child: limits, then a loop of requests to one handler module.

Here: the child's end of tools.child. Not here: any particular request (tools.capture_child,
tools.reference_child). A handler module offers `make(progress) -> Handler`.
Invariant: limits are set before anything of the user's is imported; only the process that was spawned answers,
so a module that forks cannot answer twice.
"""

from __future__ import annotations

import importlib
import os
import resource
import signal
import socket
import traceback
from collections.abc import Callable
from typing import Protocol

from memory.errors import BadInput, CaptureFailed, DiskFull
from tools.child import ANSWER, FAILURE, PROGRESS, REPLY, REQUEST, Failure

Progress = Callable[[str], None]
"""Tells the parent what is going on, as a participle: `running get_inputs()`."""


class Handler(Protocol):
    """Answers requests; BadInput, CaptureFailed and DiskFull become Failures, anything else ends the child."""

    def handle(self, request: bytes) -> bytes:
        """The answer to one request."""
        ...


def main(arguments: list[str]) -> None:
    """Serve until the parent closes the channel: handler, channel's fd, memory, file bytes, threads."""
    name, fd, memory_bytes, file_bytes, threads = arguments[0], *map(int, arguments[1:])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Private data rather than address space: a GPU build of torch maps far more than it uses.
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    channel = socket.socket(fileno=fd)
    channel.set_inheritable(False)
    if threads:
        import torch

        torch.set_num_threads(threads)
    _Loop(channel).serve(name)


class _Loop:
    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._owner = os.getpid()

    def serve(self, name: str) -> None:
        self._send(PROGRESS, b"importing torch")
        handler: Handler = importlib.import_module(f"tools.{name}").make(self._progress)
        while (head := self._read(REQUEST.size)) is not None:
            count, alarm_s = REQUEST.unpack(head)
            request = self._read(count)
            if request is None:
                return
            # Ends us in native code too, should the parent be gone and unable to.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(alarm_s)
            self._answer(handler, request)
            signal.alarm(0)

    def _answer(self, handler: Handler, request: bytes) -> None:
        try:
            self._send(ANSWER, handler.handle(request))
        except CaptureFailed as error:
            self._fail("capture", str(error))
        except BadInput as error:
            self._fail("bad_input", str(error))
        except DiskFull as error:
            self._fail("disk_full", str(error))
        except BaseException:
            self._fail("internal", traceback.format_exc()[-4000:])
            raise

    def _fail(self, kind: str, message: str) -> None:
        self._send(
            FAILURE, Failure.model_validate({"kind": kind, "message": message}).model_dump_json().encode()
        )

    def _progress(self, stage: str) -> None:
        self._send(PROGRESS, stage.encode())

    def _send(self, kind: bytes, body: bytes) -> None:
        if os.getpid() != self._owner:
            os._exit(0)
        self._channel.sendall(REPLY.pack(kind, len(body)) + body)

    def _read(self, count: int) -> bytes | None:
        if os.getpid() != self._owner:
            os._exit(0)
        body = bytearray()
        while len(body) < count:
            chunk = self._channel.recv(min(count - len(body), 1 << 20))
            if not chunk:
                return None
            body += chunk
        return bytes(body)
