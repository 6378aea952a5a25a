"""Kernel signatures read from CUDA C++ source, to check a launch plan's arguments before anything runs.

Covers: `extern "C"` on one kernel or around a block, attributes in any place, launch bounds, parameters over
several lines, macros and type aliases of the same source, broken code elsewhere in the file. Does not cover: kernels
made by function-like macros, or which branch of an `#if` is taken (the first definition of a name counts).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from tree_sitter import Node

from memory.records import DType
from tools.nvrtc_syntax import expand_macros, line_at, mask_text, nodes_of, parse_cuda, text_of, walk

_DTYPES: dict[str, DType] = {
    "float": DType.F32,
    "double": DType.F64,
    "__half": DType.F16,
    "half": DType.F16,
    "__nv_bfloat16": DType.BF16,
    "nv_bfloat16": DType.BF16,
    "int": DType.I32,
    "int32_t": DType.I32,
    "long long": DType.I64,
    "long": DType.I64,  # 8 bytes on every 64-bit Linux, which is where NVRTC's cubins run here
    "int64_t": DType.I64,
    "ptrdiff_t": DType.I64,
    "short": DType.I16,
    "int16_t": DType.I16,
    "signed char": DType.I8,
    "int8_t": DType.I8,
    "char": DType.I8,
    "unsigned char": DType.U8,
    "uint8_t": DType.U8,
    "bool": DType.BOOL,
}
_VECTORS: dict[str, tuple[str, int]] = {
    **{f"{base}{n}": (base, n) for base in ("float", "double", "int", "short") for n in (1, 2, 3, 4)},
    **{f"char{n}": ("signed char", n) for n in (1, 2, 3, 4)},
    **{f"uchar{n}": ("unsigned char", n) for n in (1, 2, 3, 4)},
    **{f"longlong{n}": ("long long", n) for n in (1, 2, 3, 4)},
    "__half2": ("__half", 2),
    "half2": ("__half", 2),
    "__nv_bfloat162": ("__nv_bfloat16", 2),
    "nv_bfloat162": ("__nv_bfloat16", 2),
}
_INTEGER_WORDS = frozenset({"unsigned", "signed", "short", "long", "int", "char"})
_NOT_TYPE = re.compile(
    r"\b(?:const|volatile|__restrict__|__restrict|restrict|__grid_constant__|struct|typename)\b"
)
_KERNEL_HEAD = re.compile(r"\b__global__\b[^;{}]{0,300}?\b(?P<name>(?!__)\w{1,100})\s{0,50}\(")
_MAX_REREAD = 16
_REMEMBERED = 4
"""Texts whose signatures are kept: a candidate's checks and rules ask for them in turn."""
_MAX_DIGITS = 20
_MAX_BOUND_DEPTH = 20
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*$")


@dataclass(frozen=True)
class Param:
    """One kernel parameter."""

    name: str
    """Empty where the source leaves it out."""
    ctype: str
    """Element type for a pointer, else the type: no qualifiers, aliases resolved, words in C's order."""
    pointer: bool
    const: bool
    """For a pointer: what it points to may not be written through it."""
    line: int
    dtype: DType | None = None
    """The scalar element type; None where the type is not one a Program may use."""
    width: int = 1
    """Scalars per element: 4 for `float4`."""
    restrict: bool = False


@dataclass(frozen=True)
class Signature:
    """One `__global__` function."""

    name: str
    params: tuple[Param, ...]
    launch_bounds: tuple[int, ...] | None
    """(max threads[, min blocks per SM[, max cluster]]); None where absent or not a plain number."""
    line: int
    extern_c: bool
    template: bool
    defined: bool
    """False for a declaration without a body."""


def kernel_signatures(source: str, defines: tuple[tuple[str, str], ...] = ()) -> dict[str, Signature]:
    """Every kernel of the source by name; where a name comes twice a definition beats a declaration."""
    return dict(_kernel_signatures(source, defines))


@lru_cache(_REMEMBERED)
def _kernel_signatures(source: str, defines: tuple[tuple[str, str], ...]) -> dict[str, Signature]:
    text = expand_macros(source, defines)
    root = parse_cuda(text)
    aliases = _type_aliases(root)
    found = _signatures_below(root, aliases)
    masked = mask_text(text)
    for match in islice(_KERNEL_HEAD.finditer(masked) if root.has_error else (), _MAX_REREAD):
        if match["name"] not in found:
            # Broken code before it swallowed it: read again from its own line on.
            start = masked.rfind("\n", 0, match.start()) + 1
            again = parse_cuda("\n" * masked.count("\n", 0, start) + text[start:])
            found |= {n: s for n, s in _signatures_below(again, aliases).items() if n not in found}
    return found


def _signatures_below(root: Node, aliases: dict[str, str]) -> dict[str, Signature]:
    found: dict[str, Signature] = {}
    for node in nodes_of(root, "function_definition", "declaration", "ERROR"):
        if not any(child.type == "__global__" for child in node.children):
            continue
        signature = _signature(node, aliases)
        known = found.get(signature.name) if signature else None
        if signature and (known is None or (signature.defined and not known.defined)):
            found[signature.name] = signature
    return found


def dtype_of(ctype: str) -> tuple[DType | None, int]:
    """The Program dtype and vector width of a normalised C type; (None, 1) if it has none."""
    base, width = _VECTORS.get(ctype, (ctype, 1))
    return _DTYPES.get(base), width if base in _DTYPES else 1


