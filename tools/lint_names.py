"""Names in a kernel: which declaration one means, whether anything changes it afterwards, and where it is left."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from tools.nvrtc_syntax import nodes_of, text_of, walk

LEAVING = frozenset({"return_statement", "goto_statement", "break_statement", "continue_statement"})
LEAVING_LOOP = LEAVING - {"continue_statement"}
LEAVING_FUNCTION = frozenset({"return_statement", "goto_statement"})
_CONTROL = re.compile(r"\b(?:if|for|while|do|switch|return|goto|break|continue)\b|\?|&&|\|\|")
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def comparisons(condition: Node) -> Iterator[tuple[Node, str, Node]]:
    stack = [condition]
    while stack:
        node = stack.pop()
        operator = text_of(node.child_by_field_name("operator"))
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is not None and right is not None:
            if operator == "&&":
                stack += [right, left]
            elif operator in SWAPPED:
                yield left, operator, right


def bare_name(node: Node) -> str | None:
    while node.type in ("parenthesized_expression", "cast_expression"):
        inner = node.child_by_field_name("value")
        if inner is None and not node.named_children:
            return None
        node = inner or node.named_children[0]
    return text_of(node) if node.type == "identifier" else None


def declaration_of(use: Node) -> tuple[Node, Node, Node] | None:
    """(declarator, declaration, where the name lives) of the local that an identifier means."""
    name, node = text_of(use), use
    while node.parent is not None and node.type != "function_definition":
        parent = node.parent
        before: list[Node] = []
        if parent.type in ("compound_statement", "case_statement"):
            before = [n for n in parent.named_children if n.end_byte <= node.start_byte]
        elif parent.type == "for_statement" and node != parent.child_by_field_name("initializer"):
            start = parent.child_by_field_name("initializer")
            before = [start] if start is not None else []
        for statement in reversed(before):
            for declarator in (
                statement.children_by_field_name("declarator") if statement.type == "declaration" else []
            ):
                if name in [text_of(n) for n in walk(declarator) if n.type == "identifier"][:1]:
                    return declarator, statement, parent
        node = parent
    return None


@dataclass(frozen=True)
class Hidden:
    """What a call may do that its text does not show."""

    control: frozenset[str] = frozenset()
    """Macros with branches, loops or returns in them."""
    changing: frozenset[str] = frozenset()
    """Function-like macros, and functions that take a reference they may write through."""

    def changes_arguments(self, call: Node) -> bool:
        """The call may assign to the variables among its arguments."""
        function = call.child_by_field_name("function")
        if function is not None and function.type == "template_function":
            function = function.child_by_field_name("name")
        name = re.split(r"\.|->|::", text_of(function))[-1].strip()
        return name in self.changing or "operator()" in self.changing


def hidden_in(root: Node) -> Hidden:
    """The macros and functions of a source that hide something from a reader of their calls."""
    control: set[str] = set()
    changing: set[str] = set()
    kinds = ("preproc_function_def", "preproc_def", "function_declarator", "init_declarator")
    for node in nodes_of(root, *kinds):
        if node.type in ("preproc_function_def", "preproc_def"):
            name = text_of(node.child_by_field_name("name"))
            if node.type == "preproc_function_def":
                changing.add(name)
            if _CONTROL.search(text_of(node.child_by_field_name("value"))):
                control.add(name)
        elif _writes_through(node):
            changing.add(text_of(node.child_by_field_name("declarator")))
    return Hidden(frozenset(control), frozenset(changing))


def _writes_through(declarator: Node) -> bool:
    """The function, or the lambda that a variable is initialised with, takes a reference to what is not const."""
    value = declarator.child_by_field_name("value")
    if declarator.type == "init_declarator" and (value is None or value.type != "lambda_expression"):
        return False
    listing = next((n for n in walk(declarator) if n.type == "parameter_list"), None)
    return any(
        "&" in text_of(parameter) and not re.search(r"\bconst\b", text_of(parameter))
        for parameter in (listing.named_children if listing is not None else [])
    )


@dataclass(frozen=True)
class Span:
    """Part of a source by byte offsets."""

    start_byte: int
    end_byte: int


class Names:
    """Where the names of one function are assigned, counted up or down, or have their address taken; where it is left.

    Read once for each function, as every access asks.
    """

    def __init__(self, function: Node, hidden: Hidden) -> None:
        self.function = function
        self.nodes = 0
        self.opaque = function.has_error
        """Control flow that the tree does not show."""
        self._changed: dict[str, list[int]] = {}
        self._exits: dict[str, list[int]] = {}
        for node in walk(function):
            self.nodes += 1
            if node.type in LEAVING:
                self._exits.setdefault(node.type, []).append(node.start_byte)
            self.opaque |= node.type == "identifier" and text_of(node) in hidden.control
            if node.type == "call_expression" and hidden.changes_arguments(node):
                for argument in walk(node):
                    self._changed.setdefault(text_of(argument), []).append(node.start_byte)
            target = None
            if node.type == "assignment_expression":
                target = node.child_by_field_name("left")
            elif node.type in ("update_expression", "pointer_expression"):
                target = node.child_by_field_name("argument")
            if target is not None and (node.type != "pointer_expression" or text_of(node).startswith("&")):
                self._changed.setdefault(text_of(target), []).append(node.start_byte)

    def leaves(self, where: Node | Span, kinds: frozenset[str] = LEAVING) -> bool:
        """A return, goto, break or continue stands inside."""
        for kind in kinds:
            at = self._exits.get(kind, [])
            first = bisect_left(at, where.start_byte)
            if first < len(at) and at[first] < where.end_byte:
                return True
        return False

    def changed(self, name: str, where: Node | None = None, *, except_in: Node | None = None) -> bool:
        """Inside `where` (the whole function by default) but not inside `except_in`."""
        inside = where or self.function
        return any(
            inside.start_byte <= at < inside.end_byte
            and (except_in is None or not except_in.start_byte <= at < except_in.end_byte)
            for at in self._changed.get(name, ())
        )
