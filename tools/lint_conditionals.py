"""Leaves out what the preprocessor leaves out: branches of `#if` whose condition the plan's macros decide.

Line numbers stay. A condition that cannot be decided keeps all its branches, and so does one that asks about the
architecture. Not here: whether a condition may be asked at all (tools.lint_environment).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from tools.lint_names import Hidden, Names
from tools.lint_scope import Launch, Scope
from tools.nvrtc_syntax import mask_text, parse_cuda, text_of, walk

_DIRECTIVE = re.compile(r"^[ \t]*(?:#|%:)[ \t]*(?P<word>\w+)(?P<rest>.*)$")
_DEFINED = re.compile(r"\bdefined\b\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
_BRANCHING = frozenset(("if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif"))
_UNDECIDED = frozenset({"__CUDA_ARCH__"})
_MAX_NESTING = 8
_MAX_BODY_CHARS = 200
_MAX_CONDITION_CHARS = 2000
_NOWHERE = Launch((1, 1, 1), (1, 1, 1), {}, {}, {})


@dataclass
class _Branching:
    """One `#if` up to its `#endif`."""

    outside: bool
    """The code around it is compiled."""
    taken: bool = False
    """A branch was certainly taken already."""
    open: bool = True
    """The present branch may be compiled."""


def compiled_text(source: str, defines: tuple[tuple[str, str], ...]) -> str:
    """The source with branches that are certainly not compiled blanked out."""
    if not re.search(r"^[ \t]*(?:#|%:)[ \t]*if", source, re.M):
        return source
    macros = dict(defines)
    stack: list[_Branching] = []
    kept: list[str] = []
    for line, masked in zip(source.split("\n"), mask_text(source).split("\n"), strict=True):
        live = not stack or stack[-1].open
        directive = _DIRECTIVE.match(masked)
        if directive is not None:
            _follow(directive["word"], directive["rest"], stack, macros, live=live)
        branching = directive is not None and directive["word"] in _BRANCHING
        kept.append(line if live and not branching else "")
    return "\n".join(kept)


def _follow(word: str, rest: str, stack: list[_Branching], macros: dict[str, str], *, live: bool) -> None:
    if word in ("if", "ifdef", "ifndef"):
        branch = _Branching(outside=live)
        stack.append(branch)
        _enter(branch, _decide(word, rest, macros))
    elif word in ("elif", "else", "elifdef", "elifndef") and stack:
        _enter(stack[-1], True if word == "else" else _decide(word.removeprefix("el"), rest, macros))
    elif word == "endif" and stack:
        stack.pop()
    elif word == "define" and live and (match := re.match(r"\s*([A-Za-z_]\w*)(?:[ \t]+(.*))?$", rest)):
        body = (match[2] or "").strip()
        macros.setdefault(match[1], body if len(body) <= _MAX_BODY_CHARS else "undecided")


def _enter(branch: _Branching, decision: bool | None) -> None:
    branch.open = branch.outside and not branch.taken and decision is not False
    branch.taken |= decision is True


def _decide(word: str, rest: str, macros: dict[str, str]) -> bool | None:
    if word in ("ifdef", "ifndef"):
        name = rest.strip()
        return None if name in _UNDECIDED else (name in macros) == (word == "ifdef")
    text = _DEFINED.sub(lambda m: _known(m[1] or m[2], macros), rest)
    for _ in range(_MAX_NESTING):
        if len(text) > _MAX_CONDITION_CHARS:
            return None
        text = _NAME.sub(lambda m: f"({macros[m.group()]})" if m.group() in macros else m.group(), text)
    root = parse_cuda(f"int decided = ({text});")
    value = next((n.child_by_field_name("value") for n in walk(root) if n.type == "init_declarator"), None)
    return _truth(value) if value is not None and not root.has_error else None


def _known(name: str, macros: dict[str, str]) -> str:
    return "undecided" if name in _UNDECIDED else str(int(name in macros))


def _truth(value: Node) -> bool | None:
    found = Scope(Names(value, Hidden()), _NOWHERE, {}).value(value)
    if found is not None and (found.single or found.low > 0):
        return found.low != 0
    negated = value.named_children[0] if value.type == "parenthesized_expression" else value
    if negated.type == "unary_expression" and text_of(negated.child_by_field_name("operator")) == "!":
        inner = negated.child_by_field_name("argument")
        truth = _truth(inner) if inner is not None else None
        return None if truth is None else not truth
    return None