def normalise_type(text: str, aliases: dict[str, str] | None = None) -> str:
    """`unsigned const int` -> `unsigned int`, `long long int` -> `long long`, `std::int64_t` -> `int64_t`."""
    words = _NOT_TYPE.sub(" ", text).split()
    if words and set(words) <= _INTEGER_WORDS:
        return _normalise_integer(words)
    name = re.sub(r"^(?:::)?(?:cuda::)?(?:std::)?", "", " ".join(words))
    target = (aliases or {}).get(name)
    return normalise_type(target, {k: v for k, v in (aliases or {}).items() if k != name}) if target else name


def _normalise_integer(words: list[str]) -> str:
    sign = "unsigned " if "unsigned" in words else ""
    if "char" in words:
        return f"{sign}char" if sign or "signed" not in words else "signed char"
    if "short" in words:
        return f"{sign}short"
    return sign + {0: "int", 1: "long"}.get(words.count("long"), "long long")


def _signature(node: Node, aliases: dict[str, str]) -> Signature | None:
    declarator = next((n for n in walk(node) if n.type == "function_declarator"), None)
    if declarator is None:
        return None
    name_node = declarator.child_by_field_name("declarator")
    listing = declarator.child_by_field_name("parameters")
    if name_node is None or listing is None:
        return None
    name = re.split(r"::|<", text_of(name_node))[-1 if "::" in text_of(name_node) else 0].strip()
    kinds = ("parameter_declaration", "optional_parameter_declaration")
    params = [_param(child, aliases) for child in listing.named_children if child.type in kinds]
    if len(params) == 1 and params[0].ctype == "void" and not params[0].pointer:
        params = []
    return Signature(
        name=name,
        params=tuple(params),
        launch_bounds=_launch_bounds(node),
        line=line_at(name_node),
        extern_c=_has_c_linkage(node),
        template=node.parent is not None and node.parent.type == "template_declaration",
        defined=any(child.type == "compound_statement" for child in node.children),
    )


def _param(node: Node, aliases: dict[str, str]) -> Param:
    declarator = node.child_by_field_name("declarator")
    stars = 0
    top_const = pointee_const = restrict = False
    inner = declarator
    while inner is not None and inner.type not in ("identifier", "field_identifier"):
        stars += "pointer_declarator" in inner.type or "array_declarator" in inner.type
        restrict |= any(
            "restrict" in text_of(child) for child in inner.children if child.type == "type_qualifier"
        )
        inner = _inner_declarator(inner)
    for child in node.children:
        if child.type == "type_qualifier" and text_of(child) == "const":
            pointee_const, top_const = stars > 0, stars == 0
    reference = declarator is not None and "reference" in declarator.type
    written = text_of(node.child_by_field_name("type"))
    pointee_const |= "const" in aliases.get(written, "").split()
    ctype = normalise_type(written, aliases)
    while ctype.endswith("*"):  # an alias of a pointer type
        ctype, stars = normalise_type(ctype[:-1], aliases), stars + 1
    dtype, width = (None, 1) if stars > 1 or reference else dtype_of(ctype)
    return Param(
        name=text_of(inner) if inner is not None else "",
        ctype=ctype + "*" * max(0, stars - 1) + ("&" if reference else ""),
        pointer=stars > 0,
        const=pointee_const or top_const,
        line=line_at(inner if inner is not None else node),
        dtype=dtype,
        width=width,
        restrict=restrict,
    )


def _inner_declarator(node: Node) -> Node | None:
    named = node.child_by_field_name("declarator")
    if named is not None:
        return named
    wanted = [c for c in node.named_children if "declarator" in c.type or c.type == "identifier"]
    return wanted[0] if wanted else None


def _launch_bounds(node: Node) -> tuple[int, ...] | None:
    bounds = next((n for n in walk(node) if n.type == "launch_bounds"), None)
    if bounds is None:
        return None
    values = [_integer(child) for child in bounds.named_children]
    known = tuple(v for v in values if v is not None)
    return known if known and len(known) == len(values) else None


def _integer(node: Node, level: int = 0) -> int | None:
    """The value of a number, or of a product, sum or difference of numbers."""
    if level > _MAX_BOUND_DEPTH:
        return None
    if node.type == "parenthesized_expression" and node.named_child_count == 1:
        return _integer(node.named_children[0], level + 1)
    if node.type == "binary_expression":
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        a = _integer(left, level + 1) if left else None
        b = _integer(right, level + 1) if right else None
        if a is None or b is None:
            return None
        operator = text_of(node.child_by_field_name("operator"))
        return {"*": a * b, "+": a + b, "-": a - b}.get(operator)
    match = _NUMBER.match(text_of(node))
    if match is None or len(match[1]) > _MAX_DIGITS:
        return None
    return int(match[1], 0 if match[1].lower().startswith("0x") else 10)


def _has_c_linkage(node: Node) -> bool:
    current: Node | None = node
    while current is not None:
        if current.type == "linkage_specification" and '"C"' in text_of(current.child_by_field_name("value")):
            return True
        current = current.parent
    return False


def _type_aliases(root: Node) -> dict[str, str]:
    """`typedef` and `using` names of the source with what they stand for."""
    aliases: dict[str, str] = {}
    for node in nodes_of(root, "type_definition", "alias_declaration"):
        if node.type == "type_definition":
            declarator = node.child_by_field_name("declarator")
            stars = text_of(declarator).count("*")
            qualifiers = " ".join(text_of(n) for n in node.children if n.type == "type_qualifier")
            target = f"{qualifiers} {text_of(node.child_by_field_name('type'))}"
            aliases[text_of(declarator).strip("* ")] = target + "*" * stars
        else:
            aliases[text_of(node.child_by_field_name("name"))] = text_of(node.child_by_field_name("type"))
    return aliases
