"""Which of clang-tidy's checks speak about a kernel, how much each one weighs, and what it asks of the author.

Chosen by running everything clang-tidy has over every recipe's programs for a hundred captured problems, over the
honest kernels of the tests and over broken ones. Kept: checks that found real faults and said nothing about honest
kernels. Left out although they sound right, with the honest kernels they speak about:
bugprone-implicit-widening-of-multiplication-result (three in four: `x[row * COLS + col]` is only wrong at sizes that
tools.lint_sizes knows and clang does not), bugprone-narrowing-conversions and -Wsign-compare (all: threadIdx is
unsigned, indices are int), misc-redundant-expression (tests of a computed size against itself),
bugprone-branch-clone, -Wunused-variable and deadcode.DeadStores (generated code loads what one variant needs),
bugprone-signed-char-misuse (int8 kernels), -Wdouble-promotion (float64 accumulators are meant).

Severe is what happens whenever the line runs: facts that the compiler proves from constants and control flow, and
paths on which the analyzer had to assume nothing. All else is advice.
"""

from __future__ import annotations

from typing import Literal

ANALYZER = "clang-analyzer-"

_INITIALISE = "give the variable a value on every path before it is read"
_BOUNDS = "keep the index inside the array, or make the array as large as the loop"
_DIVISOR = "make sure that the divisor cannot be zero"
_POINTER = "do not read or write through a pointer that is null"
_WIDEN = "make one factor `long long` before multiplying"

SEVERE: dict[str, str] = {
    "clang-diagnostic-uninitialized": _INITIALISE,
    "clang-diagnostic-array-bounds": _BOUNDS,
    "clang-diagnostic-division-by-zero": _DIVISOR,
    "clang-diagnostic-null-dereference": _POINTER,
    "clang-diagnostic-infinite-recursion": "end the recursion: a kernel's stack is small",
}
"""Check -> remedy. Each one looks at reachable code only."""

SEVERE_WHERE_CERTAIN: dict[str, str] = {
    "clang-diagnostic-integer-overflow": _WIDEN,
    "clang-diagnostic-constant-conversion": "hold the value in a type that is wide enough for it",
}
"""Constants that do not fit, usually a size of the problem: clang reports them in branches never taken as well, so
they are severe only where no condition stands before them."""

ANALYZED: dict[str, str] = {
    f"{ANALYZER}core.CallAndMessage": _INITIALISE,
    f"{ANALYZER}core.DivideZero": _DIVISOR,
    f"{ANALYZER}core.NonNullParamChecker": _POINTER,
    f"{ANALYZER}core.NullDereference": _POINTER,
    f"{ANALYZER}core.StackAddressEscape": "do not keep the address of a variable that ends with its function",
    f"{ANALYZER}core.UndefinedBinaryOperatorResult": _INITIALISE,
    f"{ANALYZER}core.uninitialized.ArraySubscript": _INITIALISE,
    f"{ANALYZER}core.uninitialized.Assign": _INITIALISE,
    f"{ANALYZER}core.uninitialized.Branch": _INITIALISE,
    f"{ANALYZER}core.uninitialized.UndefReturn": _INITIALISE,
    f"{ANALYZER}security.ArrayBound": _BOUNDS,
}
"""Faults on a path through the kernel: severe where the analyzer assumed nothing to walk it."""

WARNINGS: dict[str, str] = {
    "clang-diagnostic-empty-body": "remove the semicolon after the condition",
    "clang-diagnostic-for-loop-analysis": "change the loop's own variable in its step",
    "clang-diagnostic-int-in-bool-context": "compare with zero, or use && and ||",
    "clang-diagnostic-literal-conversion": "write the number in the type that holds it",
    "clang-diagnostic-parentheses": "write == for a comparison",
    "clang-diagnostic-return-type": "return a value on every path",
    "clang-diagnostic-self-assign": "assign what was meant, or remove the line",
    "clang-diagnostic-shift-count-negative": "shift by 0 to 31 (63 for 64-bit integers)",
    "clang-diagnostic-shift-count-overflow": "shift by 0 to 31 (63 for 64-bit integers)",
    "clang-diagnostic-sizeof-pointer-div": "divide the size of the array, not of a pointer",
    "clang-diagnostic-sometimes-uninitialized": _INITIALISE,
    f"{ANALYZER}core.BitwiseShift": "shift by 0 to 31 (63 for 64-bit integers)",
    "clang-diagnostic-tautological-unsigned-zero-compare": "an unsigned index never is negative: use int",
    "clang-diagnostic-unsequenced": "split the expression: its order is not defined",
    "clang-diagnostic-unused-comparison": "use the result, or write = for an assignment",
    "clang-diagnostic-unused-value": "use the result, or remove the line",
    "bugprone-chained-comparison": "compare twice and join with &&",
    "bugprone-infinite-loop": "change what the condition reads inside the loop",
    "bugprone-integer-division": "convert one side to a floating-point type first, or write out that it rounds down",
    "bugprone-macro-repeated-side-effects": "pass the macro a plain variable",
    "bugprone-misplaced-widening-cast": "convert a factor, not the product",
    "bugprone-multiple-statement-macro": "put braces around the macro's statements",
    "bugprone-redundant-branch-condition": "remove the condition, or test what was meant",
    "bugprone-sizeof-expression": "take the size of the element or of the array, as meant",
    "bugprone-suspicious-memset-usage": "pass the byte value and then the size",
    "bugprone-suspicious-semicolon": "remove the semicolon after the condition",
    "bugprone-terminating-continue": "use break to leave the loop",
    "bugprone-too-small-loop-variable": "give the loop variable the type of its bound",
}

REMEDIES: dict[str, str] = {**SEVERE, **SEVERE_WHERE_CERTAIN, **ANALYZED, **WARNINGS}
"""Every check asked for, with its remedy."""

CHECKS = ",".join(["-*", *REMEDIES])

WARNING_FLAGS = (
    *("-Wall", "-Wextra", "-Wloop-analysis", "-Wtautological-unsigned-zero-compare"),
    # What is an error to clang alone must not hide the rest: nvcc takes both.
    *("-Wno-error=parentheses", "-Wno-c++11-narrowing"),
)

MAX_NODES = 8000
"""Steps of the analyzer for one function. A count, so that the verdict is the same on a busy machine; 8000 took the
slowest recipe from 1060 to 130 ms and lost none of the faults in the tests."""


def severity_of(check: str, assumed: bool, certain: bool) -> Literal["severe", "warning"]:
    """How much a finding weighs: `assumed` where its path rests on assumptions, `certain` where no condition stands
    before it."""
    severe = (
        check in SEVERE or (check in ANALYZED and not assumed) or (check in SEVERE_WHERE_CERTAIN and certain)
    )
    return "severe" if severe else "warning"
