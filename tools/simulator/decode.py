"""From the runner's text to a SimReport: names for numbers, source lines for program counters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from tools.simulator.arena import Arena
from tools.simulator.compiler import HostLibrary
from tools.simulator.launch import Launch
from tools.simulator.metrics import kernel_metrics
from tools.simulator.report import Finding, FindingKind, KernelMetrics, RunStatus, Severity, SimReport
from tools.simulator.source import FILE_NAME
from tools.simulator.toolchain import run_command

_KINDS = tuple(FindingKind)  # the order of channel.h's enum Kind
_STATUSES = {
    "ok": RunStatus.OK,
    "crashed": RunStatus.CRASHED,
    "timed_out": RunStatus.TIMED_OUT,
    "out_of_memory": RunStatus.OUT_OF_MEMORY,
    "bad_launch": RunStatus.BAD_LAUNCH,
    "aborted": RunStatus.FINDINGS,
}
_FINDING_NUMBERS = 16
_DYNAMIC_SHARED = -2
_FIRST_STATIC_SHARED = -3


@dataclass(frozen=True)
class RunContext:
    """What is needed to name the numbers of a report."""

    library: HostLibrary
    launches: tuple[Launch, ...]
    arena: Arena
    plain: bool
    timeout_s: float
    wall_s: float


@dataclass(frozen=True)
class RawFinding:
    """A finding as the runner wrote it; see FindingRecord in channel.h."""

    numbers: tuple[int, ...]
    text: str


@dataclass
class RawReport:
    """The report's lines, sorted by kind."""

    status: str = ""
    ended: tuple[int, ...] = (0, 0, 0)
    message: str = ""
    text: str = ""
    complete: bool = False
    findings: list[RawFinding] = field(default_factory=list)
    counters: dict[int, list[float]] = field(default_factory=dict)
    traffic: dict[int, dict[int, list[float]]] = field(default_factory=dict)
    executions: dict[int, dict[int, int]] = field(default_factory=dict)


def decode_report(text: str, context: RunContext) -> SimReport:
    """Build the report. An incomplete text means that the whole run had to be killed."""
    raw = _parse(text)
    if not raw.complete:
        late = context.wall_s >= context.timeout_s
        status = RunStatus.TIMED_OUT if late else RunStatus.CRASHED
        return SimReport(status, (), (), "the runner ended without a report", "", context.wall_s)
    lines = _source_lines(
        context.library, [raw.ended[2], *(pc for f in raw.findings for pc in (f.numbers[4], f.numbers[15]))]
    )
    findings = [_finding(f, context, lines) for f in raw.findings]
    findings += _margin_findings(context)
    status = _STATUSES.get(raw.status, RunStatus.CRASHED)
    if status in (RunStatus.OK, RunStatus.FINDINGS):
        wrong = any(f.severity is Severity.ERROR for f in findings)
        status = RunStatus.FINDINGS if wrong or status is RunStatus.FINDINGS else RunStatus.OK
    message = _message(status, raw, findings, context, lines)
    return SimReport(status, tuple(findings), _metrics(raw, context), message, raw.text, context.wall_s)


def _parse(text: str) -> RawReport:
    raw = RawReport()
    for line in text.splitlines():
        key, _, rest = line.partition(" ")
        if key == "status":
            raw.status = rest
        elif key == "ended":
            raw.ended = tuple(int(v) for v in rest.split())
        elif key == "message":
            raw.message = rest
        elif key == "text":
            raw.text = rest
        elif key == "finding":
            fields = rest.split(" ", _FINDING_NUMBERS)
            raw.findings.append(RawFinding(tuple(int(v) for v in fields[:-1]), fields[-1]))
        elif key == "counters":
            launch, *values = rest.split()
            raw.counters[int(launch)] = [float(v) for v in values]
        elif key == "traffic":
            launch, buffer, *sectors = rest.split()
            raw.traffic.setdefault(int(launch), {})[int(buffer)] = [float(v) for v in sectors]
        elif key == "executions":
            launch, *pairs = rest.split()
            raw.executions[int(launch)] = {int(a): int(b) for a, b in (p.split(":") for p in pairs)}
        elif key == "end":
            raw.complete = True
    return raw


