"""The child process in which NVRTC runs: one job at a time from a socket until the socket closes.

It holds no secrets (its environment is made for it), bounds its own memory and file sizes, dumps no core, and arms a
kernel timer per job that ends it even if its parent has died. Frames are JSON plus bytes, never pickles: a
compiler brought down by hostile source cannot hand objects to its parent.

Precompiled headers: NVRTC's are tied to the process that wrote them (measured: another process refuses them), and
making one costs more than a compile. So the first compile with some includes is plain, the second makes the
header, later ones use it.
"""

from __future__ import annotations

import io
import json
import resource
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

FRAME_HEAD_BYTES = 12
_FRAME_LIMIT_BYTES = 1 << 30
_PCH_HEAP_BYTES = 1 << 30
_PCH_FOLDER_BYTES = 2 << 30
_GRACE_S = 2.0
_LOG_MARK = "compilation log:\n"
# 20283 and 630: remarks about precompiled headers that the author of the source can do nothing about.
_PCH_REMARKS = [20283, 630]


@dataclass(frozen=True)
class CompileJob:
    """What crosses to the child: composed text and plain options."""

    plain: str
    prefix: str
    precompiled: str
    arch: str
    include_dirs: tuple[str, ...]
    fast_math: bool
    fmad: bool
    max_registers: int | None


@dataclass(frozen=True)
class RawCompile:
    """What comes back: a cubin or None, and the log of NVRTC and ptxas."""

    cubin: bytes | None
    log: str


def send_frame(channel: socket.socket, head: Mapping[str, object], body: bytes = b"") -> None:
    """Write one frame: two lengths, a JSON object, bytes."""
    encoded = json.dumps(head).encode()
    channel.sendall(len(encoded).to_bytes(4, "big") + len(body).to_bytes(8, "big") + encoded + body)


def frame_lengths(head: bytes) -> tuple[int, int]:
    """The two lengths that open a frame. Raises: ValueError where they are not a frame's."""
    lengths = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")
    if sum(lengths) > _FRAME_LIMIT_BYTES:
        raise ValueError(f"frame of {sum(lengths)} bytes")
    return lengths


class PchLedger:
    """Which include prefixes this process has compiled, and where their precompiled headers lie."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen: dict[str, int] = {}

    def folder_for(self, job: CompileJob) -> Path | None:
        """A folder of its own per prefix and options, from the second time on; None means compile plainly."""
        if not job.prefix:
            return None
        key = json.dumps({**asdict(job), "plain": "", "precompiled": ""}, sort_keys=True)
        if key not in self._seen:
            self._seen[key] = len(self._seen)
            return None
        folder = self._root / f"pch{self._seen[key]}"
        if not folder.exists():
            self._make_room()
            folder.mkdir()
        return folder

    def _make_room(self) -> None:
        """A header of CUB takes 300 MB: above the bound, drop them all and start over."""
        files = list(self._root.glob("pch*/*"))
        if sum(p.stat().st_size for p in files) > _PCH_FOLDER_BYTES - _PCH_HEAP_BYTES // 2:
            for path in files:
                path.unlink()


def compile_once(job: CompileJob, ledger: PchLedger) -> RawCompile:
    """Compile in this process. A source that NVRTC refuses gives a RawCompile without a cubin."""
    folder = ledger.folder_for(job)
    if folder is None:
        return _attempt(job, job.plain, {})
    options: dict[str, object] = {"pch": True, "pch_dir": str(folder), "diag_suppress": _PCH_REMARKS}
    try:
        return _attempt(job, job.precompiled, options)
    except TypeError:
        # cuda-core 1.2 fails so when it retries after NVRTC's precompiled-header heap ran out.
        return _attempt(job, job.plain, {})


def _attempt(job: CompileJob, text: str, extra: dict[str, object]) -> RawCompile:
    from cuda.core import Program, ProgramOptions
    from cuda.core._utils.cuda_utils import NVRTCError

    options = ProgramOptions(
        name="kernel.cu",
        arch=job.arch,
        std="c++17",
        include_path=list(job.include_dirs),
        use_fast_math=job.fast_math,
        fma=job.fmad,
        max_register_count=job.max_registers,
        ptxas_options=["-v"],
        # NVRTC 13.0 answers a text it has seen from a cache of its own, and then without ptxas' report.
        no_cache=True,
        **extra,
    )
    log = io.StringIO()
    try:
        program = Program(text, "c++", options)
        try:
            cubin = bytes(program.compile("cubin", logs=log).code)
        finally:
            program.close()
    except NVRTCError as error:
        return RawCompile(None, str(error).partition(_LOG_MARK)[2] or str(error))
    return RawCompile(cubin, log.getvalue())


def serve(channel: socket.socket, root: Path, retire_bytes: int) -> None:
    """Answer jobs until the other end closes.

    An answer asks to be the last one after memory ran out or grew beyond `retire_bytes`: what a hostile source left
    behind must not fail the next, innocent one.
    """
    reader = channel.makefile("rb")
    ledger = PchLedger(root)
    send_frame(channel, {"ready": True})
    while head := reader.read(FRAME_HEAD_BYTES):
        length, _ = frame_lengths(head)
        request = json.loads(reader.read(length))
        timeout_s = float(request.pop("timeout_s"))
        job = CompileJob(**{**request, "include_dirs": tuple(request["include_dirs"])})
        # The default action of SIGALRM ends the process inside any C++ loop, parent or no parent.
        signal.setitimer(signal.ITIMER_REAL, timeout_s + _GRACE_S)
        raw = compile_once(job, ledger)
        signal.setitimer(signal.ITIMER_REAL, 0)
        peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        retire = peak_bytes > retire_bytes or "out of memory" in raw.log
        answer = {"ok": raw.cubin is not None, "log": raw.log, "retire": retire}
        send_frame(channel, answer, raw.cubin or b"")


def main() -> None:
    """Entry point: `python -m tools.nvrtc_child SOCKET_FD FOLDER MEMORY_BYTES`."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    root, memory_bytes = Path(sys.argv[2]), int(sys.argv[3])
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        from cuda.bindings import nvrtc
        from cuda.core import Program  # noqa: F401  (imported now so that the first compile is a warm one)
    except ImportError as error:
        send_frame(channel, {"ready": False, "why": str(error)})
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_PCH_FOLDER_BYTES, _PCH_FOLDER_BYTES))
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    nvrtc.nvrtcSetPCHHeapSize(_PCH_HEAP_BYTES)
    serve(channel, root, memory_bytes // 2)


if __name__ == "__main__":
    main()
