"""All situations, by name. Each kind has its file: refused, wrong, slow."""

from __future__ import annotations

from benchmarks.agents import refused, slow, wrong
from benchmarks.agents.situation import Situation

SITUATIONS: dict[str, Situation] = {
    situation.name: situation
    for situation in (
        *refused.PLAN, *refused.TEXT, *refused.SANITIZED, *wrong.SITUATIONS, *slow.SITUATIONS, *slow.SUSPECTED,
    )
}  # fmt: skip
