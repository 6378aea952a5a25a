"""Prepares user text for the host compiler: a few rewrites, and refusal of what the simulator cannot honour.

Every rewrite keeps line numbers. What is checked here is the text; what the result may do is the sandbox's job.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FILE_NAME = "candidate.cu"

_KNOWN_HEADERS = frozenset(
    """cuda.h cuda_runtime.h cuda_runtime_api.h device_launch_parameters.h cuda_fp16.h cuda_fp16.hpp cuda_bf16.h
    cuda_bf16.hpp math_constants.h math.h cmath stdint.h cstdint stddef.h cstddef assert.h cassert stdio.h cstdio
    float.h cfloat limits.h climits vector_types.h vector_functions.h cooperative_groups.h
    cooperative_groups/reduce.h sm_60_atomic_functions.h device_functions.h cuda/std/cstdint cuda/std/cmath
    cuda/std/cstddef""".split()
)
_HOST_HEADERS = frozenset(["type_traits", "limits", "utility", "initializer_list"])
_REFUSED_HEADERS = {
    "mma.h": "tensor cores (mma.h) are not supported by the simulator",
    "cuda_fp8.h": "8-bit floats (cuda_fp8.h) are not supported by the simulator",
    "cuda_pipeline.h": "asynchronous copies (cuda_pipeline.h) are not supported by the simulator",
}

_LEXEME = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S
)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*(include|include_next|import)\b[ \t]*(.*)$", re.M)
_ASSEMBLY = re.compile(r"\b(?:asm|__asm|__asm__)\b")
_UNROLL = re.compile(r"^([ \t]*)#[ \t]*pragma[ \t]+unroll\b[ \t]*\(?[ \t]*([A-Za-z_0-9]*)[ \t]*\)?.*$", re.M)
_EXTERN_SHARED = re.compile(
    r"\bextern\s+([^;{}()]*(?:\([^;{}]*?\)[^;{}()]*)*?)\b([A-Za-z_]\w*)\s*\[\s*\]((?:\s*\[[^\]]*\])*)\s*;"
)
_POISONED = (
    "asm __asm __asm__ no_sanitize __no_sanitize__ no_sanitize_thread __no_sanitize_thread__ no_sanitize_coverage "
    "__no_sanitize_coverage__ no_sanitize_undefined __no_sanitize_undefined__"
)
_ALIGNMENT = re.compile(
    r"\b(?:__align__|alignas|__builtin_align__)\s*\([^()]*(?:\([^()]*\))?\s*\)|__attribute__\s*\(\(.*?\)\)"
)
_STATIC_SHARED = re.compile(r"\bstatic(\s+)__shared__\b|\b__shared__(\s+)static\b")


@dataclass(frozen=True)
class Diagnostic:
    """One complaint about the source. `line` counts from 1 in the user's text."""

    line: int | None
    message: str
    excerpt: str


class RefusedSource(Exception):
    """The text uses something that the simulator does not run."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__("; ".join(d.message for d in diagnostics))
        self.diagnostics = diagnostics


def excerpt_of(source: str, line: int | None) -> str:
    """The source line that a diagnostic speaks of, or nothing."""
    lines = source.splitlines()
    return lines[line - 1].strip() if line is not None and 0 < line <= len(lines) else ""


def prepare(source: str, defines: Mapping[str, str], entries: Sequence[str]) -> str:
    """The translation unit to compile after the shim. Raises RefusedSource."""
    bare = _without_comments(source)
    _refuse(source, bare)
    text = _STATIC_SHARED.sub(r"__shared__\1\2", bare)
    text = _EXTERN_SHARED.sub(_rewrite_extern_shared, text)
    text = _UNROLL.sub(lambda m: _rewrite_unroll(m, defines), text)
    hoisted = [m[2].strip() for m in _INCLUDE.finditer(text) if m[2].strip().strip('<>"') in _HOST_HEADERS]
    text = _INCLUDE.sub("", text)
    head = [f"#include {name}" for name in hoisted]
    head += [f"#define {name} {value}" for name, value in defines.items()]
    # A namespace of its own lets user code define what the shim or libc define too (uint64_t, operators, helpers).
    # Poisoned names stay errors however macros spell them; nor may a program tell how it is being watched.
    head += [
        f"#pragma GCC poison {_POISONED}",
        "#undef SIM_INSTR",
        "namespace sim_user {",
        f'#line 1 "{FILE_NAME}"',
    ]
    tail = ["", '#line 1 "entries"', *[f"SIM_ENTRY({i}, {name})" for i, name in enumerate(entries)], "}"]
    return "\n".join([*head, text, *tail, ""])


def _without_comments(source: str) -> str:
    """Comments become spaces, line ends stay; strings stay."""

    def blank(match: re.Match[str]) -> str:
        text = match[0]
        return re.sub(r"[^\n]", " ", text) if text.startswith(("//", "/*")) else text

    return _LEXEME.sub(blank, source)


def _refuse(source: str, bare: str) -> None:
    complaints: list[Diagnostic] = []

    def complain(position: int, message: str) -> None:
        line = bare.count("\n", 0, position) + 1
        complaints.append(Diagnostic(line, message, excerpt_of(source, line)))

    code = _LEXEME.sub(lambda m: '"' + " " * (len(m[0]) - 2) + '"' if len(m[0]) > 1 else m[0], bare)
    for match in _ASSEMBLY.finditer(code):
        complain(match.start(), "inline PTX is not supported by the simulator")
    for match in _INCLUDE.finditer(bare):
        name = match[2].strip().strip('<>"')
        if name in _REFUSED_HEADERS:
            complain(match.start(), _REFUSED_HEADERS[name])
        elif match[1] != "include" or name not in _KNOWN_HEADERS | _HOST_HEADERS:
            complain(match.start(), f"header {name!r} is not available in the simulator")
    if re.search(r"%:|\?\?=", code):
        complain(0, "digraphs and trigraphs are not supported by the simulator")
    for match in re.finditer(r"#[ \t]*[a-z_]*\\[ \t]*\n", code):
        complain(match.start(), "a directive's name may not span lines")
    if "\x00" in source:
        complain(0, "the source contains a NUL character")
    if complaints:
        raise RefusedSource(tuple(complaints))


def _rewrite_extern_shared(match: re.Match[str]) -> str:
    """A reference to the runner's one array, which is aligned for every type: an asm label is lost in templates."""
    specifiers, name, inner = match[1], match[2], match[3]
    if "__shared__" not in specifiers:
        return match[0]
    element = " ".join(_ALIGNMENT.sub("", specifiers).replace("__shared__", "").split())
    ends = "\n" * match[0].count("\n")
    return (
        f"{element} (&{name})[]{inner} = reinterpret_cast<{element} (&)[]{inner}>(sim_dynamic_shared);{ends}"
    )


def _rewrite_unroll(match: re.Match[str], defines: Mapping[str, str]) -> str:
    count = defines.get(match[2], match[2]).strip()
    if not count:
        return f"{match[1]}#pragma GCC unroll 16"
    # GCC rejects counts that depend on a template; unrolling is only a hint, so such a pragma is dropped.
    # A count of thousands of digits is one that Python itself refuses to read.
    return f"{match[1]}#pragma GCC unroll {min(int(count[:9]), 128)}" if count.isdecimal() else ""
