"""What stands between a kernel's start and one of its expressions: branches, loops, short circuits, early returns.

Read off the syntax tree; the code that an `#if` leaves out should be gone from it. Does not cover: conditions that are
always true (they count as conditions) and jumps by goto (nothing behind one is certain).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from tree_sitter import Node

from tools.lint_names import LEAVING, LEAVING_FUNCTION, Names, Span, hidden_in
from tools.nvrtc_syntax import nodes_of, parse_cuda, text_of

_UNKNOWN_REPEAT = frozenset({"while_statement", "do_statement", "switch_statement", "lambda_expression"})


@dataclass
class Guards:
    """The conditions that hold where an expression is evaluated."""

    conditions: list[tuple[Node, bool]] = field(default_factory=list)
    """Condition, and whether it is true there."""
    loops: list[Node] = field(default_factory=list)
    """`for` statements around it."""
    certain: bool = True
    """Nothing else decides whether it is reached."""


def kernels(root: Node) -> list[Node]:
    """The `__global__` functions that have a body."""
    return [
        node
        for node in nodes_of(root, "function_definition")
        if any(child.type == "__global__" for child in node.children)
        and node.child_by_field_name("body") is not None
    ]


def guards_of(node: Node, names: Names) -> Guards:
    """Everything that decides whether a thread reaches `node` inside the function of `names`."""
    guards = Guards(certain=not names.opaque)
    while node.parent is not None and node.type != "function_definition":
        parent = node.parent
        if parent.type == "compound_statement":
            _add_exits(guards, parent, node, names)
        elif parent.type == "for_statement":
            if node in (parent.child_by_field_name("body"), parent.child_by_field_name("update")):
                guards.loops.append(parent)
        elif parent.type in _UNKNOWN_REPEAT:
            guards.certain = False
        else:
            _add_branch(guards, parent, node)
        node = parent
    return guards


def is_certain_at(source: str, line: int, column: int) -> bool:
    """Whether every thread of a kernel reaches the code at a 1-based position of the source."""
    root = _parsed(source)
    point = (line - 1, column - 1)
    node = root.descendant_for_point_range(point, point)
    for kernel in kernels(root) if node is not None else []:
        if node is not None and kernel.start_byte <= node.start_byte < kernel.end_byte:
            guards = guards_of(node, Names(kernel, hidden_in(root)))
            return guards.certain and not guards.conditions and not guards.loops
    return False


def _add_branch(guards: Guards, parent: Node, child: Node) -> None:
    condition = parent.child_by_field_name("condition")
    if parent.type in ("if_statement", "conditional_expression") and condition is not None:
        if child == parent.child_by_field_name("consequence"):
            guards.conditions.append((condition, True))
        elif child == parent.child_by_field_name("alternative"):
            guards.conditions.append((condition, False))
        return
    operator, left = text_of(parent.child_by_field_name("operator")), parent.child_by_field_name("left")
    second = child == parent.child_by_field_name("right")
    if parent.type == "binary_expression" and operator in ("&&", "||") and left is not None and second:
        guards.conditions.append((left, operator == "&&"))


def _add_exits(guards: Guards, block: Node, child: Node, names: Names) -> None:
    """`if (i >= n) return;` before the child; any other way out leaves it uncertain."""
    before = Span(block.start_byte, child.start_byte)
    for sibling in block.named_children if names.leaves(before) else ():
        if sibling == child:
            return
        if not names.leaves(sibling):
            continue
        condition = sibling.child_by_field_name("condition")
        then = sibling.child_by_field_name("consequence")
        simple = (
            sibling.type == "if_statement"
            and sibling.child_by_field_name("alternative") is None
            and then is not None
            and _always_leaves(then)
        )
        if simple and condition is not None:
            guards.conditions.append((condition, False))
        elif names.leaves(sibling, LEAVING_FUNCTION) or not _repeats(sibling):
            guards.certain = False


def _always_leaves(statement: Node) -> bool:
    if statement.type == "compound_statement":
        return bool(statement.named_children) and _always_leaves(statement.named_children[-1])
    return statement.type in LEAVING


def _repeats(statement: Node) -> bool:
    """A break or continue inside stays inside."""
    return statement.type in ("for_statement", "while_statement", "do_statement", "switch_statement")


@lru_cache(maxsize=8)
def _parsed(source: str) -> Node:
    return parse_cuda(source)
