"""The five agents as ports. Each is played by rules (agents.rules) or, where one is configured, a language model.

A port speaks records. An agent never touches a device, the store or the graph; it may be wrong, and the verifier
judges what it makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from agents.schemas import (
    Briefing,
    CoderTask,
    Critique,
    Draft,
    Member,
    Proposal,
    Reading,
    RepairRequest,
    Scene,
)
from memory.records import Evaluation


class Planner(Protocol):
    """Decides what to try."""

    def plan(self, briefing: Briefing, rng: Random) -> Sequence[Proposal]:
        """Up to `briefing.slots` proposals, each with one bottleneck and one idea; empty where none is left."""
        ...


class Coder(Protocol):
    """Writes programs."""

    def write(self, task: CoderTask) -> Draft | None:
        """A program for one proposal; None where none could be had (no model answered, or only repetitions)."""
        ...


class Compiler(Protocol):
    """Turns a failing verdict into a repair request, and has the program mended."""

    def review(self, evaluation: Evaluation, attempt: int) -> RepairRequest | None:
        """What to mend before attempt number `attempt`; None where the program passed or is given up."""
        ...

    def mend(self, task: CoderTask, draft: Draft, request: RepairRequest) -> Draft | None:
        """The program mended as asked; None where this compiler cannot."""
        ...


class Profiler(Protocol):
    """Names the bottleneck of a passed candidate."""

    def read(self, member: Member, scene: Scene) -> Reading:
        """The bottleneck with its numbers, and what could relieve it."""
        ...


class Critic(Protocol):
    """Judges a generation."""

    def critique(
        self, generation: Sequence[Member], population: Sequence[Member], stagnation: int, scene: Scene
    ) -> Critique:
        """Lessons, suspicious wins and whether to stop.

        generation: every evaluated candidate of the generation; population: survivors so far, best first;
        stagnation: generations in a row without a gain.
        """
        ...


@dataclass(frozen=True)
class Team:
    """The agents of a run."""

    planner: Planner
    coder: Coder
    compiler: Compiler
    profiler: Profiler
    critic: Critic
