"""What a situation is: a program with one flaw, the verdict it gets, and the facts that a reader needs to act."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agents.endpoint import Role
from memory.records import Problem, Program, Status

SLOW = (Role.PROFILER, Role.CODER, Role.PLANNER)
"""Who is asked about a program that passed."""


@dataclass(frozen=True)
class Fact:
    """Something that must be said where the prompt tells of the verdict."""

    name: str
    pattern: str
    """Regular expression, looked for in the prompt's section on the verdict with all white space made one blank."""
    roles: tuple[Role, ...] = (Role.COMPILER,)
    """Whose prompts must say it."""

    def told_in(self, text: str) -> bool:
        """Whether the text says it."""
        return re.search(self.pattern, " ".join(text.split())) is not None


@dataclass(frozen=True)
class Situation:
    """A program with one named flaw."""

    name: str
    flaw: str
    """One sentence."""
    problem: Problem
    program: Program
    status: Status
    rule: str | None
    """Of the verdict's first finding; None where it passes without any."""
    facts: tuple[Fact, ...]
    twin: Problem | None = None
    """The problem at the shapes that trials have, where they are smaller."""

    @property
    def roles(self) -> tuple[Role, ...]:
        """Whose prompts it is judged by."""
        if self.status is Status.SUSPICIOUS:
            return ()  # nobody mends a cheat; the critic is told of it (generations)
        return SLOW if self.status is Status.PASSED else (Role.COMPILER,)
