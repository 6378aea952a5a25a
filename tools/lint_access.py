"""Heuristics on how kernels index global memory: tails without a guard, strides across a warp, 32-bit products.

A kernel pointer parameter is global memory; locals are followed to the expression they were initialised with.
Does not cover: pointers derived from parameters, and indices that change in a loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from tools.lint_findings import LintFinding
from tools.nvrtc_syntax import line_at, text_of, walk

_COMPARISON = frozenset({"<", "<=", ">", ">=", "!=", "==", "&&", "||"})
_GUARDING = frozenset(
    {"if_statement", "for_statement", "while_statement", "do_statement", "conditional_expression"}
)
_WIDE = re.compile(r"\b(?:size_t|ssize_t|ptrdiff_t|u?int64_t|long|uintptr_t)\b|\d[uU]?[lL]")
_MAX_FOLLOWED = 8
_OVERFLOW_DEPTH = 3


def access_findings(root: Node) -> list[LintFinding]:
    """Findings of the three heuristics, at most one of each per kernel and parameter."""
    found: list[LintFinding] = []
    for function in walk(root):
        if function.type == "function_definition" and any(c.type == "__global__" for c in function.children):
            body = function.child_by_field_name("body")
            if body is not None:
                found += _kernel(function, body)
    return found


def _kernel(function: Node, body: Node) -> Iterator[LintFinding]:
    pointers = _pointer_params(function)
    values = _initialisers(body)
    strided: set[str] = set()
    overflowing = False
    for node in walk(body):
        base = text_of(node.child_by_field_name("argument")) if node.type == "subscript_expression" else ""
        index = _index_of(node) if base in pointers else None
        if index is None:
            continue
        if base not in strided and _is_strided(index, values):
            strided.add(base)
            message = f"neighbouring threads read or write `{base}` with a stride: `{_short(index)}`"
            remedy = "let threadIdx.x be the fastest index, or stage the tile through shared memory"
            yield LintFinding("uncoalesced", "warning", line_at(node), message, remedy)
        if not overflowing and not _is_wide(index, values, 0) and _depth(index, values, 0) >= _OVERFLOW_DEPTH:
            overflowing = True
            message = f"`{_short(index)}` multiplies in 32 bits and overflows beyond 2^31 elements"
            remedy = "make one factor `long long` if the tensor can be that large"
            yield LintFinding("index-overflow", "warning", line_at(node), message, remedy)
    yield from _unguarded(body, pointers, values)


def _unguarded(body: Node, pointers: set[str], values: dict[str, Node]) -> Iterator[LintFinding]:
    """A store at a grid-wide index with no comparison anywhere before it."""
    for node in walk(body):
        operator = text_of(node.child_by_field_name("operator"))
        if node.type in _GUARDING or (node.type == "binary_expression" and operator in _COMPARISON):
            return
        if node.type == "call_expression" and re.search(
            r"\bmin\b", text_of(node.child_by_field_name("function"))
        ):
            return
        left = node.child_by_field_name("left") if node.type == "assignment_expression" else None
        if left is None or left.type != "subscript_expression":
            continue
        base, index = text_of(left.child_by_field_name("argument")), _index_of(left)
        if base not in pointers or index is None:
            continue
        reached = _reached_text(index, values, 0)
        if all(re.search(rf"\b{word}\b", reached) for word in ("blockIdx", "blockDim", "threadIdx")):
            message = f"`{base}[{_short(index)}]` is stored with no bounds check before it"
            remedy = "guard the tail with `if (index < n)`, or prove that the grid divides the size"
            yield LintFinding("unguarded-tail", "warning", line_at(left), message, remedy)
            return


def _pointer_params(function: Node) -> set[str]:
    declarator = next((n for n in walk(function) if n.type == "function_declarator"), None)
    listing = declarator.child_by_field_name("parameters") if declarator is not None else None
    names: set[str] = set()
    for param in listing.named_children if listing is not None else []:
        kinds = {n.type for n in walk(param)}
        if kinds & {"pointer_declarator", "array_declarator"}:
            names |= {text_of(n) for n in walk(param) if n.type == "identifier"}
    return names


def _initialisers(body: Node) -> dict[str, Node]:
    """Locals that are set once, by name; one that is assigned again is left out."""
    values: dict[str, Node] = {}
    changed: set[str] = set()
    for node in walk(body):
        if node.type == "init_declarator":
            name, value = text_of(node.child_by_field_name("declarator")), node.child_by_field_name("value")
            if name in values or value is None:
                changed.add(name)
            else:
                values[name] = value
        elif node.type == "assignment_expression":
            changed.add(text_of(node.child_by_field_name("left")))
        elif node.type == "update_expression":
            changed.add(text_of(node.child_by_field_name("argument")))
    return {name: value for name, value in values.items() if name not in changed}


def _index_of(node: Node) -> Node | None:
    indices = node.child_by_field_name("indices") or node.child_by_field_name("index")
    if indices is None:
        return None
    return indices.named_children[0] if indices.type == "subscript_argument_list" else indices


def _operands(node: Node) -> tuple[str, Node, Node] | None:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if node.type != "binary_expression" or left is None or right is None:
        return None
    return text_of(node.child_by_field_name("operator")), left, right


def _resolved(node: Node, values: dict[str, Node]) -> Node:
    """Without parentheses and casts, and locals replaced by what they were initialised with."""
    for _ in range(_MAX_FOLLOWED):
        if node.type == "parenthesized_expression" and node.named_child_count:
            node = node.named_children[0]
        elif node.type == "cast_expression" and (value := node.child_by_field_name("value")) is not None:
            node = value
        elif node.type == "identifier" and text_of(node) in values:
            node = values[text_of(node)]
        else:
            break
    return node


def _follows_thread(node: Node, values: dict[str, Node], level: int = 0) -> bool:
    """The value grows by one from a thread to its neighbour: threadIdx.x plus what is the same for both."""
    node = _resolved(node, values)
    if text_of(node).replace(" ", "") == "threadIdx.x":
        return True
    parts = _operands(node)
    if parts is None or parts[0] not in ("+", "-") or level > _MAX_FOLLOWED:
        return False
    return _follows_thread(parts[1], values, level + 1) or (
        parts[0] == "+" and _follows_thread(parts[2], values, level + 1)
    )


def _is_strided(node: Node, values: dict[str, Node], level: int = 0) -> bool:
    """threadIdx.x is multiplied on its way into the index. Division and remainder end the search."""
    node = _resolved(node, values)
    parts = _operands(node)
    if parts is None or level > _MAX_FOLLOWED:
        return False
    operator, left, right = parts
    if operator == "*":
        pairs = ((left, right), (right, left))
        hit = any(_follows_thread(a, values) and text_of(b).strip("()") != "1" for a, b in pairs)
        return hit or any(_is_strided(side, values, level + 1) for side in (left, right))
    if operator in ("+", "-"):
        return any(_is_strided(side, values, level + 1) for side in (left, right))
    return False


def _depth(node: Node, values: dict[str, Node], level: int) -> int:
    """How many factors that are no literals are multiplied on top of each other."""
    node = _resolved(node, values)
    parts = _operands(node)
    if parts is None or level > _MAX_FOLLOWED:
        return 0
    operator, left, right = parts
    deepest = max(_depth(left, values, level + 1), _depth(right, values, level + 1))
    if operator != "*":
        return deepest if operator in ("+", "-") else 0
    literal = any(_resolved(side, values).type == "number_literal" for side in (left, right))
    return deepest + (0 if literal else 1)


def _is_wide(node: Node, values: dict[str, Node], level: int) -> bool:
    """Something in the expression, or the type of a local it uses, is 64 bits wide."""
    return _WIDE.search(_reached_text(node, values, level)) is not None


def _reached_text(node: Node, values: dict[str, Node], level: int) -> str:
    """The expression's text with that of the locals it uses, and the types they were declared with."""
    texts = [text_of(node)]
    if level < _MAX_FOLLOWED:
        for name in {text_of(n) for n in walk(node) if n.type == "identifier"} & values.keys():
            value = values[name]
            declaration = value.parent.parent if value.parent is not None else None
            kind = text_of(declaration.child_by_field_name("type")) if declaration is not None else ""
            texts += [kind, _reached_text(value, values, level + 1)]
    return " ".join(texts)


def _short(node: Node) -> str:
    return " ".join(text_of(node).split())[:60]
