"""What the names in a kernel stand for at one launch: the ranges of its locals, loop variables and scalar arguments.

A local is followed to its initialiser where nothing assigns it again; a loop variable runs from its start to the
bound of its loop's condition. tools.lint_guards cuts the ranges by the conditions around an expression. Does not
cover: values computed by functions, read from memory, or changed after their declaration; they are unknown (None).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from tools.lint_names import LEAVING_LOOP, NEGATED, Names, comparisons, declaration_of
from tools.lint_values import (
    INT,
    UNSIGNED,
    CType,
    Range,
    combined,
    either,
    larger,
    literal,
    number,
    smaller,
    type_named,
)
from tools.nvrtc_syntax import text_of

_MAX_DEPTH = 60
_INDEX = re.compile(r"(threadIdx|blockIdx|blockDim|gridDim)\s*\.\s*([xyz])$")
_ADDITIVE = frozenset({"+", "-", "*", "<<"})


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel in numbers."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    elements: Mapping[str, int]
    """Elements behind each pointer parameter, in units of what it points to."""
    element_bytes: Mapping[str, int]
    scalars: Mapping[str, Range]


@dataclass
class Scope:
    """A kernel's names at one launch. `overflows` gathers the expressions that did not fit their type."""

    names: Names
    launch: Launch
    aliases: Mapping[str, str]
    refined: dict[str, Range] = field(default_factory=dict)
    blocked: set[str] = field(default_factory=set)
    """Variables that a guard has bound: what uses them as they were may not reach its ends any more."""
    certain: bool = True
    overflows: list[tuple[Node, Range]] = field(default_factory=list)
    _known: dict[int, Range | None] = field(default_factory=dict)

    def forget(self) -> None:
        """Ranges of locals are worked out again, after `refined` has changed."""
        self._known.clear()

    def reaches_ends(self, value: Range) -> bool:
        """Some thread gets to the largest value here."""
        return self.certain and value.exact and not value.uses & self.blocked

    def value(self, node: Node, depth: int = 0, *, plain: bool = True) -> Range | None:
        """The expression's range. `plain` is lost below operators where unsigned numbers may wrap on purpose."""
        if depth > _MAX_DEPTH:
            return None
        kind = node.type
        if kind in ("parenthesized_expression", "condition_clause"):
            inner = node.child_by_field_name("value") or next(iter(node.named_children), None)
            return self.value(inner, depth + 1, plain=plain) if inner is not None else None
        if kind == "number_literal":
            return literal(text_of(node))
        if kind in ("true", "false"):
            return number(int(kind == "true"))
        if kind == "identifier":
            return self._name(node, depth)
        if kind == "field_expression":
            return self._index(text_of(node))
        if kind == "cast_expression":
            return self._cast(node, text_of(node.child_by_field_name("type")), "value", depth, plain=plain)
        if kind == "call_expression":
            return self._call(node, depth, plain=plain)
        if kind == "binary_expression":
            return self._binary(node, depth, plain=plain)
        if kind == "conditional_expression":
            return self._choice(node, depth, plain=plain)
        if kind == "unary_expression" and text_of(node.child_by_field_name("operator")) == "!":
            return Range(0, 1, exact=False, step=None)
        return None

    def _index(self, text: str) -> Range | None:
        match = _INDEX.match(text)
        if match is None:
            return None
        axis = "xyz".index(match[2])
        if match[1] in ("blockDim", "gridDim"):
            return number((self.launch.block if match[1] == "blockDim" else self.launch.grid)[axis], UNSIGNED)
        count = (self.launch.block if match[1] == "threadIdx" else self.launch.grid)[axis]
        uses = frozenset({f"{match[1]}.{match[2]}"}) if count > 1 else frozenset()
        return Range(0, count - 1, UNSIGNED, uses=uses)

    def _binary(self, node: Node, depth: int, *, plain: bool) -> Range | None:
        operator = text_of(node.child_by_field_name("operator"))
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return None
        if operator in NEGATED or operator in ("&&", "||"):
            truth = self._truth(node, depth)
            return Range(0, 1, exact=False, step=None) if truth is None else number(int(truth))
        below = plain and operator in _ADDITIVE
        a, b = self.value(left, depth + 1, plain=below), self.value(right, depth + 1, plain=below)
        if a is None or b is None:
            return None
        made = combined(operator, a, b)
        if made is None or made.fits:
            return made
        if made.ctype.signed or (plain and made.low >= 0):
            self.overflows.append((node, made))
        return None

    def _truth(self, node: Node, depth: int) -> bool | None:
        """What a comparison of two numbers, or a connection of such, always is."""
        operator = text_of(node.child_by_field_name("operator"))
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return None
        a, b = self.value(left, depth + 1, plain=False), self.value(right, depth + 1, plain=False)
        if operator in ("&&", "||"):
            known = {r.low != 0 for r in (a, b) if r is not None and (r.single or r.low > 0)}
            decides = operator == "||"
            if decides in known:
                return decides
            both = all(r is not None and (r.single or r.low > 0) for r in (a, b))
            return (not decides) if both else None
        return always(operator, a, b) if a is not None and b is not None else None

    def _choice(self, node: Node, depth: int, *, plain: bool) -> Range | None:
        condition, then, other = (
            node.child_by_field_name(name) for name in ("condition", "consequence", "alternative")
        )
        if condition is None or then is None or other is None:
            return None
        test = self.value(condition, depth + 1, plain=False)
        if test is not None and (test.single or test.low > 0):
            return self.value(then if test.low else other, depth + 1, plain=plain)
        # Either branch may be the one that is not taken: what overflows in it says nothing.
        found = len(self.overflows)
        a, b = self.value(then, depth + 1, plain=plain), self.value(other, depth + 1, plain=plain)
        del self.overflows[found:]
        return either(a, b) if a is not None and b is not None else None

    def _call(self, node: Node, depth: int, *, plain: bool) -> Range | None:
        function, listing = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        arguments = listing.named_children if listing is not None else []
        name = text_of(function)
        if name in ("min", "max", "::min", "::max") and len(arguments) == 2:
            a, b = (self.value(argument, depth + 1, plain=plain) for argument in arguments)
            if a is None or b is None:
                return None
            return smaller(a, b) if name.endswith("min") else larger(a, b)
        if len(arguments) != 1:
            return None
        cast = re.fullmatch(r"static_cast\s*<(.*)>", name, re.DOTALL)
        return self._converted(node, arguments[0], cast[1] if cast else name, depth, plain=plain)

    def _cast(self, node: Node, name: str, where: str, depth: int, *, plain: bool) -> Range | None:
        value = node.child_by_field_name(where)
        return self._converted(node, value, name, depth, plain=plain) if value is not None else None

    def _converted(self, node: Node, value: Node, name: str, depth: int, *, plain: bool) -> Range | None:
        ctype = self.type_of(name)
        inner = self.value(value, depth + 1, plain=plain) if ctype is not None else None
        return self._fitted(node, inner, ctype) if inner is not None and ctype is not None else None

    def _fitted(self, node: Node, value: Range, ctype: CType) -> Range | None:
        made = replace(value, ctype=ctype)
        if made.fits:
            return made
        if value.low >= 0 and ctype.bits >= INT.bits:
            self.overflows.append((node, made))
        return None

    def type_of(self, text: str) -> CType | None:
        """The integer type of a declaration's words, through the source's own aliases."""
        for _ in range(8):
            words = [
                w for w in text.split() if w not in ("const", "constexpr", "volatile", "static", "register")
            ]
            text = " ".join(words)
            if text not in self.aliases:
                break
            text = self.aliases[text]
        return type_named(text)

    # --- names --------------------------------------------------------------------------------------------------

    def _name(self, node: Node, depth: int) -> Range | None:
        name = text_of(node)
        if name in self.refined:
            return self.refined[name]
        declared = declaration_of(node)
        if declared is None:
            return self.launch.scalars.get(name) if not self.names.changed(name) else None
        declarator, declaration, where = declared
        if declarator.id not in self._known:
            self._known[declarator.id] = None  # a variable that uses itself has no value
            self._known[declarator.id] = self.local(name, declarator, declaration, where, depth)
        return self._known[declarator.id]

    def local(
        self, name: str, declarator: Node, declaration: Node, where: Node, depth: int = 0
    ) -> Range | None:
        """The range of a local or loop variable as its declaration and its loop give it."""
        initialiser = (
            declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
        )
        if initialiser is None or initialiser.type == "initializer_list":
            return None
        written = text_of(declaration.child_by_field_name("type"))
        value = self.value(initialiser, depth + 1)
        ctype = value.ctype if written == "auto" and value is not None else self.type_of(written)
        if value is None or ctype is None:
            return None
        loop = where if where.type == "for_statement" else None
        update = loop.child_by_field_name("update") if loop is not None else None
        if self.names.changed(name, where, except_in=update):
            return None
        start = self._fitted(declarator, value, ctype)
        if loop is None or start is None:
            return start
        return self._loop_variable(name, start, loop, depth)

    def _loop_variable(self, name: str, start: Range, loop: Node, depth: int) -> Range | None:
        """From the start to the bound; every step of it where both are plain numbers and nothing breaks out."""
        condition, update = loop.child_by_field_name("condition"), loop.child_by_field_name("update")
        body = loop.child_by_field_name("body")
        step = self._stride(update, name, depth) if update is not None else None
        if condition is None or step is None or body is None:
            return None
        for left, operator, right in comparisons(condition):
            if text_of(left) != name or operator not in ("<", "<="):
                continue
            bound = self.value(right, depth + 1, plain=False)
            if bound is None:
                return None
            limit = bound.high - (operator == "<")
            if limit < start.low:
                return None
            fixed = (
                start.single
                and bound.single
                and not self.names.leaves(body, LEAVING_LOOP)
                and condition.type == "binary_expression"
            )
            uses = frozenset({f"{name}@{loop.start_byte}"})
            # Whatever step comes last before the bound is too large already.
            beyond = limit - step > start.ctype.highest and not self.names.leaves(body, LEAVING_LOOP)
            whole = Range(start.low, limit, start.ctype, exact=beyond, step=None, uses=start.uses | uses)
            if fixed:
                last = start.low + (limit - start.low) // step * step
                whole = Range(start.low, last, start.ctype, step=step, uses=uses)
            return self._fitted(loop, whole, start.ctype)
        return None

    def _stride(self, update: Node, name: str, depth: int) -> int | None:
        if update.type == "update_expression" and "++" in text_of(update):
            return 1
        if update.type != "assignment_expression" or text_of(update.child_by_field_name("left")) != name:
            return None
        right = update.child_by_field_name("right")
        if text_of(update.child_by_field_name("operator")) != "+=" or right is None:
            return None
        value = self.value(right, depth + 1, plain=False)
        return value.low if value is not None and value.low > 0 and value.single else None


def always(operator: str, a: Range, b: Range) -> bool | None:
    """Whether a comparison always or never holds; None where it depends."""
    if operator in (">", ">=", "!="):
        opposite = always(NEGATED[operator], a, b)
        return None if opposite is None else not opposite
    if operator == "==":
        if a.single and b.single:
            return a.low == b.low
        return False if a.high < b.low or b.high < a.low else None
    if a.high < b.low or (operator == "<=" and a.high == b.low):
        return True
    return False if a.low > b.high or (operator == "<" and a.low == b.high) else None
