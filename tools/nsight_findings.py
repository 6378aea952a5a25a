"""What compute-sanitizer reports, as findings with kernel, place, thread, address and size. Pure.

Here: its text (versions 2022 to 2026) and what a finding means for the verifier. Not here: running the tool
(tools.compute_sanitizer).
A report is a run of lines behind `=========`: a first line that says what happened, indented lines that say where. What
is not recognised becomes a finding of its own kind, so that nothing reported is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from memory.records import Diagnostic, Stage
from tools.nsight_csv import kernel_name

SanitizerTool = Literal["memcheck", "racecheck", "initcheck"]

MAX_FINDINGS = 12
"""Distinct places reported; what a wrong index does, it does everywhere."""
_PREFIX = re.compile(r"^=========(?: |$)")
_TRIPLE = r"\(\s*-?\d+\s*,\s*-?\d+\s*,\s*-?\d+\s*\)"
_ACCESS = re.compile(r"(?:Potential i|I)nvalid __(?P<space>\w+)__ (?P<access>.+?) of size (?P<bytes>[\d,]+)")
_UNWRITTEN = re.compile(r"Uninitialized __(?P<space>\w+)__ memory (?P<access>read) of size (?P<bytes>[\d,]+)")
_RACE = re.compile(
    r"(?P<level>Error|Warning|Warn|Info)\s*:\s*Race reported between (?P<access>\w+) access at (?P<place>.+)",
    re.IGNORECASE,
)
_OTHER_RACE = re.compile(
    r"and (?P<access>\w+) access at (?P<place>.+?)(?:\s*\[(?P<count>[\d,]+) hazards?\])?$"
)
_HAZARD = re.compile(
    r"(?P<level>Error|Warning|Warn|Info)\s*:\s*(?:\([^)]*\)\s*)?Potential (?P<access>RAW|WAR|WAW) hazard detected"
    rf".*?__shared__ (?P<address>0x[0-9a-fA-F]+)(?: in block (?P<block>{_TRIPLE}))?",
    re.IGNORECASE,
)
_HAZARD_THREAD = re.compile(rf"(?P<access>Read|Write) Thread (?P<thread>{_TRIPLE}) at (?P<place>.+)")
_HEADER = (_ACCESS, _UNWRITTEN, _RACE, _HAZARD)
_THREAD = re.compile(rf"by thread (?P<thread>{_TRIPLE})(?: in block (?P<block>{_TRIPLE}))?")
_ADDRESS = re.compile(r"A(?:ddress|ccess(?: at| to)?) (?P<address>0x[0-9a-fA-F]+)(?P<what>.*)")
_PLACE_BY_NAME = re.compile(
    r"(?P<kernel>.+?)(?:\(.*\))?[:+](?P<offset>0x[0-9a-fA-F]+)(?: in (?P<file>.+?):(?P<line>\d+))?(?:\s*\[.*)?$"
)
_PLACE_BY_OFFSET = re.compile(
    r"(?P<offset>0x[0-9a-fA-F]+) in (?:(?P<file>[^:]+):(?P<line>\d+):)?(?P<kernel>[^\[]+)(?:\s*\[.*)?$"
)
_SUMMARY = re.compile(r"^(?:ERROR|RACECHECK|LEAK) SUMMARY: (?P<count>[\d,]+)(?P<rest>.*)")
_NOISE = re.compile(
    r"^(?:COMPUTE-SANITIZER|CUDA-MEMCHECK|This report|Tracking kernels|Default timeout|Saved host backtrace|Host Frame"
    r"|Device Frame|Target application returned|Process ID)"
)
_TOOL_TROUBLE = re.compile(
    r"^(?:Error: |Internal Sanitizer |Device not supported|Warning: )(?!Race|Potential|\()", re.IGNORECASE
)

FindingKind = Literal["out_of_bounds", "misaligned", "race", "uninitialised_read", "sanitizer"]
_DOING = {
    "out_of_bounds": "outside every allocation",
    "misaligned": "at a misaligned address",
    "uninitialised_read": "of memory that nothing has written",
}


@dataclass(frozen=True)
class Finding:
    """One report, or several of the same place."""

    tool: SanitizerTool
    kind: FindingKind
    message: str
    """The tool's own words, on one line."""
    kernel: str | None = None
    line: int | None = None
    """Line of the Program's source, where it was compiled with line information."""
    offset: str | None = None
    """Of the instruction, in the kernel."""
    access: str | None = None
    """`read`, `write`, `atomic`; of a race both or all accesses."""
    bytes: int | None = None
    address: str | None = None
    thread: str | None = None
    block: str | None = None
    certain: bool = True
    """False where the tool only warns."""
    count: int = 1

    def diagnostic(self, *, severe: bool) -> Diagnostic:
        """The finding for the program's author."""
        return Diagnostic(
            stage=Stage.SANITIZE,
            rule=self.kind,
            message=self._text(),
            line=self.line,
            excerpt=self.message[:500],
            severe=severe,
        )

    def _text(self) -> str:
        where = f" in {self.kernel}" if self.kernel else ""
        where += (
            f", line {self.line}" if self.line is not None else f" at {self.offset}" if self.offset else ""
        )
        if self.kind == "race":
            what = f"shared-memory race ({self.access}) between threads of a block"
            remedy = "; order the accesses with __syncthreads() or __syncwarp()"
        elif self.kind in _DOING:
            size = f" of {self.bytes} bytes" if self.bytes else ""
            what = f"{self.access or 'access'}{size} {_DOING[self.kind]}"
            remedy = ""
        else:
            what, remedy = self.message[:300], ""
        who = f", by thread {self.thread}" if self.thread else ""
        who += f" of block {self.block}" if self.block else ""
        at = f", address {self.address}" if self.address and self.kind != "race" else ""
        more = f" ({self.count:,} times)" if self.count > 1 else ""
        return f"compute-sanitizer {self.tool}: {what}{where}{who}{at}{more}{remedy}"


