"""The agent's text on its way into NVRTC: what it may include, and where the defines go.

The invariant: no text leaves here that can make NVRTC open a file outside its header folders, so a diagnostic can
never quote one. `forbidden_directives` errs on the side of refusing: it looks at the spliced text, comments and
strings included, and only skips lines that are provably a `//` comment.
Covers: include, include_next, import, embed, line splices, digraphs, trigraphs, comments inside a directive,
macro-computed names, `__has_include`. Does not cover: which allowed header is useful (that is `tools/lint.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory.errors import BadInput

MAX_SOURCE_CHARS = 262_144
"""Longer text is refused unread: everything here and in the lint is linear, and this bounds it."""

SOURCE_NAME = "kernel.cu"
"""The name NVRTC knows the agent's source by."""

_LIMITS = {
    "INFINITY": "__int_as_float(0x7f800000)",
    "NAN": "__int_as_float(0x7fffffff)",
    "FLT_MAX": "3.402823466e+38f",
    "FLT_MIN": "1.175494351e-38f",
    "FLT_EPSILON": "1.192092896e-07f",
    "DBL_MAX": "1.7976931348623157e+308",
    "DBL_MIN": "2.2250738585072014e-308",
    "DBL_EPSILON": "2.2204460492503131e-16",
    "INT_MAX": "2147483647",
    "INT_MIN": "(-2147483647 - 1)",
    "UINT_MAX": "4294967295u",
    "LLONG_MAX": "9223372036854775807LL",
    "LLONG_MIN": "(-9223372036854775807LL - 1)",
    "M_PI": "3.14159265358979323846",
}
_INTEGERS = {8: "char", 16: "short", 32: "int", 64: "long long"}
PRELUDE = "".join(
    [
        f"typedef signed {word} int{bits}_t;\ntypedef unsigned {word} uint{bits}_t;\n"
        for bits, word in _INTEGERS.items()
    ]
    + [f"#ifndef {name}\n#define {name} {value}\n#endif\n" for name, value in _LIMITS.items()]
)
"""What authors of CUDA take for granted and NVRTC, which has no host headers, lacks. The types are libcu++'s own, so
including <cuda/std/cstdint> as well does no harm. Whatever else compiles a Program puts this before its defines."""

_SPLICE = re.compile(r"\\\r?\n")
# GCC also joins lines where blanks follow the backslash, NVRTC (measured: 13.0, 13.5) does not.
_LOOSE_SPLICE = re.compile(r"\\[ \t\v\f\r]*\n")
# A word after a comment counts as a directive wherever it stands: finding the `#` before an arbitrary run of
# comments would cost quadratic time on hostile text.
_INCLUDING = re.compile(
    r"(?:(?:#|%:|\?\?=)[ \t\v\f]*|(?P<comment>\*/)[ \t\v\f]*)"
    r"(?P<word>include_next|include|import|embed)\b(?P<rest>[^\n]*)"
)
_PROBING = re.compile(r"\b__has_(?:include|include_next|embed)\b")
_TRIGRAPH = re.compile(r"\?\?[=/]")
_ANGLED = re.compile(r"\s*<(?P<name>[A-Za-z0-9_./+-]+)>\s*(?://.*|/\*.*)?$")
_PLAIN_INCLUDE = re.compile(r"\s*#\s*include\s*<(?P<name>[A-Za-z0-9_./+-]+)>\s*(?://.*)?$")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_DEFINE_NAME = re.compile(r"[A-Za-z_]\w*(?:\([\w, ]*\))?", re.ASCII)


@dataclass(frozen=True)
class Directive:
    """A directive that reaches for a file: 1-based line, its word, and the header when it is a plain `<name>`."""

    line: int
    word: str
    header: str | None
    text: str


@dataclass(frozen=True)
class Composed:
    """Source plus defines, ready for NVRTC; `prefix` is the run of includes a precompiled header can stand for."""

    plain: str
    prefix: str
    precompiled: str
    """Same unit with the includes reduced to `prefix` and a stop mark after it; empty where `prefix` is."""


