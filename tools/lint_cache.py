"""Findings on disk, shared by any number of processes: what compiles ahead lints ahead, and the device's worker reads.

Here: the key, and findings as bytes; the files are tools.entry_cache's. Kept are the findings of a whole plan, our own
rules' and clang-tidy's, for both take longer than a small kernel's run.
Covers: another source, other sizes, another version of our rules, of the parser or of clang-tidy: all are in the key.
What the machine prevented (clang-tidy overran or died) is found again next time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path

from tools.binding import BoundKernel, BoundPlan, BoundScalar
from tools.clang_tidy import clang_tidy_version
from tools.entry_cache import EntryCache
from tools.lint import Linted, lint_whole
from tools.lint_findings import LintFinding

SCHEMA_VERSION = 1
"""Raise it whenever the form of an entry changes."""
MAX_BYTES = 64 << 20
"""An entry takes a few hundred bytes."""

_MAGIC = b"warpsmith-lint\n"


def lint_key(plan: BoundPlan) -> str:
    """Digest of all that findings depend on: the text, its macros, the launches and their tensors, and the rules."""
    fields = [SCHEMA_VERSION, rules_fingerprint(), clang_tidy_version(), plan.source]
    fields += [plan.entries, sorted(plan.defines.items()), _launches(plan)]
    return hashlib.sha256(json.dumps(fields).encode()).hexdigest()


@cache
def rules_fingerprint() -> str:
    """Of everything in this package, which is more than the rules and forgets none, and of the parser behind them."""
    digest = hashlib.sha256(repr((sys.version_info[:2], version("tree-sitter"))).encode())
    digest.update(version("tree-sitter-cuda").encode())
    folder = Path(__file__).parent
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".py", ".h")):
        digest.update(f"\0{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


class LintCache:
    """A bounded directory of findings; those that are not there are found and kept."""

    def __init__(
        self, root: Path, *, max_bytes: int = MAX_BYTES, lint: Callable[[BoundPlan], Linted] = lint_whole
    ) -> None:
        """lint: finds what is not there. Raises: BadInput if `root` cannot be created."""
        self._lint = lint
        self._entries = EntryCache(root / f"lint-v{SCHEMA_VERSION}", magic=_MAGIC, max_bytes=max_bytes)

    def findings(self, plan: BoundPlan) -> tuple[LintFinding, ...]:
        """What `tools.lint.lint_plan` says of the plan."""
        key = lint_key(plan)
        content = self._entries.load(key)
        if content is not None:
            return tuple(LintFinding(**record) for record in json.loads(content))
        linted = self._lint(plan)
        if linted.lasting:
            records = [dataclasses.asdict(finding) for finding in linted.findings]
            self._entries.store(key, json.dumps(records).encode())
        return linted.findings


def _launches(plan: BoundPlan) -> list[object]:
    """Every different kernel step, in order: an unrolled network has thousands of equal ones."""
    steps = (step for step in (*plan.prepare, *plan.steps) if isinstance(step, BoundKernel))
    return [
        [step.entry, step.grid, step.block, step.shared_bytes, [_argument(a, plan) for a in step.args]]
        for step in dict.fromkeys(steps)
    ]


def _argument(argument: str | BoundScalar, plan: BoundPlan) -> list[object]:
    if isinstance(argument, BoundScalar):
        return [argument.ctype, repr(argument.value)]
    if argument not in plan.given and argument not in plan.buffers:
        return [argument]
    spec = plan.spec(argument)
    return [argument, spec.dtype, spec.shape, spec.strides]