@dataclass(frozen=True)
class SanitizerLog:
    """A log, read."""

    findings: tuple[Finding, ...]
    errors: int | None
    """What its summary counts; None where there is no summary, so the tool did not get to its end."""
    troubles: tuple[str, ...]
    """What the tool says of itself: it could not attach, or lost track of a launch."""


def parse_log(text: str, tool: SanitizerTool) -> SanitizerLog:
    """Findings of equal kind and place are one, with their count; the first MAX_FINDINGS are kept."""
    lines = [_PREFIX.sub("", line) for line in text.splitlines() if _PREFIX.match(line)]
    counts = [
        match for line in lines if (match := _SUMMARY.match(line)) and "not printed" not in match["rest"]
    ]
    troubles = tuple(line for line in lines if _TOOL_TROUBLE.match(line))
    grouped: dict[tuple[object, ...], Finding] = {}
    for finding in (_finding(block, tool) for block in _blocks(lines)):
        key = (finding.kind, finding.kernel, finding.line, finding.offset, finding.access, finding.certain)
        first = grouped.get(key)
        grouped[key] = finding if first is None else replace(first, count=first.count + finding.count)
    errors = _number(counts[-1]["count"]) if counts else None
    return SanitizerLog(tuple(grouped.values())[:MAX_FINDINGS], errors, troubles)


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Runs of lines that belong to one report: a first line, and the indented ones under it.

    Some copies of a log have lost the indentation, so known first lines begin a report wherever they stand.
    """
    block: list[str] = []
    for line in lines:
        bare = line.strip()
        headline = any(pattern.match(bare) for pattern in _HEADER)
        continues = line.startswith(" ") or _continues(bare)
        if not bare or _SUMMARY.match(bare) or _TOOL_TROUBLE.match(bare) or headline or not continues:
            if block:
                yield block
            block = []
        said = bare and not _NOISE.match(bare) and not _SUMMARY.match(bare) and not _TOOL_TROUBLE.match(bare)
        if said and (headline or block or not continues):
            block.append(bare)
    if block:
        yield block


def _continues(bare: str) -> bool:
    return bare.startswith(("at ", "by thread", "Address 0x", "Access ", "and ", "Current Value"))


def _finding(block: Sequence[str], tool: SanitizerTool) -> Finding:
    first, *rest = block
    found = Finding(tool, "sanitizer", " ".join(block))
    if match := _RACE.match(first):
        return _race(found, match, rest)
    if match := _HAZARD.match(first):
        return _hazard(found, match, rest)
    for line in rest:
        found = _detail(found, line)
    if match := _UNWRITTEN.match(first):
        kind: FindingKind = "uninitialised_read"
    elif match := _ACCESS.match(first):
        kind = "misaligned" if "misaligned" in found.message else "out_of_bounds"
    else:
        return found
    return replace(found, kind=kind, access=match["access"], bytes=_number(match["bytes"]))


def _race(found: Finding, match: re.Match[str], rest: Sequence[str]) -> Finding:
    """An analysis report: one access, and those that it races with."""
    accesses, hazards = [match["access"].lower()], 0
    for line in rest:
        other = _OTHER_RACE.match(line)
        if other:
            accesses.append(other["access"].lower())
            hazards += _number(other["count"] or "1")
    return replace(
        _at(found, match["place"]),
        kind="race",
        access=" against ".join(accesses[:2]),
        certain=match["level"].lower() == "error",
        count=max(hazards, 1),
    )


def _hazard(found: Finding, match: re.Match[str], rest: Sequence[str]) -> Finding:
    """A hazard report: one byte, two threads."""
    threads = [thread for line in rest if (thread := _HAZARD_THREAD.match(line))]
    found = _at(found, threads[0]["place"]) if threads else found
    return replace(
        found,
        kind="race",
        access=match["access"].upper(),
        address=match["address"],
        block=_squeezed(match["block"]),
        thread=" and ".join(_squeezed(thread["thread"]) or "" for thread in threads) or None,
        certain=match["level"].lower() == "error",
    )


def _detail(found: Finding, line: str) -> Finding:
    if line.startswith("at ") and found.offset is None:
        return _at(found, line.removeprefix("at "))
    if match := _THREAD.search(line):
        return replace(found, thread=_squeezed(match["thread"]), block=_squeezed(match["block"]))
    if found.address is None and (match := _ADDRESS.search(line)):
        return replace(found, address=match["address"])
    return found


def _at(found: Finding, place: str) -> Finding:
    match = _PLACE_BY_OFFSET.match(place) or _PLACE_BY_NAME.match(place)
    if match is None:
        return found
    return replace(
        found,
        kernel=kernel_name(match["kernel"]),
        offset=match["offset"],
        line=int(match["line"]) if match["line"] else None,
    )


def _squeezed(triple: str | None) -> str | None:
    return triple.replace(" ", "") if triple else None


def _number(text: str) -> int:
    return int(text.replace(",", ""))
