"""Text made to exhaust the lint or the signature reader: they answer in time whatever it is."""

from __future__ import annotations

import time

import pytest

from tools.lint import lint
from tools.nvrtc_source import MAX_SOURCE_CHARS, forbidden_directives
from tools.signature import kernel_signatures

SIZE = MAX_SOURCE_CHARS // 2
LAUGHS = "".join(f"#define A{n} {' '.join([f'A{n + 1}'] * 40)}\n" for n in range(12)) + "A0 " * 1000
HOSTILE: dict[str, str] = {
    "open comments": "/*" * (SIZE // 2),
    "directives with open comments": "#/*" * (SIZE // 3),
    "lines with open comments": "#/*\n" * (SIZE // 4),
    "comments closed at last": "#/*" * (SIZE // 3) + "*/",
    "escaped quotes": '\\"' * (SIZE // 2),
    "open strings": '"\n' * (SIZE // 2),
    "raw strings": 'R"(' * (SIZE // 3),
    "kernels without a name": "__global__ " * (SIZE // 11),
    "kernels without a body": "__global__ void k" * (SIZE // 17),
    "broken kernels": "__global__ void k( {\n" * (SIZE // 21),
    "attributes": "__attribute__((" * (SIZE // 15),
    "alignments": "alignas(" * (SIZE // 8),
    "parentheses": "(" * SIZE,
    "nested blocks": "{" * (SIZE // 2) + "}" * (SIZE // 2),
    "nested expression": 'extern "C" __global__ void k(int* y) { y['
    + "(" * 3000
    + "1"
    + ")" * 3000
    + "] = 1; }",
    "launch bounds": "__global__ __launch_bounds__(" + "(" * 3000 + "1" + ")" * 3000 + ") void k() {}",
    "macros upon macros": LAUGHS,
    "splices": "\\\n" * (SIZE // 2),
    "hashes": "#" * SIZE,
    "one long name": "a" * SIZE,
    "includes": "#include <a>\n" * (SIZE // 13),
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_text_is_read_in_bounded_time(name: str) -> None:
    started = time.process_time()  # of ours alone: other tests may have the processor meanwhile
    lint(HOSTILE[name], ("k",))
    kernel_signatures(HOSTILE[name])
    forbidden_directives(HOSTILE[name])
    assert time.process_time() - started < 10.0


def test_text_beyond_the_bound_is_refused_unread() -> None:
    assert [f.rule for f in lint("x" * (MAX_SOURCE_CHARS + 1))] == ["too-large"]
    deep = 'extern "C" __global__ void k(int* y) { y[0] = ' + "(" * 400 + "1" + ")" * 400 + "; }"
    assert [f.rule for f in lint(deep, ("k",))] == ["too-large"]
