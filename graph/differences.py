"""What changed from one program to another: source, tunables, launch plan. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import unified_diff

from memory.records import Program

CONTEXT_LINES = 3


@dataclass(frozen=True)
class Difference:
    """From `before` to `after`."""

    source: str
    """Unified diff; empty where the sources are equal."""
    tunables: tuple[tuple[str, int | None, int | None], ...]
    """(name, before, after) where the values differ; None where a program lacks it."""
    plan: str
    """Unified diff of everything else of the plan, as JSON; empty where it is equal."""

    @property
    def nothing(self) -> bool:
        """True where the programs are the same."""
        return not (self.source or self.tunables or self.plan)


def difference(before: Program, after: Program, *, names: tuple[str, str]) -> Difference:
    """names: what to call the two."""
    old, new = before.tunable_values(), after.tunable_values()
    return Difference(
        source=text_diff(before.source, after.source, names=names),
        tunables=tuple(
            (name, old.get(name), new.get(name))
            for name in dict.fromkeys((*old, *new))
            if old.get(name) != new.get(name)
        ),
        plan=text_diff(_plan(before), _plan(after), names=names),
    )


def text_diff(before: str, after: str, *, names: tuple[str, str]) -> str:
    """Unified; empty where the texts are equal."""
    lines = unified_diff(before.splitlines(), after.splitlines(), *names, n=CONTEXT_LINES, lineterm="")
    return "\n".join(lines)


def _plan(program: Program) -> str:
    plan = program.model_dump(mode="json", exclude={"source"})
    plan["tunables"] = {tunable.name: list(tunable.choices) for tunable in program.tunables}
    return json.dumps(plan, indent=1)
