"""A heuristic for races on shared memory: written by one thread, read by another, no barrier in between.

Follows a kernel's statements in order; both branches of an `if` start from the same state, a loop's body is followed
twice, so that one iteration meets what the one before left. Two accesses with the same index text are taken for the
same thread's, unless the index is the same for all threads and the write stood under a condition; so are elements of a
thread's own stretch (`t * 4 + k`). Different leading indices that no thread varies are different buffers.
Covers: named __shared__ arrays and scalars, written then read, and read then written again by whoever is ahead. Does
not cover: pointers into shared memory, barriers under conditions (taken as barriers).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tree_sitter import Node

from tools.lint_findings import LintFinding
from tools.nvrtc_syntax import line_at, nodes_of, text_of, walk

_BARRIER = re.compile(
    r"__sync(?:threads|warp)\w*|__barrier_sync\w*|\bsync\b|\bbarrier\b|\bwait\w*|\barrive\w*|\basm\b|__asm"
    r"|__pipeline_wait_prior|consumer_wait|store_matrix_sync|load_matrix_sync"
)
_UPDATES = frozenset({"assignment_expression", "update_expression"})
_WORD = re.compile(r"[A-Za-z_]\w*")
_SIDES = {"init_declarator": ("declarator", "value"), "assignment_expression": ("left", "right")}
_MAX_REPEATED = 3
"""Loops in loops that are followed twice; what is deeper is followed once."""
_MAX_ROUNDS = 6
"""Locals computed from locals that vary: a chain longer than this is cut."""
_REPEATED = frozenset({"for_statement", "while_statement", "do_statement"})
_THREAD = re.compile(r"\bthreadIdx\b|\blane\w*\b|\bthread_rank\b")

_Span = tuple[int, int]
_Accesses = dict[str, list[tuple[str, _Span | None]]]


@dataclass
class _Pending:
    """Shared objects accessed since the last barrier: index text and the condition it was under."""

    writes: _Accesses = field(default_factory=dict)
    reads: _Accesses = field(default_factory=dict)

    def copy(self) -> _Pending:
        return _Pending(
            *({n: list(found) for n, found in side.items()} for side in (self.writes, self.reads))
        )

    def merge(self, other: _Pending) -> None:
        for mine, theirs in ((self.writes, other.writes), (self.reads, other.reads)):
            for name, found in theirs.items():
                known = mine.setdefault(name, [])
                known += [item for item in found if item not in known]


class _Scan:
    """One kernel's walk."""

    def __init__(self, shared: frozenset[str], aliases: dict[str, str], varying: frozenset[str]) -> None:
        self.shared = shared
        self.aliases = aliases
        self.varying = varying
        self.loops = 0
        self.found: dict[str, LintFinding] = {}

    def statement(self, node: Node, pending: _Pending, condition: _Span | None) -> _Pending:
        """Walk a statement and return the accesses pending after it."""
        if node.type == "if_statement":
            return self._branch(node, pending)
        if node.type in ("call_expression", "gnu_asm_expression") and _is_barrier(node):
            return _Pending()
        if node.type in _REPEATED:
            return self._loop(node, pending, condition)
        if node.type in _UPDATES:
            return self._assignment(node, pending, condition)
        name, index = self._access(node)
        if name:
            self._read(name, index, node, pending, condition)
            for child in node.named_children[1:]:
                pending = self.statement(child, pending, condition)
            return pending
        if node.type == "init_declarator":
            value = node.child_by_field_name("value")
            return self.statement(value, pending, condition) if value is not None else pending
        if node.type == "declaration":
            for child in node.named_children:
                if child.type == "init_declarator":  # the declared names themselves are no reads
                    pending = self.statement(child, pending, condition)
            return pending
        for child in node.named_children:
            pending = self.statement(child, pending, condition)
        return pending

    def _loop(self, node: Node, pending: _Pending, condition: _Span | None) -> _Pending:
        self.loops += 1
        for _ in range(2 if self.loops <= _MAX_REPEATED else 1):
            for child in node.named_children:
                pending = self.statement(child, pending, condition)
        self.loops -= 1
        return pending

    def _branch(self, node: Node, pending: _Pending) -> _Pending:
        span = (node.start_byte, node.end_byte)
        condition = node.child_by_field_name("condition")
        if condition is not None:
            pending = self.statement(condition, pending, None)
        then, other = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        after = self.statement(then, pending.copy(), span) if then is not None else pending
        otherwise = self.statement(other, pending.copy(), span) if other is not None else pending
        if any(n is not None and any(_is_barrier(c) for c in walk(n)) for n in (then, other)):
            return after if then is not None and any(_is_barrier(c) for c in walk(then)) else otherwise
        after.merge(otherwise)
        return after

    def _assignment(self, node: Node, pending: _Pending, condition: _Span | None) -> _Pending:
        right = node.child_by_field_name("right")
        left = node.child_by_field_name("left") or node.child_by_field_name("argument")
        if right is not None:
            pending = self.statement(right, pending, condition)
        if left is None:
            return pending
        name, index = self._access(left)
        if not name:
            return self.statement(left, pending, condition)
        if text_of(node.child_by_field_name("operator")) != "=":
            self._read(name, index, left, pending, condition)
        self._write(name, index, left, pending, condition)
        return pending

    def _write(self, name: str, index: str, node: Node, pending: _Pending, condition: _Span | None) -> None:
        for read, under in pending.reads.get(name, []):
            together = under is not None and under[0] <= node.start_byte < under[1]
            one_for_all = condition is not None and under is None and _same_for_all(index)
            other = read != index and not together and not self._apart(read, index)
            if other or (read == index and one_for_all):
                self._report(name, node, "read and then written again by whichever thread is ahead")
        known = pending.writes.setdefault(name, [])
        if (index, condition) not in known:
            known.append((index, condition))

    def _apart(self, one: str, other: str) -> bool:
        """Different elements for certain, or elements of one thread's own stretch."""
        mine, theirs = _dimensions(one), _dimensions(other)
        pairs = list(zip(mine, theirs, strict=False))
        for place, (a, b) in enumerate(pairs):
            fixed = a.isdigit() and b.isdigit()
            leading = place < len(pairs) - 1 and not self._varies(a) and not self._varies(b)
            if a != b and (fixed or leading):
                return True
        return (
            bool(pairs) and pairs[:-1] == [(a, a) for a, _ in pairs[:-1]] and self._same_stretch(*pairs[-1])
        )

    def _same_stretch(self, one: str, other: str) -> bool:
        bases = ["+".join(part for part in text.split("+") if self._varies(part)) for text in (one, other)]
        return bases[0] == bases[1] and "*" in bases[0]

    def _varies(self, text: str) -> bool:
        return _THREAD.search(text) is not None or not self.varying.isdisjoint(_WORD.findall(text))

    def _report(self, name: str, node: Node, what: str) -> None:
        message = f"`{name}` is {what} without a barrier"
        remedy = "put `__syncthreads()` between the two accesses, outside any divergent branch"
        finding = LintFinding("missing-barrier", "warning", line_at(node), message, remedy)
        self.found.setdefault(name, finding)

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

    def _read(self, name: str, index: str, node: Node, pending: _Pending, condition: _Span | None) -> None:
        for written, under in pending.writes.get(name, []):
            elsewhere = under is not None and not (under[0] <= node.start_byte and node.end_byte <= under[1])
            if (written != index and not self._apart(written, index)) or (
                _same_for_all(written) and elsewhere
            ):
                self._report(name, node, "written and then read at another index or by other threads")
        known = pending.reads.setdefault(name, [])
        if (index, condition) not in known:
            known.append((index, condition))


