"""Which ATen operations a library step may call.

Here: the rule and the one place that turns an operation's name into something callable. Not here: calling it.
The rule admits functions of their arguments alone: aten namespace, nothing written, no random numbers, no output
whose shape depends on data, no uninitialised memory, no file, host or process access, tensors out.
`why_not_allowed` judges a name; `why_not_called` also the arguments that switch randomness or hidden updates on,
`why_not_indexed` the dtypes of indices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import torch
from torch._ops import OpOverload, OpOverloadPacket

from memory.errors import BadInput
from memory.records import Argument, DType

_UNINITIALISED = frozenset(
    [
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_quantized",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
    ]
)
_OUTSIDE = frozenset(
    # Files, pinned host memory, storage surgery, process-wide switches, printing and assertions.
    [
        "from_file",
        "_pin_memory",
        "pin_memory",
        "_print",
        "_assert_async",
        "_assert_scalar",
        "_assert_tensor_metadata",
        "item",
        "_local_scalar_dense",
        "is_pinned",
        "record_stream",
        "_debug_has_internal_overlap",
        "set",
        "resize",
        "resize_as",
        "_resize_output",
        "sym_constrain_range",
        "sym_constrain_range_for_size",
        "_functional_sym_constrain_range",
        "_functional_sym_constrain_range_for_size",
        "_functional_assert_async",
        "_functional_assert_scalar",
        "_make_dep_token",
        "_sync",
        "data",
        "detach_copy",
    ]
)
_RANDOM_ONLY_WITH_DROPOUT = frozenset(
    [
        "scaled_dot_product_attention",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "dropout",
        "feature_dropout",
        "alpha_dropout",
        "native_dropout",
        "gru",
        "lstm",
        "rnn_tanh",
        "rnn_relu",
    ]
)
_HIDDEN_WRITES = frozenset(
    # Their schemas hide that they write running statistics, whatever the arguments.
    ["batch_norm_update_stats", "batch_norm_gather_stats", "batch_norm_gather_stats_with_counts"]
)
_PRIVATE_ALLOWED = frozenset(
    # Operations with a leading underscore are PyTorch's own: many trust their arguments and read out of bounds where
    # these are wrong (_reshape_alias, _convert_indices_*). Allowed are those that captured graphs hold.
    "_softmax _log_softmax _safe_softmax _native_batch_norm_legit_functional "
    "_native_batch_norm_legit_no_training _native_batch_norm_legit _unsafe_view _to_copy "
    "_adaptive_avg_pool2d _adaptive_avg_pool3d _cdist_forward _prelu_kernel _unsafe_index _weight_norm "
    "_weight_norm_interface _trilinear _scaled_dot_product_flash_attention _fft_r2c _fft_c2r _fft_c2c "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention_for_cpu "
    "_upsample_bicubic2d_aa _scaled_dot_product_attention_math _scaled_dot_product_cudnn_attention "
    "_upsample_bilinear2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d "
    "_upsample_nearest_exact3d _embedding_bag _embedding_bag_forward_only _pdist_forward _linalg_det "
    "_linalg_slogdet __lshift__ __rshift__ "
    "_linalg_svd _linalg_eigh _linalg_solve_ex _grouped_mm _transformer_encoder_layer_fwd "
    "_native_multi_head_attention".split()
)
_SHAPED_BY_MASKS = frozenset(("index",))
"""Operations whose result's shape depends on the data only where an index is a mask."""
_UPDATES_RUNNING_STATISTICS = frozenset(
    # Their schemas hide that training writes running_mean and running_var.
    ["batch_norm", "instance_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"]
)
_REFUSED_TAGS = {
    "nondeterministic_seeded": "it draws random numbers",
    "dynamic_output_shape": "the shape of its result depends on the data",
    "data_dependent_output": "it reads tensor data on the host",
    "inplace_view": "it changes its argument",
}


def resolve(op: str) -> OpOverload:
    """The overload named `aten.name.overload`. Raises BadInput with the reason where it may not be called."""
    found = _look_up(op)
    if isinstance(found, str):
        raise BadInput(f"library operation {op!r} may not be called: {found}")
    return found


def why_not_allowed(op: str) -> str | None:
    """Why a library step may not call `op`; None where it may."""
    found = _look_up(op)
    return found if isinstance(found, str) else None


def why_not_called(op: str, args: tuple[Argument, ...], kwargs: Mapping[str, Argument]) -> str | None:
    """Why `op` may not be called with these arguments; None where it may. Adds the arguments to `why_not_allowed`."""
    found = _look_up(op)
    if isinstance(found, str):
        return found
    given: dict[str, Argument] = {
        a.name: a.default_value for a in found._schema.arguments if not a.kwarg_only
    }
    given |= dict(zip(given, args, strict=False))
    given |= kwargs
    name = op.split(".")[1]
    if name in _RANDOM_ONLY_WITH_DROPOUT and _drops(given):
        return "dropout is on, so that it draws random numbers; turn it off"
    training = any(given.get(flag) for flag in ("training", "use_input_stats"))
    if name in _UPDATES_RUNNING_STATISTICS and training and given.get("running_mean") is not None:
        return "it updates running statistics in place; use aten._native_batch_norm_legit_functional.default"
    return None


def why_not_indexed(op: str, reads: Sequence[DType]) -> str | None:
    """Why `op` may not be given tensors of these dtypes, in the order of its arguments; None where it may."""
    if op.split(".")[1] in _SHAPED_BY_MASKS and any(d in (DType.BOOL, DType.U8) for d in reads[1:]):
        return "an index is a mask, so that the shape of its result depends on the data; use aten.where"
    return None


def _drops(given: Mapping[str, Argument]) -> bool:
    if "train" in given and not given["train"]:
        return False
    return any(given.get(rate) not in (None, 0, 0.0) for rate in ("p", "dropout", "dropout_p"))


@lru_cache(maxsize=4096)
def _look_up(op: str) -> OpOverload | str:
    parts = op.split(".")
    if len(parts) != 3 or parts[0] != "aten" or not all(part.isidentifier() for part in parts):
        return "write it as aten.name.overload, such as aten.mm.default"
    _, name, overload = parts
    packet = getattr(torch.ops.aten, name, None)
    found = getattr(packet, overload, None) if isinstance(packet, OpOverloadPacket) else None
    if not isinstance(found, OpOverload):
        return "this PyTorch has no such operation"
    return _objection(name, found) or found


def _objection(name: str, found: OpOverload) -> str | None:
    schema = found._schema
    if schema.is_mutable or any(a.is_out for a in schema.arguments):
        return "it writes into its arguments; use the functional form"
    if name.startswith("_") and name not in _PRIVATE_ALLOWED:
        return "it is one of PyTorch's private operations"
    if name in _HIDDEN_WRITES:
        return "it writes running statistics"
    if name in _UNINITIALISED:
        return "it returns uninitialised memory"
    if name in _OUTSIDE or "cuda" in name or "distributed" in name:
        return "it reaches outside the computation"
    if name not in _RANDOM_ONLY_WITH_DROPOUT:
        tags = {tag.name for tag in found.tags}
        if name in _SHAPED_BY_MASKS:
            tags -= {"dynamic_output_shape"}
        for tag, reason in _REFUSED_TAGS.items():
            if tag in tags:
                return reason
    if not schema.returns or not all(_is_tensor(str(r.type)) for r in schema.returns):
        return "it returns something other than tensors"
    return None


def _is_tensor(kind: str) -> bool:
    return kind in ("Tensor", "Optional[Tensor]", "List[Tensor]")
