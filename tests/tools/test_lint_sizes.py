"""Indices judged at a plan's own launches and sizes: each fault beside a twin that differs in what makes it right."""

from __future__ import annotations

import operator as operators
import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.records import Buffer, DType, Problem, Program, ScalarArgument
from tests.problems import scaled_relu_problem, scaled_relu_program, scaled_relu_step
from tools.binding import BoundPlan, bind
from tools.lint import lint
from tools.lint_findings import LintFinding
from tools.lint_values import INT, LONG, UNSIGNED, CType, Range, combined, literal, number

HEAD = 'extern "C" __global__ void scaled_relu(const float* x, const float* weight, float* y)'
I = "int i = blockIdx.x * blockDim.x + threadIdx.x;"  # noqa: E741
WIDE = "long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;"
ROW_COL = "int row = blockIdx.y * blockDim.y + threadIdx.y; int col = blockIdx.x * blockDim.x + threadIdx.x;"


def plane_of(body: str, rows: int, columns: int) -> BoundPlan:
    """The same in blocks of 32x8 threads over rows and columns."""
    return plan_of(
        body, rows, columns, grid=("ceil_div(COLS, 32)", "ceil_div(ROWS, 8)", "1"), block=("32", "8", "1")
    )


def plan_of(
    body: str, rows: int = 33, columns: int = 40, *, head: str = HEAD, before: str = "", **step: object
) -> BoundPlan:
    """A program with this kernel body bound to relu(x * weight) at these sizes; 128 threads a block."""
    program = scaled_relu_program(f"{before}\n{head} {{\n{body}\n}}\n", steps=(scaled_relu_step(**step),))
    return bind(program, scaled_relu_problem(rows, columns))


def found(plan: BoundPlan) -> list[LintFinding]:
    return list(lint(plan.source, plan.entries, tuple(sorted(plan.defines.items())), plan))


def rules(plan: BoundPlan) -> set[tuple[str, str]]:
    return {(f.rule, f.severity) for f in found(plan)}


TAIL = {("unguarded-tail", "severe")}
OVERFLOW = {("index-overflow", "severe")}


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        (f"{I} y[i] = x[i];", f"{I} if (i < ROWS * COLS) y[i] = x[i];"),
        (
            f"{I} const bool dead = i >= ROWS * COLS; y[i] = dead ? 0.f : 1.f;",
            f"{I} const bool dead = i >= ROWS * COLS; if (!dead) y[i] = 1.f;",
        ),
        (f"{I} if (i < 5) y[i] = 1.f; y[i] = x[i];", f"{I} if (i < 5) {{ y[i] = 1.f; }}"),
        (
            f"{I} for (int k = 0; k < 2; ++k) y[i * 2 + k] = 0.f;",
            f"{I} for (int k = 0; k < 2; ++k) if (i * 2 + k < ROWS * COLS) y[i * 2 + k] = 0.f;",
        ),
        ("y[threadIdx.x + ROWS * COLS] = 0.f;", "y[threadIdx.x + ROWS * COLS - 128] = 0.f;"),
    ],
)
def test_a_thread_that_runs_past_the_end_is_severe_and_its_twin_is_silent(bad: str, good: str) -> None:
    assert rules(plan_of(bad)) == TAIL
    assert rules(plan_of(good)) == set()


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        (f"{I} if (i <= ROWS * COLS) y[i] = 0.f;", f"{I} if (i < ROWS * COLS) y[i] = 0.f;"),
        (f"{I} if (i > ROWS * COLS) return; y[i] = 0.f;", f"{I} if (i >= ROWS * COLS) return; y[i] = 0.f;"),
        (f"{I} if (ROWS * COLS >= i) y[i] = 0.f;", f"{I} if (ROWS * COLS > i) y[i] = 0.f;"),
    ],
)
def test_a_guard_that_is_off_by_one_is_warned_of(bad: str, good: str) -> None:
    assert rules(plan_of(bad)) == {("unguarded-tail", "warning")}
    assert rules(plan_of(good)) == set()


