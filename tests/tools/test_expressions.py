"""The expression evaluator: what it computes, and that nothing else can be smuggled through it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.records import DType, TensorSpec
from tools.expressions import LIMIT, ExpressionError, Scope, evaluate, names_in

SCOPE = Scope({"N": 7, "BLOCK": 4}, {"x": TensorSpec.dense((10, 3), DType.F32)})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("N // BLOCK", 1),
        ("N % BLOCK", 3),
        ("-N // 2", -4),
        ("--N", 7),
        ("ceil_div(N, BLOCK)", 2),
        ("min(N, BLOCK, 5) + max(1, 2)", 6),
        ("x.shape[0] * x.shape[-1]", 30),
        ("x.stride[0]", 3),
        ("10 - 3 - 2", 5),
    ],
)
def test_it_computes_what_the_grammar_says(text: str, value: int) -> None:
    assert evaluate(text, SCOPE) == value


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "empty"),
        ("1 +", "ends where a value was expected"),
        ("N M", "unexpected 'M'"),
        ("M", "unknown name 'M'; dims and tunables: BLOCK, N"),
        ("y.shape[0]", "unknown tensor 'y'; tensors: x"),
        ("x.shape[2]", "2 dimensions"),
        ("x.size[0]", ".shape[i] and .stride[i]"),
        ("x.shape[N]", "integer literal"),
        ("1 // 0", "divides by zero"),
        ("ceil_div(1, 0)", "divides by zero"),
        ("ceil_div(1)", "1 arguments"),
        ("min(1)", "1 arguments"),
        ("2 ** 3", "unexpected '*'"),
        ("__import__('os')", "unexpected"),
        ("open(1)", "no function 'open'"),
        ("x.__class__[0]", ".shape[i] and .stride[i]"),
        ("1.5", "unexpected"),
        ("9" * 40, "out of range"),
        ("4611686018427387904 * 2", "range"),
        ("(" * 60 + "1" + ")" * 60, "nested"),
        ("-" * 60 + "1", "nested"),
        ("a if b else c", "unexpected"),
        ("[1]", "unexpected"),
        ("lambda: 1", "unexpected"),
    ],
)
def test_everything_else_is_refused_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, SCOPE)
    assert complaint in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_gives_a_bounded_integer_or_an_expression_error(text: str) -> None:
    try:
        value = evaluate(text, SCOPE)
    except ExpressionError:
        return
    assert isinstance(value, int)
    assert abs(value) <= max(LIMIT, 10**19)


_atoms = st.one_of(st.integers(0, 1000).map(str), st.sampled_from(["N", "BLOCK"]))
_trees = st.recursive(
    _atoms,
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(
        lambda t: f"({t[0]} {t[1]} {t[2]})"
    ),
    max_leaves=12,
)


@given(_trees)
def test_arithmetic_agrees_with_python(text: str) -> None:
    try:
        expected = eval(text, {"__builtins__": {}}, {"N": 7, "BLOCK": 4})
    except ZeroDivisionError:
        with pytest.raises(ExpressionError):
            evaluate(text, SCOPE)
        return
    if abs(expected) < LIMIT:
        try:
            assert evaluate(text, SCOPE) == expected
        except ExpressionError as error:
            # An intermediate result may leave the range although the end result does not.
            assert "range" in str(error)


@given(st.integers(-1000, 1000), st.integers(1, 50))
def test_ceil_div_rounds_up(a: int, b: int) -> None:
    quotient = evaluate("ceil_div(A, B)", Scope({"A": a, "B": b}, {}))
    assert (quotient - 1) * b < a <= quotient * b


def test_names_are_found_in_calls_and_sizes() -> None:
    assert names_in("min(A, x.shape[0]) + 2 * B") == {"A", "B", "x"}