def _source_lines(library: HostLibrary, counters: Iterable[int]) -> dict[int, int]:
    """User source line of each library offset: the innermost inlined frame that lies in the user's text."""
    wanted = sorted({pc for pc in counters if pc})
    if not wanted:
        return {}
    # A return address belongs to the instruction before it.
    command = ["addr2line", "-a", "-i", "-e", str(library.path), *(hex(max(pc - 1, 0)) for pc in wanted)]
    output = run_command(command, timeout_s=20, confined=False).stdout
    found: dict[int, int] = {}
    current = 0
    for line in output.splitlines():
        if line.startswith("0x"):
            current = int(line, 16) + 1
        elif (match := re.match(rf"(?:.*/)?{re.escape(FILE_NAME)}:(\d+)", line)) and current not in found:
            found[current] = int(match[1])
    return {pc: line for pc, line in found.items() if line > 0}


def _finding(raw: RawFinding, context: RunContext, lines: dict[int, int]) -> Finding:
    kind, severity, launch, line, pc, buffer, access_bytes, offset, *rest = raw.numbers
    name, element_bytes = _place(buffer, context)
    index: int | None = None
    if name is not None:
        index = offset // (element_bytes or access_bytes or 1)
    block = (rest[0], rest[1], rest[2])
    thread = (rest[3], rest[4], rest[5])
    other = lines.get(rest[7])
    kernel = context.launches[launch].entry if launch < len(context.launches) else "?"
    return Finding(
        kind=_KINDS[kind],
        severity=Severity.ERROR if severity == 0 else Severity.WARNING,
        kernel=kernel,
        line=line or lines.get(pc),
        buffer=name,
        index=index,
        block=block,
        thread=thread,
        message=f"{raw.text}; the other access is at line {other}" if other else raw.text,
    )


def _place(buffer: int, context: RunContext) -> tuple[str | None, int | None]:
    """Name and element size of what a finding's buffer number means."""
    sections = context.arena.sections()
    if 0 <= buffer < len(sections):
        return sections[buffer].name, sections[buffer].element_bytes
    if buffer == _DYNAMIC_SHARED:
        return "dynamic shared memory", None
    variable = _FIRST_STATIC_SHARED - buffer
    if 0 <= variable < len(context.library.shared):
        return context.library.shared[variable].name, None
    return None, None


def _margin_findings(context: RunContext) -> list[Finding]:
    """Writes that landed beside a buffer but before the guard page: no line is known, the damage is."""
    found: list[Finding] = []
    for section in context.arena.sections():
        offset = context.arena.overwritten_margin(section.name)
        if offset is None:
            continue
        names = sorted({launch.entry for launch in context.launches})
        found.append(
            Finding(
                kind=FindingKind.OUT_OF_BOUNDS,
                severity=Severity.ERROR,
                kernel=", ".join(names),
                line=None,
                buffer=section.name,
                index=offset // (section.element_bytes or 1),
                block=(0, 0, 0),
                thread=(0, 0, 0),
                message=f"write at byte {offset} of a buffer of {section.nbytes} bytes, seen after the run",
            )
        )
    return found


def _message(
    status: RunStatus, raw: RawReport, findings: list[Finding], context: RunContext, lines: dict[int, int]
) -> str:
    if status is RunStatus.OK:
        return ""
    launch, _, pc = raw.ended[0], raw.ended[1], raw.ended[2]
    kernel = context.launches[launch].entry if launch < len(context.launches) else "?"
    where = f"{kernel}, line {lines[pc]}" if pc in lines else kernel
    if status is RunStatus.FINDINGS and findings:
        first = next((f for f in findings if f.severity is Severity.ERROR), findings[0])
        place = f", line {first.line}" if first.line else ""
        return f"{first.kind}: {first.kernel}{place}: {first.message}"
    if status is RunStatus.TIMED_OUT:
        return f"{where}: still running after {context.timeout_s:g} s"
    return f"{where}: {raw.message or 'the process ended without saying why'}"


def _metrics(raw: RawReport, context: RunContext) -> tuple[KernelMetrics, ...]:
    sizes = [section.nbytes for section in context.arena.sections()]
    return tuple(
        kernel_metrics(
            context.launches[i],
            context.library.path,
            counters,
            raw.traffic.get(i, {}),
            sizes,
            raw.executions.get(i, {}),
        )
        for i, counters in sorted(raw.counters.items())
    )