@pytest.mark.parametrize(
    "honest",
    [
        # The grid divides the size: 1280 elements, 10 blocks of 128.
        f"{I} y[i] = x[i];",
        f"{I} y[i] = x[i] * weight[i % COLS];",
        f"{I} y[min(i, ROWS * COLS - 1)] = 0.f;",
        f"for ({I} i < ROWS * COLS; i += gridDim.x * blockDim.x) y[i] = x[i];",
        f"{I} int j = i * 4; if (j < ROWS * COLS) y[i] = x[j];",
        f"{I} int j = i * 4; if (j + 3 < ROWS * COLS) y[j + 3] = x[j];",
        f"{I} int j = i * 4; if (j < ROWS * COLS) y[j + 3] = x[j];",
        f"{I} int row = i / COLS, col = i % COLS; y[row * COLS + col] = 0.f;",
        f"{I} int j = i; j += 7; y[j] = 0.f;",
        f"{I} while (i < ROWS * COLS) {{ y[i + 4000] = 0.f; i += 4096; }}",
        f"{I} for (int k = 0; k < 4; ++k) {{ if (x[i] > 0.f) break; y[i * 4 + k] = 0.f; }}",
        f"{I} {{ float y[9]; y[8] = x[i]; }} y[i] = 0.f;",
        f"{I} if (x[0] > 1.f) y[i + 1280] = 0.f;",
        f"{I} float* end = y + i; end[0] = 0.f;",
        f"{I} if (i < ROWS * COLS && threadIdx.x == 0) y[i + 127] = 0.f;",
        f"{I} if (blockIdx.x != gridDim.x - 1) y[i + 128] = 0.f;",
        f"{I} int j = i + 900; GUARDED(j, y[j] = 0.f)",
        f"{I} int j = i + 900; WHERE(j) {{ y[j] = 0.f; }}",
        f"{I} int j = i + 900; LEAVE(j); y[j] = 0.f;",
        f"{I} int j = i + 900; clamped(j); y[j] = 0.f;",
        f"{I} int j = i + 900; CLAMP(j); y[j] = 0.f;",
        f"{I} int j = i + 900; auto lower = [](int& v) {{ v -= 900; }}; lower(j); y[j] = 0.f;",
        f"{I} int j = i + 900; auto lower = [&]() {{ j -= 900; }}; lower(); y[j] = 0.f;",
        f"{I} switch (i) {{ case 5000: y[i + 1280] = 0.f; }}",
        f"{I} if (i < 4) {{ if (i < 2) return; }} y[i] = 0.f;",
    ],
)
def test_an_honest_access_is_left_alone(honest: str) -> None:
    before = (
        "#define GUARDED(i, what) if ((i) < ROWS * COLS) { what; }\n#define WHERE(i) if ((i) < ROWS * COLS)\n"
        "#define LEAVE(i) if ((i) >= ROWS * COLS) return\n#define CLAMP(i) i = min(i, 3)\n"
        "__device__ void clamped(int& i) { i = min(i, 5); }\n"
    )
    used = "".join(f"{line}\n" for line in before.splitlines() if re.findall(r"\w+(?=\()", line)[0] in honest)
    assert rules(plan_of(honest, 32, 40, before=used)) == set()


def test_the_finding_names_the_launch_the_element_and_the_size() -> None:
    (finding,) = found(plan_of(f"{I}\n\ny[i] = x[i];"))[:1]
    assert finding.line == 5
    for words in ("y[i]", "1,407", "11x1x1 blocks of 128x1x1", "1,320"):
        assert words in finding.message
    assert finding.remedy


def test_vector_pointers_count_in_vectors() -> None:
    head = HEAD.replace("float* x", "float4* x").replace("float* y", "float4* y")
    quarter = ("ceil_div(ROWS * COLS // 4, BLOCK)", "1", "1")
    assert rules(plan_of(f"{I} y[i] = x[i];", head=head, grid=quarter)) == TAIL
    assert rules(plan_of(f"{I} if (i < ROWS * COLS / 4) y[i] = x[i];", head=head, grid=quarter)) == set()
    assert rules(plan_of(f"{I} y[i] = x[i];", 64, 64, head=head, grid=quarter)) == set()


def test_scalar_arguments_are_numbers_of_the_plan() -> None:
    head = HEAD.replace("y)", "y, int n)")
    args = ("x", "weight", "y", ScalarArgument(ctype="int", value="ROWS * COLS + 1"))
    body = f"{I} if (i < n) y[i] = x[i];"
    assert rules(plan_of(body, head=head, args=args)) == {("unguarded-tail", "warning")}
    exact = (*args[:3], ScalarArgument(ctype="int", value="ROWS * COLS"))
    assert rules(plan_of(body, head=head, args=exact)) == set()


