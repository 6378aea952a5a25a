"""Faults that every device reports in the same words."""

from __future__ import annotations

from memory.records import Diagnostic, Stage, Status
from tools.devices.port import Fault


def fault(status: Status, stage: Stage, rule: str, message: str) -> Fault:
    """A fault with one diagnostic."""
    return Fault(status, (Diagnostic(stage=stage, rule=rule, message=message),))


def modified(names: list[str]) -> Fault:
    """Inputs or state that the program wrote to."""
    message = f"the program changed {', '.join(names)}, which it may only read"
    return fault(Status.INCORRECT, Stage.CORRECTNESS, "input_modified", message)


def garbled(names: list[str]) -> Fault:
    """Boolean results with bytes other than 0 and 1."""
    message = f"boolean {', '.join(names)} holds bytes other than 0 and 1: not written, or not as booleans"
    return fault(Status.INCORRECT, Stage.CORRECTNESS, "wrong_values", message)
