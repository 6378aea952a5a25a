"""Static findings on a Program's CUDA source before it reaches a compiler or a device.

Severe: text that reaches outside the kernel (files, host code, hidden names), keeps state between calls, or reads a
clock; and what is certainly wrong at the problem's sizes. Warnings: what often is a race, an out-of-bounds store, slow
access or an overflow. This is a first sieve with good error messages, not the proof: the compiler refuses file access
by itself, the sanitizer and the oracle judge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tools.binding import BoundPlan
from tools.clang_tidy import analyse
from tools.lint_access import access_findings
from tools.lint_barrier import barrier_findings
from tools.lint_conditionals import compiled_text
from tools.lint_environment import environment_findings
from tools.lint_findings import LintFinding
from tools.lint_sizes import launches_of
from tools.lint_state import state_findings
from tools.lint_text import text_findings
from tools.nvrtc_source import MAX_SOURCE_CHARS, splice
from tools.nvrtc_syntax import depth_of, expand_macros, parse_cuda
from tools.signature import kernel_signatures

_MAX_DEPTH = 250

__all__ = ["LintFinding", "Linted", "lint", "lint_plan", "lint_whole"]


@dataclass(frozen=True)
class Linted:
    """What static analysis says about a plan."""

    findings: tuple[LintFinding, ...]
    lasting: bool = True
    """False where the machine kept clang-tidy from an answer, so that it may have one next time."""


def lint_plan(plan: BoundPlan) -> tuple[LintFinding, ...]:
    """All that static analysis says about a plan: the lints at its own sizes, then clang-tidy where it is installed."""
    return lint_whole(plan).findings


def lint_whole(plan: BoundPlan) -> Linted:
    """The same, for who keeps it.

    clang-tidy is not asked about a source that has severe findings already: it must not see what reaches outside.
    """
    found = lint(plan.source, plan.entries, tuple(sorted(plan.defines.items())), plan)
    if not plan.source.strip() or any(f.severity == "severe" for f in found):
        return Linted(_ordered(found))
    analysis = analyse(plan.source, plan.defines)
    return Linted(_ordered((*found, *analysis.findings)), analysis.lasting)


def lint(
    source: str,
    entries: tuple[str, ...] = (),
    defines: tuple[tuple[str, str], ...] = (),
    plan: BoundPlan | None = None,
) -> tuple[LintFinding, ...]:
    """Every finding of our own rules, severe ones first, then by line. `entries` are the kernels the plan launches.

    With the plan bound to a problem, indices are judged at its launches and sizes; without it by their look.
    """
    if len(source) > MAX_SOURCE_CHARS:
        return (_too_large(f"{len(source)} characters, more than {MAX_SOURCE_CHARS}"),)
    source = splice(source)
    root = parse_cuda(expand_macros(source, defines))
    if depth_of(root) > _MAX_DEPTH:
        return (_too_large(f"code nested deeper than {_MAX_DEPTH} levels"),)
    compiled = compiled_text(source, defines)
    taken = parse_cuda(expand_macros(compiled, defines)) if compiled != source else root
    launches = launches_of(plan, kernel_signatures(compiled, defines)) if plan is not None else {}
    found = [
        *text_findings(source),
        *environment_findings(source, defines),
        *state_findings(root, source),
        *_entry_findings(source, entries, defines),
        *barrier_findings(taken),
        *access_findings(taken, launches),
    ]
    return _ordered(found)


def _ordered(found: Iterable[LintFinding]) -> tuple[LintFinding, ...]:
    unique = dict.fromkeys(found)
    return tuple(sorted(unique, key=lambda f: (f.severity != "severe", f.line or 0, f.rule)))


def _too_large(what: str) -> LintFinding:
    return LintFinding("too-large", "severe", None, f"the source has {what}", "write a smaller kernel")


def _entry_findings(
    source: str, entries: tuple[str, ...], defines: tuple[tuple[str, str], ...]
) -> list[LintFinding]:
    kernels = kernel_signatures(source, defines)
    found: list[LintFinding] = []
    for entry in entries:
        signature = kernels.get(entry)
        if signature is None or not signature.defined:
            known = ", ".join(n for n, s in kernels.items() if s.defined) or "none"
            message = f"the plan launches {entry!r}, but the source defines no such kernel (defined: {known})"
            remedy = f'define `extern "C" __global__ void {entry}(...)` or launch one of the defined kernels'
            found.append(LintFinding("entry-not-found", "severe", None, message, remedy))
        elif signature.template:
            message = f"entry {entry!r} is a template: the plan can only launch a plain kernel"
            remedy = (
                'instantiate it from an `extern "C" __global__` kernel, with tunables as template arguments'
            )
            found.append(LintFinding("entry-is-template", "severe", signature.line, message, remedy))
        elif not signature.extern_c:
            message = f"entry {entry!r} has no C linkage, so the cubin holds it under a mangled name"
            found.append(
                LintFinding(
                    "entry-not-extern-c",
                    "warning",
                    signature.line,
                    message,
                    'put `extern "C"` before `__global__`',
                )
            )
    return found
