"""A heuristic for races on shared memory: written by one thread, read by another, no barrier in between.

Follows a kernel's statements in order; both branches of an `if` start from the same state, a loop's body is seen
once. Two accesses with the same index text are taken for the same thread's, unless the index is the same for all
threads and the write stood under a condition. Covers: named __shared__ arrays and scalars. Does not cover: pointers
into shared memory, races across loop iterations, barriers under conditions (taken as barriers).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tree_sitter import Node

from tools.lint_findings import LintFinding
from tools.nvrtc_syntax import line_at, text_of, walk

_BARRIER = re.compile(
    r"__sync(?:threads|warp)\w*|__barrier_sync\w*|\bsync\b|\bbarrier\b|\bwait\w*|\barrive\w*|\basm\b|__asm"
    r"|__pipeline_wait_prior|consumer_wait|store_matrix_sync|load_matrix_sync"
)
_UPDATES = frozenset({"assignment_expression", "update_expression"})


@dataclass
class _Writes:
    """Shared objects written since the last barrier: index text and whether it was under a condition."""

    pending: dict[str, list[tuple[str, tuple[int, int] | None]]] = field(default_factory=dict)

    def copy(self) -> _Writes:
        return _Writes({name: list(found) for name, found in self.pending.items()})

    def merge(self, other: _Writes) -> None:
        for name, found in other.pending.items():
            mine = self.pending.setdefault(name, [])
            mine += [item for item in found if item not in mine]


class _Scan:
    """One kernel's walk."""

    def __init__(self, shared: frozenset[str], aliases: dict[str, str]) -> None:
        self.shared = shared
        self.aliases = aliases
        self.found: dict[str, LintFinding] = {}

    def statement(self, node: Node, writes: _Writes, condition: tuple[int, int] | None) -> _Writes:
        """Walk a statement and return the writes pending after it."""
        if node.type == "if_statement":
            return self._branch(node, writes)
        if node.type in ("call_expression", "gnu_asm_expression") and _is_barrier(node):
            return _Writes()
        if node.type in _UPDATES:
            return self._assignment(node, writes, condition)
        name, index = self._access(node)
        if name:
            self._read(name, index, line_at(node), writes, (node.start_byte, node.end_byte))
            for child in node.named_children[1:]:
                writes = self.statement(child, writes, condition)
            return writes
        if node.type == "init_declarator":
            value = node.child_by_field_name("value")
            return self.statement(value, writes, condition) if value is not None else writes
        if node.type == "declaration":
            for child in node.named_children:
                if child.type == "init_declarator":  # the declared names themselves are no reads
                    writes = self.statement(child, writes, condition)
            return writes
        for child in node.named_children:
            writes = self.statement(child, writes, condition)
        return writes

    def _branch(self, node: Node, writes: _Writes) -> _Writes:
        span = (node.start_byte, node.end_byte)
        condition = node.child_by_field_name("condition")
        if condition is not None:
            writes = self.statement(condition, writes, None)
        then, other = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        after = self.statement(then, writes.copy(), span) if then is not None else writes
        otherwise = self.statement(other, writes.copy(), span) if other is not None else writes
        if any(n is not None and any(_is_barrier(c) for c in walk(n)) for n in (then, other)):
            return after if then is not None and any(_is_barrier(c) for c in walk(then)) else otherwise
        after.merge(otherwise)
        return after

    def _assignment(self, node: Node, writes: _Writes, condition: tuple[int, int] | None) -> _Writes:
        right = node.child_by_field_name("right")
        left = node.child_by_field_name("left") or node.child_by_field_name("argument")
        if right is not None:
            writes = self.statement(right, writes, condition)
        if left is None:
            return writes
        name, index = self._access(left)
        if not name:
            return self.statement(left, writes, condition)
        if text_of(node.child_by_field_name("operator")) != "=":
            self._read(name, index, line_at(left), writes, (left.start_byte, left.end_byte))
        writes.pending.setdefault(name, []).append((index, condition))
        return writes

    def _access(self, node: Node) -> tuple[str, str]:
        """(object, index text) where the node is an element of a shared array or a shared scalar."""
        if node.type == "identifier":
            return (text_of(node), "") if text_of(node) in self.shared else ("", "")
        if node.type != "subscript_expression":
            return "", ""
        base: Node | None = node
        while base is not None and base.type == "subscript_expression":
            base = base.child_by_field_name("argument")
        name = text_of(base)
        if name not in self.shared or base is None:
            return "", ""
        index = text_of(node)[len(name) :]
        plain = re.sub(r"[A-Za-z_]\w*(?![\w.])", lambda m: self.aliases.get(m.group(), m.group()), index)
        return name, re.sub(r"\s", "", plain)

    def _read(self, name: str, index: str, line: int, writes: _Writes, at: tuple[int, int]) -> None:
        for written, condition in writes.pending.get(name, []):
            same_for_all = not re.search(r"[A-Za-z_]", written)
            elsewhere = condition is not None and not (condition[0] <= at[0] and at[1] <= condition[1])
            if written != index or (same_for_all and elsewhere):
                message = f"`{name}` is written and then read at another index or by other threads without a barrier"
                remedy = "put `__syncthreads()` between the write and the read, outside any divergent branch"
                finding = LintFinding("missing-barrier", "warning", line, message, remedy)
                self.found.setdefault(name, finding)


def barrier_findings(root: Node) -> list[LintFinding]:
    """At most one finding per shared object of each kernel."""
    found: list[LintFinding] = []
    outer = frozenset(_shared_names([n for n in root.children if n.type == "declaration"]))
    for function in walk(root):
        if function.type != "function_definition" or not any(
            c.type == "__global__" for c in function.children
        ):
            continue
        body = function.child_by_field_name("body")
        if body is None:
            continue
        shared = outer | frozenset(_shared_names([n for n in walk(body) if n.type == "declaration"]))
        scan = _Scan(shared, _aliases(body))
        scan.statement(body, _Writes(), None)
        found += scan.found.values()
    return found


def _is_barrier(node: Node) -> bool:
    if node.type == "gnu_asm_expression":
        return True
    return node.type == "call_expression" and bool(
        _BARRIER.search(text_of(node.child_by_field_name("function")))
    )


def _shared_names(declarations: list[Node]) -> list[str]:
    names: list[str] = []
    for node in declarations:
        if not re.search(r"\b__shared__\b", text_of(node).split("=")[0]):
            continue
        for declarator in node.children_by_field_name("declarator"):
            current: Node | None = declarator
            while current is not None and current.type != "identifier":
                current = current.child_by_field_name("declarator")
            if current is not None:
                names.append(text_of(current))
    return names


def _aliases(body: Node) -> dict[str, str]:
    """Locals that merely rename a thread index: `int t = threadIdx.x`."""
    found: dict[str, str] = {}
    for node in walk(body):
        if node.type == "init_declarator":
            value = "".join(text_of(node.child_by_field_name("value")).split())
            if re.fullmatch(r"(?:\(int\))?threadIdx\.[xyz]", value):
                found[text_of(node.child_by_field_name("declarator"))] = value.removeprefix("(int)")
    return found
