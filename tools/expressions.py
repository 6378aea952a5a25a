"""Integer expressions of a launch plan: parsed and evaluated here, never by Python's `eval`.

Grammar: integers, names, `tensor.shape[i]`, `tensor.stride[i]`, `+ - * // %`, parentheses and the functions
`min`, `max` (two or more arguments) and `ceil_div(a, b)`. Values are Python integers within ±2^62, so that no
expression can build a number large enough to hang us. Division and remainder round towards minus infinity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from memory.records import TensorSpec

LIMIT = 1 << 62
MAX_DEPTH = 50
_TOKEN = re.compile(r"\s*(?:([0-9]+)|([A-Za-z_][A-Za-z0-9_]*)|(//|[-+*%(),.\[\]]))")


class ExpressionError(ValueError):
    """The expression does not parse, names something unknown, divides by zero or leaves ±2^62."""


@dataclass(frozen=True)
class Scope:
    """What names mean: `numbers` for dims and tunables, `tensors` for shapes and strides."""

    numbers: Mapping[str, int]
    tensors: Mapping[str, TensorSpec]


@dataclass(frozen=True)
class _Number:
    value: int


@dataclass(frozen=True)
class _Name:
    name: str


@dataclass(frozen=True)
class _Size:
    tensor: str
    field: Literal["shape", "stride"]
    index: int


@dataclass(frozen=True)
class _Call:
    function: str
    arguments: tuple[_Tree, ...]


_Tree = _Number | _Name | _Size | _Call


def evaluate(text: str, scope: Scope) -> int:
    """Value of `text` in `scope`. Raises ExpressionError with what is wrong and what is known."""
    return _value(parse(text), scope, text)


def names_in(text: str) -> frozenset[str]:
    """Names of numbers and tensors that `text` reads. Raises ExpressionError where it does not parse."""
    return frozenset(_names(parse(text)))


@lru_cache(maxsize=4096)
def parse(text: str) -> _Tree:
    """Syntax tree of `text`. Raises ExpressionError."""
    parser = _Parser(text)
    tree = parser.sum(0)
    parser.expect_end()
    return tree


class _Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.at = 0

    def peek(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self) -> str:
        token = self.peek()
        if token is None:
            raise ExpressionError(f"{self.text!r} ends where a value was expected")
        self.at += 1
        return token

    def expect(self, wanted: str) -> None:
        found = self.peek()
        if found != wanted:
            raise ExpressionError(f"{self.text!r}: expected {wanted!r}, found {found or 'the end'!r}")
        self.at += 1

    def expect_end(self) -> None:
        if self.peek() is not None:
            raise ExpressionError(f"{self.text!r}: unexpected {self.peek()!r}")

    def sum(self, depth: int) -> _Tree:
        if depth > MAX_DEPTH:
            raise ExpressionError(f"{self.text!r} is nested more than {MAX_DEPTH} deep")
        tree = self.product(depth)
        while self.peek() in ("+", "-"):
            tree = _Call(self.take(), (tree, self.product(depth)))
        return tree

    def product(self, depth: int) -> _Tree:
        tree = self.unary(depth)
        while self.peek() in ("*", "//", "%"):
            tree = _Call(self.take(), (tree, self.unary(depth)))
        return tree

    def unary(self, depth: int) -> _Tree:
        if self.peek() == "-":
            self.take()
            if depth > MAX_DEPTH:
                raise ExpressionError(f"{self.text!r} is nested more than {MAX_DEPTH} deep")
            return _Call("-", (_Number(0), self.unary(depth + 1)))
        return self.atom(depth)

    def atom(self, depth: int) -> _Tree:
        token = self.take()
        if token == "(":
            tree = self.sum(depth + 1)
            self.expect(")")
            return tree
        if token.isdigit():
            return _Number(int(token))
        if not (token[0].isalpha() or token[0] == "_"):
            raise ExpressionError(f"{self.text!r}: unexpected {token!r}")
        if self.peek() == "(":
            return self.call(token, depth)
        if self.peek() == ".":
            return self.size(token)
        return _Name(token)

    def call(self, function: str, depth: int) -> _Tree:
        if function not in ("min", "max", "ceil_div"):
            raise ExpressionError(f"{self.text!r}: no function {function!r}; use min, max or ceil_div")
        self.expect("(")
        arguments = [self.sum(depth + 1)]
        while self.peek() == ",":
            self.take()
            arguments.append(self.sum(depth + 1))
        self.expect(")")
        wrong = len(arguments) != 2 if function == "ceil_div" else len(arguments) < 2
        if wrong:
            raise ExpressionError(f"{self.text!r}: {function} was given {len(arguments)} arguments")
        return _Call(function, tuple(arguments))

    def size(self, tensor: str) -> _Tree:
        self.expect(".")
        field = self.take()
        if field not in ("shape", "stride"):
            raise ExpressionError(f"{self.text!r}: a tensor has .shape[i] and .stride[i], not .{field}")
        self.expect("[")
        sign = -1 if self.peek() == "-" else 1
        if sign < 0:
            self.take()
        index = self.take()
        if not index.isdigit():
            raise ExpressionError(f"{self.text!r}: the index in .{field}[...] must be an integer literal")
        self.expect("]")
        return _Size(tensor, "shape" if field == "shape" else "stride", sign * int(index))


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    stripped = text.rstrip()
    while at < len(stripped):
        match = _TOKEN.match(stripped, at)
        if match is None:
            raise ExpressionError(
                f"{text!r}: unexpected {stripped[at:].lstrip()[:1]!r}; integers, names, x.shape[i], "
                "+ - * // %, min, max and ceil_div are allowed"
            )
        if match.group(1) and len(match.group(1)) > 19:
            raise ExpressionError(f"{text!r}: integer {match.group(1)[:10]}... is out of range")
        tokens.append(match.group().strip())
        at = match.end()
    if not tokens:
        raise ExpressionError("the expression is empty")
    return tokens


def _names(tree: _Tree) -> list[str]:
    if isinstance(tree, _Name):
        return [tree.name]
    if isinstance(tree, _Size):
        return [tree.tensor]
    if isinstance(tree, _Call):
        return [name for argument in tree.arguments for name in _names(argument)]
    return []


def _value(tree: _Tree, scope: Scope, text: str) -> int:
    if isinstance(tree, _Number):
        return tree.value
    if isinstance(tree, _Name):
        if tree.name not in scope.numbers:
            known = ", ".join(sorted(scope.numbers)) or "none"
            raise ExpressionError(f"{text!r}: unknown name {tree.name!r}; dims and tunables: {known}")
        return scope.numbers[tree.name]
    if isinstance(tree, _Size):
        return _size_value(tree, scope, text)
    values = [_value(argument, scope, text) for argument in tree.arguments]
    if tree.function in ("//", "%", "ceil_div") and values[1] == 0:
        raise ExpressionError(f"{text!r} divides by zero")
    result = _FUNCTIONS[tree.function](*values)
    if abs(result) > LIMIT:
        raise ExpressionError(f"{text!r} leaves the range of ±2^62")
    return result


def _size_value(tree: _Size, scope: Scope, text: str) -> int:
    spec = scope.tensors.get(tree.tensor)
    if spec is None:
        known = ", ".join(sorted(scope.tensors)) or "none"
        raise ExpressionError(f"{text!r}: unknown tensor {tree.tensor!r}; tensors: {known}")
    sizes = spec.shape if tree.field == "shape" else spec.strides
    if not -len(sizes) <= tree.index < len(sizes):
        raise ExpressionError(f"{text!r}: {tree.tensor} has {len(sizes)} dimensions, no index {tree.index}")
    return sizes[tree.index]


_FUNCTIONS: dict[str, Callable[..., int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "ceil_div": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
}
