"""What passes between a capture and its child process. Nothing here imports torch."""

from __future__ import annotations

from memory.records import Problem, Record, Target


class CaptureRequest(Record):
    """What to capture, and above how many elements a twin is wanted."""

    target: Target
    reduce_above: int | None = None


class CaptureReply(Record):
    """The problem and its smaller twin, if one was wanted and found."""

    problem: Problem
    reduced: Problem | None = None
