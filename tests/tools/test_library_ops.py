"""The allow-list of library operations: what it lets through and what it refuses."""

from __future__ import annotations

import pytest
import torch

from memory.errors import BadInput
from memory.records import DType
from tools.library_ops import resolve, why_not_allowed, why_not_called, why_not_indexed


@pytest.mark.parametrize(
    "op",
    [
        "aten.mm.default",
        "aten.convolution.default",
        "aten.add.Tensor",
        "aten.view.default",
        "aten.max.dim",
        "aten.split.Tensor",
        "aten.full.default",
        "aten.gru.input",
        "aten.scaled_dot_product_attention.default",
        "aten._native_batch_norm_legit_functional.default",
        "aten.index.Tensor",
        "aten._embedding_bag.default",
        "aten.__lshift__.Scalar",
    ],
)
def test_functions_of_their_arguments_are_allowed(op: str) -> None:
    assert why_not_allowed(op) is None
    assert str(resolve(op)) == op


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        ("aten.add_.Tensor", "writes"),
        ("aten.mm.out", "writes"),
        ("aten.bernoulli.p", "random"),
        ("aten.rand.default", "random"),
        ("aten.nonzero.default", "depends on the data"),
        ("aten.empty.memory_format", "uninitialised"),
        ("aten.empty_like.default", "uninitialised"),
        ("aten.from_file.default", "outside"),
        ("aten.item.default", "outside"),
        ("aten.is_nonzero.default", "other than tensors"),
        ("aten.no_such_operation.default", "no such"),
        ("prims.add.default", "aten.name.overload"),
        ("aten.mm", "aten.name.overload"),
        ("aten.__class__.default", "no such"),
    ],
)
def test_everything_else_is_refused_with_its_reason(op: str, reason: str) -> None:
    assert reason in str(why_not_allowed(op))
    with pytest.raises(BadInput, match=op.replace(".", r"\.")):
        resolve(op)


def test_a_resolved_operation_computes() -> None:
    result = resolve("aten.add.Tensor")(torch.ones(3), torch.ones(3), alpha=2)
    assert torch.equal(result, torch.full((3,), 3.0))


def test_attention_is_callable_only_without_dropout() -> None:
    op = "aten.scaled_dot_product_attention.default"
    assert why_not_called(op, ("q", "k", "v"), {}) is None
    assert why_not_called(op, ("q", "k", "v", None, 0.0), {}) is None
    assert "random" in str(why_not_called(op, ("q", "k", "v", None, 0.1), {}))
    assert "random" in str(why_not_called(op, ("q", "k", "v"), {"dropout_p": 0.5}))


def test_dropout_is_callable_only_in_evaluation_mode() -> None:
    assert why_not_called("aten.dropout.default", ("x", 0.5, False), {}) is None
    assert "random" in str(why_not_called("aten.dropout.default", ("x", 0.5, True), {}))


def test_normalisation_that_would_write_its_running_statistics_is_refused() -> None:
    op = "aten.batch_norm.default"
    training = ("x", "w", "b", "mean", "var", True, 0.1, 1e-5, False)
    evaluating = ("x", "w", "b", "mean", "var", False, 0.1, 1e-5, False)
    assert "running statistics" in str(why_not_called(op, training, {}))
    assert why_not_called(op, evaluating, {}) is None
    assert (
        why_not_called(
            "aten.instance_norm.default", ("x", None, None, None, None, True, 0.1, 1e-5, False), {}
        )
        is None
    )


def test_an_index_must_be_numbers_because_a_masks_result_has_no_fixed_shape() -> None:
    op = "aten.index.Tensor"
    assert why_not_indexed(op, [DType.F32, DType.I64, DType.I32]) is None
    assert why_not_indexed(op, [DType.BOOL, DType.I64]) is None
    for mask in (DType.BOOL, DType.U8):
        assert "depends on the data" in str(why_not_indexed(op, [DType.F32, mask]))
    assert why_not_indexed("aten.where.self", [DType.BOOL, DType.F32, DType.F32]) is None
