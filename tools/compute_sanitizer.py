"""compute-sanitizer on one program: memory errors, races and reads of unwritten memory, as the GPU itself shows them.

Here: running the tool around a replay, and what counts as having checked. Not here: its report (tools.nsight_findings).
Covers: global, local and shared accesses out of bounds or misaligned, races in shared memory inside a block, reads of
global memory that nothing has written. Does not cover: accesses inside another valid tensor, races between blocks or
over global memory, uninitialised shared memory (the simulator sees that).
Invariant: fail closed. A run without a summary, without a replay that got to its end, or that lost track of a launch
has checked nothing, whatever it printed.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memory.errors import ToolMissing
from memory.records import Diagnostic, Problem, Program
from tools.binding import BoundPlan, bind
from tools.nsight_findings import Finding, SanitizerTool, parse_log
from tools.nsight_process import COMPUTE_SANITIZER, Tool, find_tool, tool_environment
from tools.replay import Place, Replayed, Subject, replay_under

TOOLS: tuple[SanitizerTool, ...] = ("memcheck", "racecheck", "initcheck")
"""In this order: what comes after a memory error means little."""
ERROR_EXIT_CODE = 86
_PADDING_BYTES = 4096
"""Between allocations, so that an access past the end of one does not hit the next."""
_PRINT_LIMIT = 40
_POOL_SETTINGS = frozenset(("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"))

UncheckedReason = Literal[
    "no_gpu", "no_tool", "not_supported", "not_attached", "timed_out", "incomplete", "failed"
]
_LOST: dict[SanitizerTool, str] = {
    "memcheck": "reads out of bounds go unnoticed here; guard zones find writes within 4 KiB of a tensor",
    "racecheck": "shared-memory races go unnoticed here unless they change a result",
    "initcheck": "reads of unwritten memory show only as results that differ between two poisons",
}
_OPTIONS: dict[SanitizerTool, tuple[str, ...]] = {
    "memcheck": ("--padding", str(_PADDING_BYTES), "--report-api-errors", "no"),
    "racecheck": (),
    "initcheck": (),
}


@dataclass(frozen=True)
class Checked:
    """One tool ran over the whole program."""

    tool: SanitizerTool
    diagnostics: tuple[Diagnostic, ...]
    """Severe where it is an error in the Program's own kernels."""
    seconds: float


@dataclass(frozen=True)
class Unchecked:
    """One tool did not."""

    tool: SanitizerTool
    reason: UncheckedReason
    message: str
    """What is missing and what is lost by it."""


@dataclass(frozen=True)
class Sanitized:
    """What the tools say of a program."""

    outcomes: tuple[Checked | Unchecked, ...]
    """In the order of TOOLS; those after a tool that found an error are left out."""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything found."""
        return tuple(d for o in self.outcomes if isinstance(o, Checked) for d in o.diagnostics)

    @property
    def faults(self) -> tuple[Diagnostic, ...]:
        """What a program must not do; empty does not mean clean, see `clean`."""
        return tuple(d for d in self.diagnostics if d.severe)

    @property
    def unchecked(self) -> tuple[Unchecked, ...]:
        """Tools that could not say anything."""
        return tuple(o for o in self.outcomes if isinstance(o, Unchecked))

    @property
    def clean(self) -> bool:
        """True where every tool ran to its end and none found an error."""
        ran = {o.tool for o in self.outcomes if isinstance(o, Checked)}
        return ran == set(TOOLS) and not self.faults


@dataclass(frozen=True)
class SanitizerLimits:
    """How the tools are run."""

    deadline_s: float = 180.0
    """Wall seconds for each."""
    tools: tuple[SanitizerTool, ...] = TOOLS
    tool: Tool = COMPUTE_SANITIZER
    environ: Mapping[str, str] | None = None
    """None: the process' own."""


def sanitize_finalist(
    program: Program,
    problem: Problem,
    trial_dir: Path | None,
    spec: Place,
    limits: SanitizerLimits | None = None,
) -> Sanitized:
    """Run memcheck, racecheck and initcheck over one forward of a program on the worker's GPU.

    Programs run 10 to 100 times slower under them: give the reduced twin where there is one.
    trial_dir: a trial whose inputs and weights are used; None draws them.
    Raises: BindError for a program that does not fit the problem, as no verified one does.
    """
    limits = limits or SanitizerLimits()
    plan = bind(program, problem)
    if spec.device.kind != "cuda":
        return _none(limits, "no_gpu", f"{spec.device.name} is no GPU")
    try:
        executable = find_tool(limits.tool, limits.environ)
    except ToolMissing as error:
        return _none(limits, "no_tool", str(error))
    subject = Subject(program, problem, trial_dir, spec.device, spec.cache_dir)
    outcomes: list[Checked | Unchecked] = []
    for tool in limits.tools:
        outcomes.append(_check(executable, tool, plan, subject, limits))
        if Sanitized(tuple(outcomes)).faults:
            break
    return Sanitized(tuple(outcomes))