def test_only_the_compiled_branch_of_a_conditional_counts() -> None:
    body = f"{I}\n#if COLS % 4 == 0\nif (i < ROWS * COLS) y[i] = 0.f;\n#else\ny[i] = 0.f;\n#endif"
    assert rules(plan_of(body, 33, 40)) == set()
    assert rules(plan_of(body, 33, 41)) == TAIL
    for condition in (
        "defined(COLS) && COLS > 40",
        "!(COLS < 41)",
        "COLS - 40",
        "(COLS / 41) == 1 || ROWS < 2",
    ):
        text = f"{I}\n#if {condition}\ny[i] = 0.f;\n#elif 1\n#else\ny[i] = 1.f;\n#endif"
        assert rules(plan_of(text, 33, 40)) == set(), condition
        assert rules(plan_of(text, 33, 41)) == TAIL, condition


LARGE = (70000, 70000)


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        (
            f"{I} if (i < (long long)ROWS * COLS) y[i] = x[i];",
            f"{WIDE} if (i < (long long)ROWS * COLS) y[i] = x[i];",
        ),
        (
            "long long i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = x[i];",
            f"{WIDE} y[i] = x[i];",
        ),
        (
            "size_t i = blockIdx.x * (unsigned)BLOCK + threadIdx.x; y[i] = 1.f;",
            "size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x; y[i] = 1.f;",
        ),
        (
            "for (int i = threadIdx.x; i < (long long)ROWS * COLS; i += 128) y[i] = 0.f;",
            "for (long long i = threadIdx.x; i < (long long)ROWS * COLS; i += 128) y[i] = 0.f;",
        ),
    ],
)
def test_an_index_that_wraps_at_the_problems_size_is_severe(bad: str, good: str) -> None:
    assert rules(plan_of(bad, *LARGE)) == OVERFLOW
    assert rules(plan_of(good, *LARGE)) == set()
    assert ("index-overflow", "severe") not in rules(plan_of(bad, 1024, 1024))


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        (
            f"{ROW_COL} if (row < ROWS && col < COLS) y[row * COLS + col] = 0.f;",
            f"{ROW_COL} if (row < ROWS && col < COLS) y[(long long)row * COLS + col] = 0.f;",
        ),
        (
            f"{ROW_COL} if (row >= ROWS) return; if (col >= COLS) return; int at = row * COLS + col; y[at] = 0.f;",
            f"{ROW_COL} if (row >= ROWS || col >= COLS) return; size_t at = (size_t)row * COLS + col; y[at] = 0.f;",
        ),
    ],
)
def test_a_product_of_guarded_coordinates_is_judged_by_the_guards(bad: str, good: str) -> None:
    for size in ((60000, 60000), LARGE):
        assert rules(plane_of(bad, *size)) == OVERFLOW
        assert rules(plane_of(good, *size)) == set()
    assert rules(plane_of(bad, 4096, 4096)) == set()


def test_unsigned_indices_reach_twice_as_far() -> None:
    body = "unsigned i = blockIdx.x * blockDim.x + threadIdx.x; if (i < (long long)ROWS * COLS) y[i] = x[i];"
    assert rules(plan_of(body, 50000, 60000)) == set()
    assert rules(plan_of(body, 70000, 70000)) == OVERFLOW


def test_unsigned_numbers_may_wrap_where_they_are_no_index() -> None:
    body = f"{WIDE} unsigned h = (blockIdx.x * 2654435761u + 7u) % 64u; y[i] = x[h];"
    assert rules(plan_of(body, *LARGE)) == set()


def test_a_doubtful_product_is_warned_of_only_where_the_tensor_is_large() -> None:
    head = HEAD.replace("y)", "y, const int* where)")
    body = "int c = where[0]; y[(c * COLS + c) * COLS + threadIdx.x] = 0.f;"
    args = ("x", "weight", "y", "where")
    where = Buffer(name="where", shape=("4",), dtype=DType.I32, zero=True)

    def plan(rows: int) -> BoundPlan:
        base = scaled_relu_program(f"{head} {{ {body} }}\n", steps=(scaled_relu_step(args=args),))
        program = Program.model_validate({**base.model_dump(), "buffers": [*base.buffers, where]})
        return bind(program, _problem(rows))

    assert rules(plan(64)) == set()
    assert rules(plan(60000)) == {("index-overflow", "warning")}


def _problem(rows: int) -> Problem:
    return scaled_relu_problem(rows, 60000)


def test_a_stride_matters_only_across_threads_and_in_a_large_tensor() -> None:
    body = "int t = threadIdx.x; if (t < ROWS) y[t * COLS] = 0.f;"
    assert rules(plan_of(body, 64, 64)) == {("uncoalesced", "warning")}
    assert rules(plan_of(body, 64, 4)) == set()
    assert rules(plan_of(body, 8, 64)) == set()
    assert rules(plan_of(body, 64, 64, block=("1", "1", "1"))) == set()