def splice(source: str, pattern: re.Pattern[str] = _SPLICE) -> str:
    """Join lines that end in a backslash, as the preprocessor does, and keep every line's number.

    The swallowed newlines are given back after the joined line.
    """
    out: list[str] = []
    owed = 0
    position = 0
    for match in pattern.finditer(source):
        chunk = source[position : match.start()]
        if owed and "\n" in chunk:
            head, tail = chunk.split("\n", 1)
            chunk = head + "\n" * (owed + 1) + tail
            owed = 0
        out.append(chunk)
        owed += 1
        position = match.end()
    rest = source[position:]
    if owed:
        head, newline, tail = rest.partition("\n")
        rest = head + "\n" * owed + newline + tail
    return "".join([*out, rest])


def file_directives(source: str) -> tuple[Directive, ...]:
    """Every directive that could open a file, in order of lines, allowed or not.

    Compilers differ in what joins two lines, so three readings of the text are searched.
    """
    found: set[Directive] = set()
    for text in _readings(source):
        for match in _INCLUDING.finditer(text):
            if _is_line_comment(text, match.start()):
                continue
            literal = match["word"] == "include" and not match["comment"]
            plain = _ANGLED.match(match["rest"]) if literal else None
            written = " ".join(match.group().split())
            line = text.count("\n", 0, match.start()) + 1
            found.add(Directive(line, match["word"], plain["name"] if plain else None, written[:120]))
    return tuple(sorted(found, key=lambda d: (d.line, d.text)))


def forbidden_directives(source: str) -> tuple[tuple[int, str], ...]:
    """(line, why) of each construct that could read or probe a file outside the compiler's header folders."""
    found: dict[int, str] = {}
    for item in file_directives(source):
        if item.header is None:
            found[item.line] = f"`{item.text}`: only `#include <header>` with a literal name is allowed"
        elif item.header.startswith("/") or ".." in item.header.split("/"):
            found[item.line] = f"`{item.text}`: a header is named without `/` in front and without `..`"
    for text in _readings(source):
        for pattern, why in ((_PROBING, "probes for files"), (_TRIGRAPH, "is a trigraph")):
            for match in pattern.finditer(text):
                if not _is_line_comment(text, match.start()):
                    found.setdefault(text.count("\n", 0, match.start()) + 1, f"`{match.group()}` {why}")
    return tuple(sorted(found.items()))


def _readings(source: str) -> tuple[str, ...]:
    """The text as written, as NVRTC joins its lines and as GCC does."""
    return tuple(dict.fromkeys((source, splice(source), splice(source, _LOOSE_SPLICE))))


def compose(source: str, defines: tuple[tuple[str, str], ...]) -> Composed:
    """Put prelude and defines after the leading includes: a tunable `N` must not rewrite a header that uses `N`.

    A `#line` afterwards keeps the compiler's line numbers those of the agent's source.
    Raises: BadInput for a define that is not one line of `NAME VALUE`.
    """
    lines = _LINE.findall(source)
    count, headers = _leading_includes(lines)
    head, body = "".join(lines[:count]), "".join(lines[count:])
    macros = "".join(_define(name, value) for name, value in defines)
    middle = f'{PRELUDE}{macros}#line {count + 1} "{SOURCE_NAME}"\n'
    plain = f"{head}{middle}{body}"
    if not headers:
        return Composed(plain, "", "")
    prefix = "".join(f"#include <{name}>\n" for name in dict.fromkeys(headers))
    return Composed(plain, prefix, f"{prefix}#pragma nv_hdrstop\n{middle}{body}")


def _define(name: str, value: str) -> str:
    if not _DEFINE_NAME.fullmatch(name) or any(c in value for c in "\n\r\\\0"):
        raise BadInput(
            f"cannot define {name!r} as {value!r}: a C identifier and one line without a backslash"
        )
    return f"#define {name} {value}\n"


def _leading_includes(lines: list[str]) -> tuple[int, list[str]]:
    """Lines up to the last of the includes that open the source, and their headers."""
    last, headers, in_comment = 0, list[str](), False
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if in_comment or line.startswith("/*"):
            in_comment = "*/" not in line
            if not in_comment and not line.endswith("*/"):
                break
            continue
        if line.endswith("\\"):
            break
        include = _PLAIN_INCLUDE.match(line)
        if include:
            last, headers = number, [*headers, include["name"]]
        elif line and not line.startswith("//"):
            break
    return last, headers


def _is_line_comment(text: str, position: int) -> bool:
    """The line at `position` opens with `//` and closes no block comment, so nothing on it is a directive."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : end if end >= 0 else len(text)]
    return line.lstrip().startswith("//") and "*/" not in line and "\r" not in line[:-1]
