"""Nodes by kind: what the query finds is what a walk finds, in its order, also in broken text."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.problems import KERNEL
from tools.nvrtc_syntax import nodes_of, parse_cuda, walk

TEXT = (
    """
#define TWICE(a) ((a) * 2)
typedef float real;
using index = long long;
struct Pair { float a; int b = 3; Pair(float v) : a(v) {} static int count; };
template <int N> __device__ float f(float (&v)[N]) { auto g = [&](int i) { return v[i]; }; return g(0); }
extern "C" { __global__ void other(real* y, index n); }
namespace inner { __device__ int state = 0; }
"""
    + KERNEL
)
KINDS = (
    "type_definition",
    "alias_declaration",
    "struct_specifier",
    "class_specifier",
    "function_definition",
    "declaration",
    "field_declaration",
    "function_declarator",
    "init_declarator",
    "preproc_def",
    "preproc_function_def",
    "ERROR",
)


def seen(text: str, kinds: tuple[str, ...]) -> None:
    root = parse_cuda(text)
    wanted = [node for node in walk(root) if node.type in kinds]
    assert [(n.id, n.type) for n in nodes_of(root, *kinds)] == [(n.id, n.type) for n in wanted]
    for node in wanted:
        below = [n.id for n in walk(node) if n.type == "function_definition"]
        assert [n.id for n in nodes_of(node, "function_definition")] == below


def test_every_kind_is_found_where_a_walk_finds_it() -> None:
    for kind in KINDS[:-1]:
        assert kind in ("class_specifier", "preproc_def") or nodes_of(parse_cuda(TEXT), kind), kind
        seen(TEXT, (kind,))
    seen(TEXT, KINDS)


def test_a_large_tree_is_searched_as_a_small_one_is() -> None:
    seen(TEXT + "void g() { int a = 0; a = (a + 1) * 2; }\n" * 1000, KINDS[:-1])


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_broken_text_hides_nothing_from_it(data: st.DataObject) -> None:
    cuts = st.integers(0, len(TEXT))
    text = TEXT
    for _ in range(data.draw(st.integers(1, 4))):
        start, end = data.draw(cuts), data.draw(cuts)
        text = (
            text[:start]
            + data.draw(st.sampled_from(["", "{", "}", "(", ";", "#if 1\n", "*/", '"', "<"]))
            + text[end:]
        )
    seen(text[:6000], KINDS)
