"""Exceptions: our fault, the machine's, or the user's input. A failing candidate is data, never one of these.

WarpsmithError
├── BadInput            the user's target, option or file cannot be used   -> exit code 2
│   └── CaptureFailed   the module could not be turned into a Problem
├── ToolMissing         a compiler, library or driver is not installed     -> exit code 1
├── WorkerLost          a worker process died more often than it may       -> exit code 1
├── DiskFull            a file could not grow; the run is paused           -> exit code 4
├── StoreError          the run store is damaged, locked or of another version
└── ArchiveError        the innovation archive is damaged or unreachable
"""


class WarpsmithError(Exception):
    """Base of everything Warpsmith raises on purpose; the message says what, which value and what to do."""

    exit_code = 1


class BadInput(WarpsmithError):
    """What the user gave cannot be used; the message names the file, the line where known, and the remedy."""

    exit_code = 2


class CaptureFailed(BadInput):
    """The user's module could not be captured as a Problem."""


class ToolMissing(WarpsmithError):
    """A compiler, library or driver is absent; the message says what to install."""


class WorkerLost(WarpsmithError):
    """A worker process died and could not be replaced; carries the candidate and the stage in its message."""


class DiskFull(WarpsmithError):
    """A file could not grow (memory.disk); a run is paused by it and goes on once there is room."""

    exit_code = 4


class StoreError(WarpsmithError):
    """The run store is damaged, locked by another process, or written by another schema version."""


class ArchiveError(WarpsmithError):
    """The innovation archive is damaged, locked or unreachable."""


class OutOfDeviceMemory(WarpsmithError):
    """A trial does not fit the GPU's memory."""
