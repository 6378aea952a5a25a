"""What the conditions around an expression say about the names in it.

`if (i < n)`, `if (i >= n) return;` and `const bool live = i < n;` cut the range of `i`; any other condition leaves it
open whether a thread gets there with the largest value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tree_sitter import Node

from tools.lint_names import NEGATED, SWAPPED, bare_name, declaration_of
from tools.lint_paths import Guards
from tools.lint_scope import Scope, always
from tools.nvrtc_syntax import text_of

_MAX_DEPTH = 30
_MAX_PARTS = 40
"""Conditions around one place, and comparisons in one: names of conditions may refer to each other many times over."""

_Comparison = tuple[Node, str, Node]


def enter(scope: Scope, guards: Guards) -> None:
    """Cut the scope's ranges by what holds at a place, outer guards first."""
    scope.certain = guards.certain and len(guards.conditions) <= _MAX_PARTS
    for loop in reversed(guards.loops):
        _enter_loop(scope, loop)
    for condition, holds in reversed(guards.conditions[:_MAX_PARTS]):
        for number, part in enumerate(_parts(scope, condition, holds, 0)):
            _refine(scope, part if number < _MAX_PARTS else None)
            if number >= _MAX_PARTS:
                break
    scope.forget()
    # What overflows in a condition is found where the condition's own operands are used.
    scope.overflows.clear()


def _enter_loop(scope: Scope, loop: Node) -> None:
    declaration = loop.child_by_field_name("initializer")
    declarators = declaration.children_by_field_name("declarator") if declaration is not None else []
    value = None
    if declaration is not None and declarators and declarators[0].type == "init_declarator":
        name = text_of(declarators[0].child_by_field_name("declarator"))
        value = scope.local(name, declarators[0], declaration, loop)
    if value is None:
        scope.certain = False
    elif not value.exact:
        scope.blocked |= value.uses


def _parts(scope: Scope, condition: Node, holds: bool, depth: int) -> Iterator[_Comparison | None]:
    """Comparisons that all hold; None for what cannot be read."""
    node = condition
    while node.type in ("parenthesized_expression", "condition_clause") and node.named_children:
        node = node.child_by_field_name("value") or node.named_children[0]
    if depth > _MAX_DEPTH:
        yield None
    elif node.type == "binary_expression":
        yield from _connected(scope, node, holds, depth)
    elif node.type == "unary_expression" and text_of(node.child_by_field_name("operator")) == "!":
        inner = node.child_by_field_name("argument")
        yield from _parts(scope, inner, not holds, depth + 1) if inner is not None else [None]
    else:
        yield from _named(scope, node, holds, depth)


def _connected(scope: Scope, node: Node, holds: bool, depth: int) -> Iterator[_Comparison | None]:
    operator = text_of(node.child_by_field_name("operator"))
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None:
        yield None
    elif operator == ("&&" if holds else "||"):
        yield from _parts(scope, left, holds, depth + 1)
        yield from _parts(scope, right, holds, depth + 1)
    elif operator in NEGATED:
        yield left, operator if holds else NEGATED[operator], right
    else:
        yield None


def _named(scope: Scope, node: Node, holds: bool, depth: int) -> Iterator[_Comparison | None]:
    """A condition that was given a name: `const bool live = row < ROWS;`."""
    declared = declaration_of(node) if node.type == "identifier" else None
    initialiser = declared[0].child_by_field_name("value") if declared is not None else None
    if declared is None or initialiser is None or scope.names.changed(text_of(node), declared[2]):
        yield None
    else:
        yield from _parts(scope, initialiser, holds, depth + 1)


def _refine(scope: Scope, part: _Comparison | None) -> None:
    if part is None:
        scope.certain = False
        return
    left, operator, right = part
    a, b = scope.value(left, plain=False), scope.value(right, plain=False)
    if a is None or b is None:
        scope.certain = False
        return
    known = always(operator, a, b)
    if known is not None:
        scope.certain &= known
        return
    scope.blocked |= {used for used in a.uses | b.uses if used not in scope.refined}
    for node, sign, value, bound in ((left, operator, a, b), (right, SWAPPED[operator], b, a)):
        name = bare_name(node)
        if name is None or sign not in ("<", "<=", ">", ">="):
            continue
        inclusive = sign in ("<=", ">=")
        upper = sign in ("<", "<=")
        kept = value.below(bound, inclusive=inclusive) if upper else value.above(bound, inclusive=inclusive)
        if kept is None:
            scope.certain = False
        else:
            scope.refined[name] = replace(kept, uses=frozenset({name}))
            scope.forget()