MANY = 3000
HOSTILE: dict[str, str] = {
    "names upon names": "int v0 = threadIdx.x;"
    + "".join(f"int v{n + 1} = v{n} + v{n};" for n in range(60))
    + "y[v60] = 0.f;",
    "conditions upon conditions": "bool b0 = threadIdx.x < 3;"
    + "".join(f"bool b{n + 1} = b{n} && b{n};" for n in range(60))
    + "if (b60) y[threadIdx.x] = 0.f;",
    "many statements": "".join(f"int v{n} = threadIdx.x; y[v{n}] = 0.f;" for n in range(MANY)),
    "many returns": "".join(f"if (threadIdx.x > {n}) return; y[threadIdx.x] = 0.f;" for n in range(MANY)),
    "nested loops": "".join(f"for (int v{n} = 0; v{n} < 9; ++v{n}) " for n in range(60)) + "y[v59] = 0.f;",
    "deep sums": "y[" + "threadIdx.x + " * MANY + "1] = 0.f;",
    "choices": "y[" + "x[0] > 0.f ? 1 : (" * 60 + "2" + ")" * 60 + "] = 0.f;",
    "conditionals in conditionals": "\n#if 1\n" * MANY + "y[threadIdx.x] = 0.f;" + "\n#endif\n" * MANY,
    "conditions made of macros": "\n#define A0 1\n"
    + "".join(f"#define A{n + 1} (A{n} + A{n})\n" for n in range(40))
    + "#if A40\ny[threadIdx.x] = 0.f;\n#endif\n",
    "long numbers": f"y[{'9' * 9000}] = 0.f; y[0x{'f' * 9000}u] = 0.f;",
    "names of themselves": "int a = b; int b = a; int c = c; y[a + b + c] = 0.f;",
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_code_is_judged_in_bounded_time(name: str) -> None:
    started = time.process_time()
    found(plan_of(HOSTILE[name]))
    assert time.process_time() - started < 10.0


# --- ranges -------------------------------------------------------------------------------------------------------


def test_literals_have_the_types_of_c() -> None:
    cases: dict[str, tuple[int, CType]] = {
        "7": (7, INT),
        "0x1F": (31, INT),
        "010": (8, INT),
        "1'000": (1000, INT),
        "4u": (4, UNSIGNED),
        "3000000000": (3000000000, LONG),
        "0xFFFFFFFF": (0xFFFFFFFF, UNSIGNED),
        "5ll": (5, LONG),
        "0b101": (5, INT),
    }
    for text, (value, ctype) in cases.items():
        assert literal(text) == number(value, ctype), text
    for text in ("1.0f", "1e5", "x", "089"):
        assert literal(text) is None, text


_small = st.integers(0, 40)


@st.composite
def progressions(draw: st.DrawFn, name: str) -> Range:
    low, step, count = draw(_small), draw(st.integers(1, 6)), draw(st.integers(1, 12))
    return Range(low, low + step * (count - 1), step=step, uses=frozenset({name}))


def values_of(r: Range) -> set[int]:
    assert r.step is not None
    return set(range(r.low, r.high + 1, r.step))


@given(progressions("a"), progressions("b"), st.sampled_from("+-*/%&"))
def test_a_range_holds_every_value_and_is_exact_where_it_says_so(a: Range, b: Range, operator: str) -> None:
    meaning: dict[str, Callable[[int, int], int]] = {
        "+": operators.add,
        "-": operators.sub,
        "*": operators.mul,
        "/": operators.floordiv,
        "%": operators.mod,
        "&": operators.and_,
    }
    made = combined(operator, a, b)
    if made is None:
        return
    results = {meaning[operator](x, y) for x in values_of(a) for y in values_of(b)}
    assert made.low <= min(results) and max(results) <= made.high
    if made.exact:
        assert (made.low, made.high) == (min(results), max(results))
    if made.step is not None:
        assert values_of(made) == results


@given(progressions("a"), st.integers(0, 80), st.booleans())
def test_a_guard_cuts_a_range_where_the_last_value_is(a: Range, limit: int, inclusive: bool) -> None:
    kept = {v for v in values_of(a) if v < limit or (inclusive and v == limit)}
    cut = a.below(number(limit), inclusive=inclusive)
    assert (cut is None) == (not kept)
    assert cut is None or values_of(cut) == kept
