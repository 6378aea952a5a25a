"""NVRTC's and ptxas' log turned into diagnostics with a line of the agent's source and an excerpt of it.

The excerpt is cut from the source we hold, not from the log, and blocks of the log that belong to a file outside
the header folders are dropped: what a compiler quotes from elsewhere never reaches a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.nvrtc_records import Diagnostic, Severity
from tools.nvrtc_source import SOURCE_NAME

_LOCATED = re.compile(
    r"^(?P<file>[^\n]+?)\((?P<line>\d+)\): (?:catastrophic )?(?P<kind>error|warning)"
    r"(?: #\d+(?:-D)?)?: (?P<text>.*)$"
)
_PTXAS = re.compile(
    r"^\s*ptxas\s+(?:application ptx input, line \d+;\s*)?(?P<kind>error|fatal|warning)\s*:\s*(?P<text>.*)$"
)
_COMMAND_LINE = re.compile(r"^(?:Command-line |nvrtc: |nvrtc )?error\s*: (?P<text>.*)$")
_NOTE_LINE = re.compile(rf"at line (?P<line>\d+)(?: of {re.escape(SOURCE_NAME)})$")
_QUOTED = re.compile(r"'([^']+)'")
_AFTERMATH = "Ptx assembly aborted"
_LIMIT = 50
_WIDTH = 160


def parse_log(log: str, source: str, header_dirs: tuple[str, ...]) -> tuple[Diagnostic, ...]:
    """Diagnostics of a compile log in the compiler's order, errors first, at most 50."""
    found = [item for block in _blocks(log) if (item := _diagnose(block, source, header_dirs))]
    unique = list(dict.fromkeys(found))
    if any(d.severity == "error" and _AFTERMATH not in d.message for d in unique):
        unique = [d for d in unique if _AFTERMATH not in d.message]
    return tuple(sorted(unique, key=lambda d: d.severity != "error")[:_LIMIT])


def clean_log(log: str, header_dirs: tuple[str, ...]) -> str:
    """The log without blocks about files that are neither the source nor a known header."""
    kept = [block for block in _blocks(log) if not _is_foreign(block[0], header_dirs)]
    return "\n".join("\n".join(block) for block in kept)


def excerpt(source: str, line: int, caret: int | None = None) -> str:
    """Source lines around the 1-based `line`, numbered, with a caret under 0-based column `caret`."""
    lines = [text.rstrip("\r") for text in source.split("\n")]
    if not 1 <= line <= len(lines):
        return ""
    out: list[str] = []
    for number in range(max(1, line - 1), min(len(lines), line + 1) + 1):
        out.append(f"{number:>5} | {lines[number - 1][:_WIDTH]}")
        if number == line and caret is not None and caret < _WIDTH:
            pad = "".join("\t" if c == "\t" else " " for c in lines[number - 1][:caret].ljust(caret))
            out.append(f"      | {pad}^")
    return "\n".join(out)


def line_of(source: str, needle: str) -> int | None:
    """The first 1-based line where `needle` stands as a word of its own."""
    match = re.search(rf"(?<!\w){re.escape(needle)}(?!\w)", source)
    return source.count("\n", 0, match.start()) + 1 if match else None


def line_of_kernel(source: str, entry: str) -> int | None:
    """The line where the kernel's name meets its parameter list, else where the name first stands."""
    match = re.search(rf"__global__[^;{{}}]{{0,1000}}?\b{re.escape(entry)}\s{{0,100}}\(", source)
    if match is None:
        return line_of(source, entry)
    return source.count("\n", 0, match.end()) + 1


def _blocks(log: str) -> Iterator[list[str]]:
    """Split at the lines that start a diagnostic; a block holds its source quote, caret and notes."""
    block: list[str] = []
    for line in log.replace("\0", "").splitlines():
        starts = _LOCATED.match(line) or line.lstrip().startswith("ptxas") or not line.strip()
        if starts and block:
            yield block
            block = []
        if line.strip():
            block.append(line)
    if block:
        yield block


def _is_foreign(line: str, header_dirs: tuple[str, ...]) -> bool:
    match = _LOCATED.match(line)
    return match is not None and match["file"] != SOURCE_NAME and not _header_name(match["file"], header_dirs)


def _header_name(path: str, header_dirs: tuple[str, ...]) -> str | None:
    """`cub/block/block_load.cuh` for a path below a header folder, by the longest folder that holds it."""
    for folder in sorted(header_dirs, key=len, reverse=True):
        if path.startswith(folder.rstrip("/") + "/") and "/../" not in path:
            return path[len(folder.rstrip("/")) + 1 :]
    return None


def _diagnose(block: list[str], source: str, header_dirs: tuple[str, ...]) -> Diagnostic | None:
    located = _LOCATED.match(block[0])
    if located:
        return _from_front_end(located, block[1:], source, header_dirs)
    ptxas = _PTXAS.match(block[0])
    if ptxas:
        severity: Severity = "warning" if ptxas["kind"] == "warning" else "error"
        return _from_ptxas(severity, ptxas["text"].strip(), source)
    other = _COMMAND_LINE.match(block[0])
    return Diagnostic("error", None, other["text"]) if other else None


def _from_front_end(
    head: re.Match[str], rest: list[str], source: str, header_dirs: tuple[str, ...]
) -> Diagnostic | None:
    severity: Severity = "warning" if head["kind"] == "warning" else "error"
    caret_at = next((i for i, line in enumerate(rest) if line.strip() == "^"), None)
    notes = _notes(rest if caret_at is None else rest[caret_at + 1 :])
    if head["file"] == SOURCE_NAME:
        line: int | None = int(head["line"])
        message = head["text"]
    else:
        name = _header_name(head["file"], header_dirs)
        if name is None:
            return Diagnostic(severity, None, "a problem in a file outside the compiler's header folders")
        message = f"in <{name}> line {head['line']}: {head['text']}"
        line = next((int(m["line"]) for note in notes if (m := _NOTE_LINE.search(note))), None)
        caret_at = None
    if notes:
        message = f"{message} ({'; '.join(notes)})"
    if line is None:
        return Diagnostic(severity, None, message)
    # The log quotes the source two columns in, with the caret below it.
    caret = len(rest[caret_at]) - len(rest[caret_at].lstrip()) - 2 if caret_at is not None else None
    return Diagnostic(severity, line, message, excerpt(source, line, caret))


def _demangled(name: str) -> str:
    """`foo` for `_Z3fooi`, enough to find a plain function in the source; other names come back as they are."""
    match = re.match(r"_Z(\d+)", name)
    return name[match.end() : match.end() + int(match[1])] if match else name


def _notes(lines: list[str]) -> list[str]:
    """Follow-up lines of a diagnostic without the source lines they quote, which stand right above a caret."""
    stripped = [line.strip() for line in lines]
    below = stripped[1:] + [""] * bool(stripped)
    return [
        text
        for text, next_text in zip(stripped, below, strict=True)
        if text != "^" and next_text != "^" and text != "detected during:"
    ]


def _from_ptxas(severity: Severity, text: str, source: str) -> Diagnostic:
    """ptxas knows lines of the PTX only; what it quotes leads back to the kernel or the inline assembly."""
    line: int | None = None
    for quoted in _QUOTED.findall(text):
        name = _demangled(quoted)
        line = line_of_kernel(source, name) if "ntry" in text else line_of(source, name)
        if line is not None:
            break
    if line is None and (entry := re.search(r"for entry (?:function )?'?(\w+)", text)):
        line = line_of_kernel(source, entry[1])
    return Diagnostic(severity, line, f"ptxas: {text}", excerpt(source, line) if line else "")
