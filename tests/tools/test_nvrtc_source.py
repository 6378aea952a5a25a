"""Composing source and defines, and finding what could open a file."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import BadInput
from tools.nvrtc_source import PRELUDE, compose, file_directives, forbidden_directives, splice

LINES = st.lists(
    st.sampled_from(
        [
            "",
            "#include <a.h>",
            "// x",
            "/* y */",
            "int a;",
            "/*",
            "*/",
            "x \\",
            "#define A 1",
            '#include "q.h"',
            "  ",
        ]
    ),
    max_size=12,
)


def test_defines_come_after_the_leading_includes_and_keep_line_numbers() -> None:
    source = "// note\n#include <a.h>\n\n/* two\nlines */\n#include <b.h> // why\nint x = N;\n"
    made = compose(source, (("N", "4"), ("M", "5")))
    head, body = made.plain.split(f"{PRELUDE}#define N 4\n#define M 5\n")
    assert head == "// note\n#include <a.h>\n\n/* two\nlines */\n#include <b.h> // why\n"
    assert body == '#line 7 "kernel.cu"\nint x = N;\n'
    assert made.prefix == "#include <a.h>\n#include <b.h>\n"
    assert made.precompiled == f"{made.prefix}#pragma nv_hdrstop\n{PRELUDE}#define N 4\n#define M 5\n{body}"


def test_includes_further_down_are_no_prefix() -> None:
    made = compose("int x;\n#include <a.h>\n", (("N", "1"),))
    assert made.plain == f'{PRELUDE}#define N 1\n#line 1 "kernel.cu"\nint x;\n#include <a.h>\n'
    assert (made.prefix, made.precompiled) == ("", "")


@given(LINES)
def test_composing_keeps_every_line_and_its_number(lines: list[str]) -> None:
    source = "\n".join(lines) + "\n"
    made = compose(source, (("N", "1"),))
    head, _, rest = made.plain.partition(f"{PRELUDE}#define N 1\n")
    directive, _, body = rest.partition("\n")
    assert head + body == source
    assert directive == f'#line {head.count(chr(10)) + 1} "kernel.cu"'


@given(st.text(alphabet="ab\\\n \r", max_size=60))
def test_splicing_joins_lines_and_keeps_their_count(text: str) -> None:
    joined = splice(text)
    assert joined.count("\n") == text.count("\n")
    assert joined.replace("\n", "") == re.sub(r"\\\r?\n", "", text).replace("\n", "")


@pytest.mark.parametrize("name", ["1a", "a b", "", "A\n", "#x"])
def test_a_define_must_be_an_identifier(name: str) -> None:
    with pytest.raises(BadInput, match="cannot define"):
        compose("", ((name, "1"),))


@pytest.mark.parametrize("value", ["1\n2", "1\\", "a\rb", "a\0"])
def test_a_define_must_be_one_line(value: str) -> None:
    with pytest.raises(BadInput, match="cannot define"):
        compose("", (("A", value),))


@pytest.mark.parametrize(
    "text",
    [
        "// #include <vector> once stood here",
        "#include <a/b.h>",
        "#include <a.h> /* b */ ",
        "int include = 1;",
        "x<y",
    ],
)
def test_ordinary_text_is_not_forbidden(text: str) -> None:
    assert forbidden_directives(text + "\nint a;\n") == ()


@pytest.mark.parametrize("mark", ["#", "%:", "# /* a\nb */"])
@pytest.mark.parametrize("target", ['"a.h"', "</a.h>", "<../a.h>", "<a/../b.h>", "MACRO", "<a.h> MORE"])
def test_any_other_include_is_forbidden_with_its_line(mark: str, target: str) -> None:
    found = forbidden_directives(f"int a;\n\n{mark}include {target}\n")
    assert [line for line, _ in found] == [3 + mark.count("\n")]


def test_directives_are_listed_with_header_and_line() -> None:
    found = file_directives("#include <a.h>\n\n#import <b.h>\n")
    assert [(d.line, d.word, d.header) for d in found] == [(1, "include", "a.h"), (3, "import", None)]
