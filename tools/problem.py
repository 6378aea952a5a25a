"""Capture: a user's target becomes a Problem, in a child process with a deadline.

Here: the parent's side. Not here: parsing (tools.target), what the child does (tools.capture_child).
Covers: a file that prints, forks, exits, raises, hangs, crashes or fills memory ends as one clear message, with
everything it started killed. Does not cover: what the file does with the user's own rights meanwhile (files,
network), or a file hostile enough to forge its own result; see tools.child.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memory.records import Problem, Target
from tools.capture_records import CaptureReply, CaptureRequest
from tools.child import Child, Failure, Limits, Lost, error_of
from tools.target import parse_target

__all__ = ["Captured", "Watch", "capture", "parse_target"]

Watch = Callable[[Child], None]


@dataclass(frozen=True)
class Captured:
    """A problem and, where one was asked for and needed, its smaller twin for the simulator."""

    problem: Problem
    reduced: Problem | None


def capture(
    target: Target,
    *,
    deadline_s: float = 120.0,
    reduce_above: int | None = None,
    limits: Limits | None = None,
    watch: Watch | None = None,
) -> Captured:
    """Capture the target's forward as a graph of ATen operations.

    reduce_above: elements over all inputs and outputs above which a smaller twin is made; its weights keep their
    shapes and its operations are the same. watch: is given the child, which another thread may cancel.
    Raises: BadInput where the file lacks what is needed; CaptureFailed where its code raises, hangs, dies or does
    what a fixed graph cannot say.
    """
    request = CaptureRequest(target=target, reduce_above=reduce_above).model_dump_json().encode()
    with Child("capture_child", limits or Limits()) as child:
        if watch is not None:
            watch(child)
        outcome = child.ask(request, deadline_s=deadline_s)
    if isinstance(outcome, Failure | Lost):
        raise error_of(outcome, target.path)
    reply = CaptureReply.model_validate_json(outcome)
    return Captured(reply.problem, reply.reduced)
