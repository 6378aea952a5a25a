"""How kernels index global memory: tails without a guard, strides across a warp, 32-bit products.

Where the plan's launches are known, tools.lint_sizes judges by numbers first, and the heuristics here speak only of
what it could not work out. A kernel pointer parameter is global memory; locals are followed to the expression they were
initialised with. Does not cover: pointers derived from parameters, and indices that change in a loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from tools.lint_findings import LintFinding
from tools.lint_names import Names, declaration_of, hidden_in
from tools.lint_paths import kernels
from tools.lint_scope import Launch, Scope
from tools.lint_sizes import Sized, aliases_in, short, sized
from tools.lint_values import INT
from tools.nvrtc_syntax import line_at, text_of, walk

_COMPARISON = frozenset({"<", "<=", ">", ">=", "!=", "==", "&&", "||"})
_GUARDING = frozenset(
    "if_statement for_statement while_statement do_statement switch_statement conditional_expression".split()
)
_WIDE = re.compile(r"\b(?:size_t|ssize_t|ptrdiff_t|u?int64_t|long|uintptr_t)\b|\d[uU]?[lL]")
_MAX_FOLLOWED = 8
_OVERFLOW_DEPTH = 3
_SHORT_STRIDE = 4
"""Elements. Threads that own up to four neighbouring elements use every byte of the lines they touch."""
_SMALL_BYTES = 4096
"""A tensor of this size is in the first-level cache after its first use, in whatever order it is read."""


@dataclass(frozen=True)
class _Kernel:
    """One kernel with what is known about its names and launches."""

    names: Names
    body: Node
    pointers: set[str]
    values: dict[str, Node]
    launches: tuple[Launch, ...]
    aliases: Mapping[str, str]
    sized: Sized


def access_findings(root: Node, launches: Mapping[str, tuple[Launch, ...]]) -> list[LintFinding]:
    """Findings by numbers and by heuristics, at most one of each per kernel and parameter.

    `launches` are the plan's, by kernel; where there is none the heuristics speak alone.
    """
    found: list[LintFinding] = []
    aliases, hidden = aliases_in(root), hidden_in(root)
    for function in kernels(root):
        body = function.child_by_field_name("body")
        if body is None:
            continue
        mine = launches.get(_name_of(function), ())
        names = Names(function, hidden)
        judged = sized(names, mine, aliases)
        found += judged.findings
        kernel = _Kernel(names, body, _pointer_params(function), _initialisers(body), mine, aliases, judged)
        found += _doubtful(kernel)
        found += _unguarded(kernel)
    return found


def _doubtful(kernel: _Kernel) -> Iterator[LintFinding]:
    strided: set[str] = set()
    overflowing = any(f.rule == "index-overflow" for f in kernel.sized.findings)
    for node in walk(kernel.body):
        base = text_of(node.child_by_field_name("argument")) if node.type == "subscript_expression" else ""
        index = _index_of(node) if base in kernel.pointers else None
        if index is None:
            continue
        if base not in strided and _is_uncoalesced(kernel, base, index):
            strided.add(base)
            message = f"neighbouring threads read or write `{base}` with a stride: `{short(index)}`"
            remedy = "let threadIdx.x be the fastest index, or stage the tile through shared memory"
            yield LintFinding("uncoalesced", "warning", line_at(node), message, remedy)
        if not overflowing and _may_overflow(kernel, base, node, index):
            overflowing = True
            message = f"`{short(index)}` multiplies in 32 bits and overflows beyond 2^31 elements"
            remedy = "make one factor `long long` if the tensor can be that large"
            yield LintFinding("index-overflow", "warning", line_at(node), message, remedy)


def _is_uncoalesced(kernel: _Kernel, base: str, index: Node) -> bool:
    """A stride across a warp that matters: not a few elements, not a small tensor, not one thread alone."""
    strides = _strides(index, kernel.values)
    if not kernel.launches:
        return any(_is_long(kernel, None, factor) for factor in strides)
    for launch in kernel.launches:
        size = launch.elements.get(base, _SMALL_BYTES + 1) * launch.element_bytes.get(base, 1)
        if launch.block[0] > 1 and size > _SMALL_BYTES:
            return any(_is_long(kernel, launch, factor) for factor in strides)
    return False


def _is_long(kernel: _Kernel, launch: Launch | None, factor: Node) -> bool:
    somewhere = launch or Launch((1, 1, 1), (1, 1, 1), {}, {}, {})
    value = Scope(kernel.names, somewhere, kernel.aliases).value(factor)
    known = value is not None and value.single and (launch is not None or not value.uses)
    return value is None or not known or value.high > _SHORT_STRIDE


def _may_overflow(kernel: _Kernel, base: str, node: Node, index: Node) -> bool:
    """Deep products in 32 bits; where the sizes are known, any product into a tensor that 32 bits do not span."""
    if node.start_byte in kernel.sized.known:
        return False
    sizes = [launch.elements[base] for launch in kernel.launches if base in launch.elements]
    depth = _depth(index, kernel.values, 0, literals=bool(sizes))
    deep = depth > 0 and max(sizes) > INT.highest if sizes else depth >= _OVERFLOW_DEPTH
    return deep and not _is_wide(index, kernel.values, kernel.aliases)


def _unguarded(kernel: _Kernel) -> Iterator[LintFinding]:
    """A store at a grid-wide index with no comparison anywhere before it."""
    body, pointers, values = kernel.body, kernel.pointers, kernel.values
    if kernel.sized.findings or kernel.names.opaque:
        return
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
        if base not in pointers or index is None or left.start_byte in kernel.sized.inside:
            continue
        if any(kernel.names.changed(text_of(n)) for n in walk(index) if n.type == "identifier"):
            continue
        reached = _reached_text(index, values, 0)
        if all(re.search(rf"\b{word}\b", reached) for word in ("blockIdx", "blockDim", "threadIdx")):
            message = f"`{base}[{short(index)}]` is stored with no bounds check before it"
            remedy = "guard the tail with `if (index < n)`, or prove that the grid divides the size"
            yield LintFinding("unguarded-tail", "warning", line_at(left), message, remedy)
            return


def _name_of(function: Node) -> str:
    declarator = next((n for n in walk(function) if n.type == "function_declarator"), None)
    return text_of(declarator.child_by_field_name("declarator")) if declarator is not None else ""


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


def _strides(node: Node, values: dict[str, Node], level: int = 0) -> list[Node]:
    """What threadIdx.x is multiplied by on its way into the index. Division and remainder end the search."""
    node = _resolved(node, values)
    parts = _operands(node)
    if parts is None or level > _MAX_FOLLOWED:
        return []
    operator, left, right = parts
    found = [b for a, b in ((left, right), (right, left)) if operator == "*" and _follows_thread(a, values)]
    if operator in ("+", "-", "*"):
        found += [f for side in (left, right) for f in _strides(side, values, level + 1)]
    return found


def _depth(node: Node, values: dict[str, Node], level: int, *, literals: bool = False) -> int:
    """How many factors are multiplied on top of each other; those that are literals count where asked for."""
    node = _resolved(node, values)
    parts = _operands(node)
    if parts is None or level > _MAX_FOLLOWED:
        return 0
    operator, left, right = parts
    deepest = max(_depth(side, values, level + 1, literals=literals) for side in (left, right))
    if operator != "*":
        return deepest if operator in ("+", "-") else 0
    literal = any(_resolved(side, values).type == "number_literal" for side in (left, right))
    return deepest + (0 if literal and not literals else 1)


def _is_wide(node: Node, values: dict[str, Node], aliases: Mapping[str, str]) -> bool:
    """Something in the expression, or the type of a local it uses, is 64 bits wide."""
    texts = [_reached_text(node, values, 0)]
    for name in (n for n in walk(node) if n.type == "identifier" and text_of(n) not in values):
        declared = declaration_of(name)
        texts += [text_of(declared[1].child_by_field_name("type"))] if declared is not None else []
    text = " ".join(texts)
    return _WIDE.search(re.sub(r"\w+", lambda m: aliases.get(m.group(), m.group()), text)) is not None


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
