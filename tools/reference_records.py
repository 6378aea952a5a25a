"""What passes between a Reference and its child process. Nothing here imports torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from memory.records import Problem, Record, Target
from tools.inputs import Distribution

DeviceKind = Literal["cpu", "cuda"]


class StartRequest(Record):
    """Load this target and stand ready to run it as this problem."""

    kind: Literal["start"] = "start"
    target: Target
    problem: Problem
    device: DeviceKind


class TrialRequest(Record):
    """Write one trial's files."""

    kind: Literal["trial"] = "trial"
    seed: int
    distribution: Distribution
    directory: str


ReferenceRequest: TypeAdapter[StartRequest | TrialRequest] = TypeAdapter(
    Annotated[StartRequest | TrialRequest, Field(discriminator="kind")]
)
