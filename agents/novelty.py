"""Is a program new? Compares what would run, not how it is written.

Here: a fingerprint that ignores comments, layout, the names of variables and kernels, and the point in the tunables'
space, which the tuner searches anyway. Not here: programs that differ in text and compute the same in the same way.
Invariant: two programs of one fingerprint compute the same; two of different ones may do so too. So a name is ignored
only where it is the program's own: the problem's tensors, functions of the language, operations and members stay. Pure.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable

from memory.records import Program

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_UNROLL = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+unroll[^\n]*$", re.MULTILINE)
_DIRECTIVE = re.compile(r"^([ \t]*#[^\n]*)$", re.MULTILINE)
_NAME = re.compile(r"[^\W\d]\w*")
_TOKEN = re.compile(
    r"(?:(?:\.|->)\s*)?[^\W\d]\w*|0[xX][0-9a-fA-F]+\w*|\d+\.?\d*(?:[eE][+-]?\d+)?\w*|\.\d+\w*|"
    r"<<=|>>=|\+\+|--|&&|\|\||<<|>>|[-+*/%&|^<>=!]=|[^\s\w]"
)
"""A member with its dot or arrow is one token, and so never one of the program's own names."""
_TYPE = (
    r"(?:void|bool|char|short|int|long|unsigned|size_t|u?int\d+_t|float|double|half2?|__half2?|__nv_bfloat16\d?|"
    r"(?:float|double|u?int|u?short|u?char|longlong)[234]|auto)"
)
_WORDS = re.compile(rf"{_TYPE}|const|volatile|__restrict__|__restrict")
_DECLARED = re.compile(
    rf"\b{_TYPE}(?:[\s*&]|\bconst\b|\b__restrict__|\b{_TYPE}\b)*[\s*&]([A-Za-z_]\w*)\s*(?=([=;,)\[({{:]))"
)
"""A name that the source declares, after a type of the language, with the character that follows."""
_FIXED = frozenset(("kind", "op", "dtype", "layout", "ctype", "text", "float"))
"""Fields of a plan whose strings name nothing of the program's."""


def fingerprint(program: Program) -> str:
    """The same for two programs that differ in names, comments, layout, labels and tunables' values alone."""
    source = _COMMENT.sub(" ", _UNROLL.sub(" ", program.source.replace("\\\n", " ")))
    source = _DIRECTIVE.sub("\\1 \0 ", source)  # what follows a directive is on a line of its own
    shared = {*program.entries, *program.dims, *(t.name for t in program.tunables)}
    numbers: dict[str, str] = {}
    plan = _renamed(_plan(program), _numbering(shared | {b.name for b in program.buffers}, numbers))
    # Buffers and variables are worlds apart, kernels and macros are not.
    numbers = {name: number for name, number in numbers.items() if name in shared}
    number = _numbering(shared | _variables(source), numbers, "\1")
    text = " ".join(number(token) for token in _TOKEN.findall(source))
    return hashlib.sha256(f"{json.dumps(plan, sort_keys=True)}\n{text}".encode()).hexdigest()[:32]


def _variables(source: str) -> set[str]:
    """Names that the source declares; not one that it calls and declares as no function, as `exp` in `x = exp(exp)`."""
    declared = [match.groups() for match in _DECLARED.finditer(source)]
    functions = {name for name, follows in declared if follows == "("}
    called = set(re.findall(r"([^\W\d]\w*)\s*\(", source)) - functions
    return {name for name, _ in declared if not _WORDS.fullmatch(name)} - called


def _numbering(ours: set[str], numbers: dict[str, str], mark: str = "\0") -> Callable[[str], str]:
    """Gives each of our names the number of its first appearance; what is not ours stays."""
    return lambda name: numbers.setdefault(name, f"{mark}{len(numbers)}") if name in ours else name


def _renamed(value: object, number: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return _NAME.sub(lambda match: number(match[0]), value)
    if isinstance(value, list):
        return [_renamed(item, number) for item in value]
    if isinstance(value, dict):
        return {key: item if key in _FIXED else _renamed(item, number) for key, item in value.items()}
    return value


def _plan(program: Program) -> dict[str, object]:
    """The plan, its named sets as lists in the order given; tunables without the value, which is the tuner's."""
    named = [
        *([name, text] for name, text in program.dims.items()),
        *([t.name, sorted(t.choices)] for t in program.tunables),
        *(b.model_dump(mode="json") for b in program.buffers),
    ]
    return {
        "named": named,
        **program.model_dump(mode="json", exclude={"source", "dims", "tunables", "buffers"}),
    }
