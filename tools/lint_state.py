"""Rules about objects and functions that outlive or precede a launch.

A mutable global keeps state between calls, which is how a kernel caches the answer to the inputs it has seen. A
dynamic initialiser runs before any launch; in the simulator it would run on the host. A function declared but not
defined would be taken from wherever the linker finds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from tools.lint_findings import LintFinding
from tools.nvrtc_syntax import line_at, nodes_of, parse_cuda, text_of, walk

_SCOPES = re.compile(
    r"translation_unit|namespace_definition|declaration_list|linkage_specification|template_declaration|ERROR"
    r"|preproc_\w+"
)
_CALLING = frozenset({"call_expression", "lambda_expression", "new_expression"})
_FUNCTION_MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+\w+\([^)\n]*\)(?P<body>(?:\\\r?\n|[^\n])*)", re.MULTILINE
)
_STATE_WORD = re.compile(r"\b(?:__device__|__managed__|static|thread_local)\b")
_FIXED = re.compile(
    r"\b(?:constexpr|__constant__|typedef|using|friend)\b|\bextern\s+__shared__|\b__shared__\b"
)


def state_findings(root: Node, source: str) -> list[LintFinding]:
    """Findings on globals, static locals, initialisers and bodyless functions, also those made by macros."""
    defined = {_function_name(n) for n in nodes_of(root, "function_definition")}
    constructed = _types_with_constructors(root)
    found: list[LintFinding] = []
    for node in nodes_of(root, "declaration", "field_declaration"):
        found += _declaration(node, defined, constructed)
    for match in _FUNCTION_MACRO.finditer(source):
        found += _macro_body(match["body"], source.count("\n", 0, match.start()) + 1)
    return found


def _declaration(node: Node, defined: set[str], constructed: set[str]) -> Iterator[LintFinding]:
    head = _head(node)
    at_namespace = _is_namespace_scope(node)
    if _declares_function(node):
        name = _function_name(node)
        kernel = any(child.type == "__global__" for child in node.children)
        if node.type == "declaration" and not kernel and name not in defined and _is_real_prototype(node):
            message = f"`{name}` is declared but not defined here"
            yield LintFinding(
                "undefined-function", "severe", line_at(node), message, "define it in this source"
            )
        return
    static_object = re.search(r"\b(?:static|thread_local)\b", head) is not None
    if not (at_namespace or static_object) or (node.type == "field_declaration" and not static_object):
        return
    if _is_type_only(node) or re.search(r"\b__shared__\b|\btypedef\b", head):
        return
    if not _is_fixed(node, head):
        message = f"`{_first_line(node)}` keeps state between calls"
        remedy = "pass it as a buffer of the plan, or make it `constexpr` or `__constant__`"
        yield LintFinding("mutable-global", "severe", line_at(node), message, remedy)
    calls = next((n for n in walk(node) if n.type in _CALLING), None)
    kind = text_of(node.child_by_field_name("type"))
    if at_namespace and not re.search(r"\bconstexpr\b", head) and (calls is not None or kind in constructed):
        message = f"`{_first_line(node)}` is initialised by running code"
        remedy = "use `constexpr`, a literal, or compute it inside the kernel"
        yield LintFinding("dynamic-init", "severe", line_at(node), message, remedy)


def _macro_body(body: str, line: int) -> Iterator[LintFinding]:
    """A function-like macro that declares state is a global in disguise."""
    if not _STATE_WORD.search(body):
        return
    root = parse_cuda(body.replace("\\\n", " ").replace("##", "").strip() + ";")
    for node in walk(root):
        if node.type != "declaration" or _declares_function(node) or not _STATE_WORD.search(_head(node)):
            continue
        if not _is_fixed(node, _head(node)):
            message = f"the macro declares `{_first_line(node)}`, which keeps state between calls"
            remedy = "pass it as a buffer of the plan"
            yield LintFinding("mutable-global", "severe", line, message, remedy)


def _is_fixed(node: Node, head: str) -> bool:
    """Nothing can change the object: constexpr, __constant__, or const at the outermost level."""
    if _FIXED.search(head):
        return True
    declarators = node.children_by_field_name("declarator")
    pointers = [p for d in declarators if (p := _pointer_of(d)) is not None]
    if pointers:
        return all(any(text_of(c) == "const" for c in p.children) for p in pointers)
    return re.search(r"\bconst\b", head) is not None


def _pointer_of(node: Node) -> Node | None:
    """The innermost pointer declarator: its `const` is the object's own."""
    found = None
    current: Node | None = node
    while current is not None:
        if current.type == "pointer_declarator":
            found = current
        current = current.child_by_field_name("declarator")
    return found


def _head(node: Node) -> str:
    """Specifiers and qualifiers of a declaration, and the `extern` or `template` around it; no initialiser."""
    words = [
        text_of(c) for c in node.children if "declarator" not in c.type and c.type != "compound_statement"
    ]
    outer = node.parent
    if outer is not None and outer.type == "linkage_specification":
        words.insert(0, "extern")
    return " ".join(words)


def _is_namespace_scope(node: Node) -> bool:
    current = node.parent
    while current is not None:
        if not _SCOPES.fullmatch(current.type):
            return False
        current = current.parent
    return True


def _is_type_only(node: Node) -> bool:
    """`struct S { ... };` and forward declarations declare no object."""
    return not node.children_by_field_name("declarator")


def _declares_function(node: Node) -> bool:
    current = node.child_by_field_name("declarator")
    while current is not None:
        if current.type == "function_declarator":
            # `int (*f)(int)` is an object: a pointer to a function.
            inner = current.child_by_field_name("declarator")
            return inner is not None and inner.type != "parenthesized_declarator"
        if current.type == "init_declarator":
            return False
        current = current.child_by_field_name("declarator")
    return False


def _is_real_prototype(node: Node) -> bool:
    """Not `Tile tile(block);`, which the grammar cannot tell from a prototype inside a function."""
    if _is_namespace_scope(node):
        return True
    listing = next((n for n in walk(node) if n.type == "parameter_list"), None)
    if re.search(r"\bextern\b", _head(node)) or listing is None:
        return True
    typed = ("primitive_type", "sized_type_specifier")
    return (
        any(n.type in typed for p in listing.named_children for n in p.children) or not listing.named_children
    )


def _function_name(node: Node) -> str:
    declarator = next((n for n in walk(node) if n.type == "function_declarator"), None)
    return text_of(declarator.child_by_field_name("declarator")) if declarator is not None else ""


def _types_with_constructors(root: Node) -> set[str]:
    names: set[str] = set()
    for node in nodes_of(root, "struct_specifier", "class_specifier"):
        name = text_of(node.child_by_field_name("name"))
        if name and any(_function_name(m) == name for m in nodes_of(node, "function_definition")):
            names.add(name)
    return names


def _first_line(node: Node) -> str:
    return " ".join(text_of(node).split())[:80]
