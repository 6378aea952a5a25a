"""What a kernel's indices come to at the problem's own sizes: the plan's launches, element counts and macro values.

Severe: a thread that every launch starts writes or reads behind its tensor's end with no guard before it; a 32-bit
index that has to reach elements behind 2^31 and wraps on the way. Both follow from numbers alone, so they hold for
sizes that a slow device never runs. A guard that is off by one is a warning: the sanitizer sees it at any size. Where
another condition or an unknown value stands between, nothing is said here, and tools.lint_access goes by the look of
the code. Does not cover: indices through pointers derived from a parameter, and device functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from tools.binding import BoundKernel, BoundPlan, BoundScalar
from tools.lint_findings import LintFinding
from tools.lint_guards import enter
from tools.lint_names import Names, declaration_of
from tools.lint_paths import guards_of
from tools.lint_scope import Launch, Scope
from tools.lint_values import Range, number, type_named
from tools.nvrtc_syntax import line_at, nodes_of, text_of, walk
from tools.signature import Signature

_MAX_LAUNCHES = 8
"""Different launches of one kernel that are looked at; an unrolled network has thousands of equal ones."""
_MAX_ACCESSES = 250
_MAX_NODES = 30_000
"""A kernel with more syntax than this is not looked at: every access looks at what stands before it."""


@dataclass(frozen=True)
class Access:
    """One subscript of a pointer parameter."""

    base: str
    index: Node
    node: Node


@dataclass(frozen=True)
class Sized:
    """What the sizes say about a kernel."""

    findings: tuple[LintFinding, ...]
    known: frozenset[int]
    """Byte offsets of the subscripts whose range is known, and fits its type, in every launch."""
    inside: frozenset[int]
    """Those that stay inside their tensor as well."""


def launches_of(plan: BoundPlan, signatures: Mapping[str, Signature]) -> dict[str, tuple[Launch, ...]]:
    """The plan's different launches by kernel; one whose arguments do not fit its signature is left out."""
    found: dict[str, dict[tuple[object, ...], Launch]] = {}
    for step in (*plan.prepare, *plan.steps):
        signature = signatures.get(step.entry) if isinstance(step, BoundKernel) else None
        if not isinstance(step, BoundKernel) or signature is None:
            continue
        known = found.setdefault(step.entry, {})
        if len(known) < _MAX_LAUNCHES and len(step.args) == len(signature.params):
            launch = _launch(step, signature, plan)
            key = (launch.grid, launch.block, *launch.elements.items(), *launch.scalars.items())
            known.setdefault(key, launch)
    return {entry: tuple(known.values()) for entry, known in found.items()}


def _launch(step: BoundKernel, signature: Signature, plan: BoundPlan) -> Launch:
    elements: dict[str, int] = {}
    sizes: dict[str, int] = {}
    scalars: dict[str, Range] = {}
    for argument, param in zip(step.args, signature.params, strict=True):
        if isinstance(argument, BoundScalar):
            ctype = type_named(param.ctype)
            if ctype is not None and isinstance(argument.value, int):
                scalars[param.name] = number(argument.value, ctype)
        elif param.dtype is not None and (argument in plan.given or argument in plan.buffers):
            sizes[param.name] = param.dtype.bytes * param.width
            elements[param.name] = plan.spec(argument).bytes // sizes[param.name]
    return Launch(step.grid, step.block, elements, sizes, scalars)


def accesses(names: Names, pointers: set[str]) -> list[Access]:
    """Subscripts of the pointer parameters that are not themselves moved."""
    fixed = {name for name in pointers if not names.changed(name)}
    found: list[Access] = []
    for node in walk(names.function):
        argument = node.child_by_field_name("argument") if node.type == "subscript_expression" else None
        if argument is None or text_of(argument) not in fixed or declaration_of(argument) is not None:
            continue
        listing = node.child_by_field_name("indices")
        if listing is not None and listing.named_child_count == 1:
            found.append(Access(text_of(argument), listing.named_children[0], node))
    return found[:_MAX_ACCESSES]


def sized(names: Names, launches: tuple[Launch, ...], aliases: Mapping[str, str]) -> Sized:
    """Look at every access of a kernel in each of its launches."""
    findings: dict[tuple[str, str], LintFinding] = {}
    unknown: set[int] = set()
    outside: set[int] = set()
    if names.nodes > _MAX_NODES:
        return Sized((), frozenset(), frozenset())
    known = accesses(names, {name for launch in launches for name in launch.elements})
    for launch in launches:
        for access in known:
            scope = Scope(names, launch, aliases)
            enter(scope, guards_of(access.node, names))
            value = scope.value(access.index)
            count = launch.elements.get(access.base)
            if value is None:
                unknown.add(access.node.start_byte)
            if count is None or value is None or value.high >= count:
                outside.add(access.node.start_byte)
            if count is None:
                continue
            for finding in (_overflow(access, scope, count), _outside(access, scope, value, count)):
                if finding is not None:
                    findings.setdefault((finding.rule, access.base), finding)
    everything = {access.node.start_byte for access in known} if launches else set()
    return Sized(tuple(findings.values()), frozenset(everything - unknown), frozenset(everything - outside))


def _outside(access: Access, scope: Scope, value: Range | None, count: int) -> LintFinding | None:
    if value is None or value.high < count or not scope.reaches_ends(value):
        return None
    threads = (
        "x".join(str(g) for g in scope.launch.grid) + " blocks of " + "x".join(map(str, scope.launch.block))
    )
    message = (
        f"`{access.base}[{short(access.index)}]` goes up to element {value.high:,} in a launch of {threads}, and "
        f"`{access.base}` has {count:,}"
    )
    if scope.refined:
        remedy = "correct the guard: it lets an index through that is too large"
        return LintFinding("unguarded-tail", "warning", line_at(access.node), message, remedy)
    remedy = "guard the tail with `if (index < n)`, or make the grid divide the size"
    return LintFinding("unguarded-tail", "severe", line_at(access.node), message, remedy)


def _overflow(access: Access, scope: Scope, count: int) -> LintFinding | None:
    """The deepest expression that does not fit, where the tensor has elements that such an index cannot reach."""
    for node, made in scope.overflows:
        if made.ctype.bits > 32 or count <= made.ctype.highest:
            continue
        # Certain where the expression itself stands: its declaration may come before the guard.
        there = Scope(scope.names, scope.launch, scope.aliases)
        enter(there, guards_of(node, scope.names))
        severe = there.reaches_ends(made)
        kind = "int" if made.ctype.signed else "unsigned int"
        message = (
            f"`{short(node)}` reaches {made.high:,} at this problem's sizes, which {kind} cannot hold; "
            f"`{access.base}` has {count:,} elements"
        )
        remedy = "make one factor `long long`, and the variables that take the result"
        return LintFinding(
            "index-overflow", "severe" if severe else "warning", line_at(node), message, remedy
        )
    return None


def short(node: Node) -> str:
    """The node's text on one line, cut off."""
    return " ".join(text_of(node).split())[:60]


def aliases_in(root: Node) -> dict[str, str]:
    """`typedef` and `using` names with the words they stand for."""
    found: dict[str, str] = {}
    for node in nodes_of(root, "type_definition", "alias_declaration"):
        if node.type == "type_definition":
            declarator = text_of(node.child_by_field_name("declarator"))
            found[declarator] = text_of(node.child_by_field_name("type"))
        else:
            found[text_of(node.child_by_field_name("name"))] = text_of(node.child_by_field_name("type"))
    return found