def _check(
    executable: Path, tool: SanitizerTool, plan: BoundPlan, subject: Subject, limits: SanitizerLimits
) -> Checked | Unchecked:
    with tempfile.TemporaryDirectory(prefix=f"warpsmith-{tool}-") as scratch:
        folder = Path(scratch)
        replayed = replay_under(
            [str(executable), *_command(tool, plan, folder, limits)],
            subject,
            purpose="check",
            environment=_environment(limits),
            deadline_s=limits.deadline_s,
            folder=folder,
        )
        log = folder / "log.txt"
        text = log.read_text(errors="replace") if log.exists() else ""
    return _judge(tool, plan, replayed, f"{text}\n{replayed.ended.output}")


def _environment(limits: SanitizerLimits) -> dict[str, str]:
    """Without a pool of its own torch asks the driver for each tensor, so the tool knows where each one ends."""
    inherited = tool_environment(limits.environ, PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    return {name: value for name, value in inherited.items() if name not in _POOL_SETTINGS}


def _command(tool: SanitizerTool, plan: BoundPlan, folder: Path, limits: SanitizerLimits) -> Sequence[str]:
    options = {
        "--tool": tool,
        "--error-exitcode": str(ERROR_EXIT_CODE),
        # Percent signs begin escapes in its file names.
        "--log-file": str(folder / "log.txt").replace("%", "%%"),
        "--print-limit": str(_PRINT_LIMIT),
        "--show-backtrace": "no",
        "--target-processes": "application-only",
        # Importing torch takes longer than the tool waits by itself.
        "--launch-timeout": str(int(limits.deadline_s) + 1),
    }
    words = [word for pair in options.items() for word in pair] + [*_OPTIONS[tool]]
    # Unwritten memory: what other kernels write must be seen too, so that tool watches all of them.
    watched = () if tool == "initcheck" else plan.entries
    return [*words, *(word for entry in watched for word in ("--kernel-name", f"kernel_name={entry}"))]


def _judge(tool: SanitizerTool, plan: BoundPlan, replayed: Replayed, text: str) -> Checked | Unchecked:
    """Findings count, however the run ended; silence counts only where the run was whole."""
    log = parse_log(text, tool)
    found = tuple(f.diagnostic(severe=f.certain and _ours(f, plan)) for f in log.findings)
    if any(diagnostic.severe for diagnostic in found):
        return Checked(tool, found, replayed.ended.seconds)
    if replayed.ended.returncode is None:
        return _unchecked(
            tool, "timed_out", f"it was not done after {replayed.ended.seconds:.0f} s and was ended"
        )
    said = " ".join(log.troubles)
    if "Device not supported" in text or "not supported by the driver" in text:
        return _unchecked(tool, "not_supported", "it does not support this device or driver")
    if replayed.report is None and ("before first instrumented" in said or "No attachable process" in said):
        return _unchecked(tool, "not_attached", f"it could not attach to the program: {said[:300]}")
    if replayed.failure is not None:
        return _unchecked(tool, "failed", f"the program did not run to its end: {replayed.failure}")
    if log.errors is None or log.troubles:
        return _unchecked(tool, "incomplete", f"it lost track of the run: {said[:300] or 'no summary'}")
    if log.errors and not found:
        return _unchecked(tool, "incomplete", f"it counts {log.errors} errors in a form not understood")
    return Checked(tool, found, replayed.ended.seconds)


def _ours(finding: Finding, plan: BoundPlan) -> bool:
    """True for the Program's own code: an entry, or a device function of its source.

    A bad access at an unknown place is taken for ours; a report that is not understood only where it names our code.
    """
    name = finding.kernel
    if name is None:
        return finding.kind != "sanitizer"
    return name in plan.entries or re.search(rf"\b{re.escape(name)}\b", plan.source) is not None


def _none(limits: SanitizerLimits, reason: UncheckedReason, message: str) -> Sanitized:
    return Sanitized(tuple(_unchecked(tool, reason, message) for tool in limits.tools))


def _unchecked(tool: SanitizerTool, reason: UncheckedReason, message: str) -> Unchecked:
    return Unchecked(tool, reason, f"compute-sanitizer {tool} did not check: {message}; {_LOST[tool]}")