def barrier_findings(root: Node) -> list[LintFinding]:
    """At most one finding per shared object of each kernel."""
    found: list[LintFinding] = []
    outer = frozenset(_shared_names([n for n in root.children if n.type == "declaration"]))
    for function in nodes_of(root, "function_definition"):
        if not any(c.type == "__global__" for c in function.children):
            continue
        body = function.child_by_field_name("body")
        if body is None:
            continue
        shared = outer | frozenset(_shared_names([n for n in walk(body) if n.type == "declaration"]))
        scan = _Scan(shared, _aliases(body), _varying(body))
        scan.statement(body, _Pending(), None)
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


def _same_for_all(index: str) -> bool:
    return not _WORD.search(index)


def _varying(body: Node) -> frozenset[str]:
    """Locals that differ between threads: computed from threadIdx, directly or through others."""
    made: list[tuple[str, set[str]]] = []
    for node in walk(body):
        sides = _SIDES.get(node.type)
        if sides is not None:
            name, value = (text_of(node.child_by_field_name(side)) for side in sides)
            made.append(
                (name, set(_WORD.findall(value)) | ({"threadIdx"} if _THREAD.search(value) else set()))
            )
    found = {"threadIdx"}
    for _ in range(_MAX_ROUNDS):
        grown = found | {name for name, used in made if used & found}
        if grown == found:
            break
        found = grown
    return frozenset(found)


def _dimensions(index: str) -> list[str]:
    """`[0][t+1]` -> `0`, `t+1`; brackets inside an index stay in it."""
    parts: list[str] = []
    depth = start = 0
    for position, character in enumerate(index):
        if character == "[":
            depth += 1
            start = position + 1 if depth == 1 else start
        elif character == "]":
            depth -= 1
            if depth == 0:
                parts.append(index[start:position])
    return parts
