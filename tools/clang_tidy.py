"""clang-tidy on a kernel's CUDA source, without a CUDA toolkit: findings by line of the author's text.

The source is read as C++ behind the simulator's own header of CUDA's language, with the plan's macros, so that sizes
and tunables are known. What the simulator cannot read (inline PTX, tensor-core headers) is not analysed and nothing is
said about it. One thread is followed at a time: what is said about paths through shared memory, which other threads
write as well, is dropped.
Covers: a hanging or greedy analysis (a process of its own with a deadline and a memory limit), text that would make
clang read files or suppress findings, a machine without clang-tidy (no findings). Does not cover: races and bounds of
buffers; tools.lint_barrier, tools.lint_sizes and the sanitizer do.
"""

from __future__ import annotations

import importlib.util
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tools.clang_tidy_checks import (
    ANALYZED,
    ANALYZER,
    CHECKS,
    MAX_NODES,
    REMEDIES,
    WARNING_FLAGS,
    severity_of,
)
from tools.lint_findings import LintFinding
from tools.lint_paths import is_certain_at
from tools.nvrtc_source import forbidden_directives
from tools.simulator.source import FILE_NAME, RefusedSource, prepare
from tools.simulator.toolchain import NATIVE, run_command

DEADLINE_S = 5.0
"""A kernel takes 0.06 s, the largest ones 0.2 s."""
_CACHED = 1024

_BRIDGE = """\
// Builtins that GCC has and clang lacks; only their types matter here.
typedef float sim_bridge_floats __attribute__((vector_size(16)));
#define __builtin_ia32_vcvtph2ps(...) __builtin_bit_cast(sim_bridge_floats, __VA_ARGS__)
"""
_SHIM = NATIVE / "shim"
_LOW = re.compile(r"half|bfloat|bf16|fp16|atomic")
_NEEDED_BY: dict[str, re.Pattern[str]] = {
    "half.h": _LOW,
    "bfloat16.h": _LOW,
    "atomics.h": re.compile("atomic"),
    "cooperative.h": re.compile("cooperative_groups"),
    "entry.h": re.compile(r"(?!)"),
}
"""Parts of the simulator's header that most kernels need nothing of: reading them takes 20 of 55 ms."""
_FLAGS = (
    *("-x", "c++", "--target=x86_64-unknown-linux-gnu", "-std=gnu++17", "-nostdinc"),
    *("-mavx2", "-mfma", "-mf16c", "-fno-caret-diagnostics", "-fno-color-diagnostics"),
    *WARNING_FLAGS,
    *("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={MAX_NODES}"),
    # A system header's own warnings are no findings.
    *("-isystem", str(_SHIM), "-include", "bridge.h"),
)
_MESSAGE = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): (?P<kind>warning|error|note): (?P<text>.*?)"
    r"(?: \[(?P<check>[\w.+,#-]+)\])?$",
    re.M,
)
_SHARED_NAME = re.compile(r"\b__shared__\b[^;={]*?\b([A-Za-z_]\w*)\s*(?:\[[^;{]*?)?[;,={]")
_CONVERTED = re.compile(r"\((?:float|double)\)\s*\(|\b(?:float|double)\s*\(|static_cast<(?:float|double)>")
_MEMBER = re.compile(r"'[^']*\.[^']*'")
_QUOTED = re.compile(r"'([^']*)'")


@dataclass(frozen=True)
class Analysis:
    """What clang-tidy says about one source with one set of macros."""

    findings: tuple[LintFinding, ...]
    """At most one for a line, the weightiest."""
    unread: str | None = None
    """Why the source was not analysed."""
    lasting: bool = True
    """False where the machine was in the way, so that it may come out otherwise next time."""


@dataclass
class _Message:
    """A warning with the notes that explain it; positions are those of the author's source."""

    line: int
    column: int
    check: str
    text: str
    notes: list[str] = field(default_factory=list)


@cache
def find_clang_tidy() -> Path | None:
    """The executable inside the `clang-tidy` package; None where it is not installed.

    One from the system is not used: another version would judge the same program differently.
    """
    spec = importlib.util.find_spec("clang_tidy")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "data" / "bin" / "clang-tidy"
        if path.is_file():
            return path
    return None


def clang_tidy_version() -> str | None:
    """Version of the installed package; None where static analysis has to do without it."""
    if find_clang_tidy() is None:
        return None
    try:
        return version("clang-tidy")
    except PackageNotFoundError:
        return None


def analyse(
    source: str, defines: Mapping[str, str], find: Callable[[], Path | None] = find_clang_tidy
) -> Analysis:
    """Findings of clang-tidy, severe ones first; cached by source and macros while the process lives."""
    executable = find()
    if executable is None:
        return Analysis((), "clang-tidy is not installed")
    return _analyse(source, tuple(sorted(defines.items())), executable)


