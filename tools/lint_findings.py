"""What a lint rule returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class LintFinding:
    """One finding. `severe` stops the candidate before the compiler; `warning` is advice for its author."""

    rule: str
    severity: Literal["severe", "warning"]
    line: int | None
    """1-based line of the source; None for a finding about the whole of it."""
    message: str
    remedy: str