@lru_cache(maxsize=_CACHED)
def _analyse(source: str, defines: tuple[tuple[str, str], ...], executable: Path) -> Analysis:
    if forbidden_directives(source):
        return Analysis((), "the source names files")
    try:
        text = prepare(source, dict(defines), ())
    except RefusedSource as refused:
        return Analysis((), str(refused))
    # clang-tidy would obey a mark to suppress findings, wherever it stands.
    text = text.replace("NOLINT", "N0LINT")
    before = text[: text.index(f'#line 1 "{FILE_NAME}"')].count("\n") + 1
    outcome = _run(text, _bridge(source), executable)
    if outcome.errors:
        outcome = _run(text, _bridge(None), executable)
    if outcome.unread is not None:
        return Analysis((), outcome.unread, lasting=outcome.lasting)
    return Analysis(_findings(source, list(_messages(outcome.output, before))))


@dataclass(frozen=True)
class _Outcome:
    """What a run printed, or why it is of no use."""

    output: str
    errors: tuple[str, ...] = ()
    unread: str | None = None
    lasting: bool = True


def _run(text: str, bridge: str, executable: Path) -> _Outcome:
    with tempfile.TemporaryDirectory(prefix="warpsmith-tidy-") as scratch:
        folder = Path(scratch)
        (folder / FILE_NAME).write_text(text, encoding="utf-8")
        (folder / "bridge.h").write_text(bridge, encoding="utf-8")
        config = f"{{Checks: '{CHECKS}', HeaderFilterRegex: '^$'}}"
        command = [str(executable), f"--config={config}", "--quiet", FILE_NAME, "--", *_FLAGS]
        ended = run_command(command, timeout_s=DEADLINE_S, confined=True, directory=folder)
    if ended.timed_out:
        return _Outcome("", unread=f"clang-tidy took longer than {DEADLINE_S:g} s", lasting=False)
    errors = tuple(m["text"] for m in _MESSAGE.finditer(ended.stdout) if m["kind"] == "error")
    if errors:
        return _Outcome("", errors, errors[0])
    if ended.returncode != 0:
        return _Outcome("", unread=f"clang-tidy ended with status {ended.returncode}", lasting=False)
    return _Outcome(ended.stdout)


def _bridge(source: str | None) -> str:
    """The simulator's header without the parts that this source mentions nothing of; all of it for None."""
    lines = [_BRIDGE]
    for line in (_SHIM / "sim.h").read_text(encoding="utf-8").splitlines():
        name = line.removeprefix('#include "').rstrip('"')
        needed = _NEEDED_BY.get(name)
        if line.startswith("#include") and (source is None or needed is None or needed.search(source)):
            lines.append(f"#include <{name}>")
    return "\n".join([*lines, ""])


def _messages(output: str, before: int) -> Iterator[_Message]:
    """Warnings about the author's lines; `before` lines of the file are ours."""
    current: _Message | None = None
    for match in _MESSAGE.finditer(output):
        if match["kind"] == "note":
            if current is not None:
                current.notes.append(match["text"])
            continue
        if current is not None:
            yield current
        current = None
        checks = [c for c in (match["check"] or "").split(",") if c in REMEDIES]
        line = int(match["line"]) - before
        if checks and line > 0 and Path(match["file"]).name == FILE_NAME:
            current = _Message(line, int(match["column"]), checks[0], match["text"].replace("sim_user::", ""))
    if current is not None:
        yield current


def _findings(source: str, messages: list[_Message]) -> tuple[LintFinding, ...]:
    shared = {m[1] for m in _SHARED_NAME.finditer(source)}
    found: dict[int, LintFinding] = {}
    for message in sorted(messages, key=lambda m: m.check.startswith(ANALYZER)):
        if _is_idiom(message, source) or (message.check in ANALYZED and _speaks_of(shared, message, source)):
            continue
        assumed = any(note.startswith("Assuming ") for note in message.notes)
        certain = is_certain_at(source, message.line, message.column)
        severity = severity_of(message.check, assumed=assumed, certain=certain)
        finding = LintFinding(message.check, severity, message.line, message.text, REMEDIES[message.check])
        known = found.get(message.line)
        if known is None or (severity == "severe" and known.severity != "severe"):
            found[message.line] = finding
    return tuple(sorted(found.values(), key=lambda f: (f.severity != "severe", f.line)))


def _is_idiom(message: _Message, source: str) -> bool:
    """`(&v.x)[3]` walks over a vector's members, and `(float)(n / 2)` says that it rounds."""
    if message.check == "bugprone-integer-division":
        return _CONVERTED.search(_line(source, message.line)) is not None
    return message.check == f"{ANALYZER}security.ArrayBound" and _MEMBER.search(message.text) is not None


def _line(source: str, number: int) -> str:
    return "".join(source.split("\n")[number - 1 : number])


def _speaks_of(names: set[str], message: _Message, source: str) -> bool:
    """The line or the path to it names a shared variable, which clang takes for this thread's alone."""
    line = _line(source, message.line)
    words = set(re.findall(r"\w+", line))
    for text in (message.text, *message.notes):
        for quoted in _QUOTED.findall(text):
            words |= set(re.findall(r"\w+", quoted))
    return bool(words & names)
