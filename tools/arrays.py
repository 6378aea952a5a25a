"""Host arrays of every Program dtype: NumPy for memory, torch for arithmetic that NumPy lacks.

NumPy has no bfloat16: such an array travels as the bit patterns in `uint16`.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from memory.records import DType, TensorSpec

Array = NDArray[np.generic]

_NUMPY: dict[DType, np.dtype[np.generic]] = {
    DType.F64: np.dtype(np.float64),
    DType.F32: np.dtype(np.float32),
    DType.F16: np.dtype(np.float16),
    DType.BF16: np.dtype(np.uint16),
    DType.I64: np.dtype(np.int64),
    DType.I32: np.dtype(np.int32),
    DType.I16: np.dtype(np.int16),
    DType.I8: np.dtype(np.int8),
    DType.U8: np.dtype(np.uint8),
    DType.BOOL: np.dtype(np.bool_),
}
_TORCH: dict[DType, torch.dtype] = {
    DType.F64: torch.float64,
    DType.F32: torch.float32,
    DType.F16: torch.float16,
    DType.BF16: torch.bfloat16,
    DType.I64: torch.int64,
    DType.I32: torch.int32,
    DType.I16: torch.int16,
    DType.I8: torch.int8,
    DType.U8: torch.uint8,
    DType.BOOL: torch.bool,
}
NARROW_FLOATS = frozenset((torch.float32, torch.float16, torch.bfloat16))
"""What an oracle in float64 must not be rounded to."""
_FROM_TORCH = {torch_dtype: dtype for dtype, torch_dtype in _TORCH.items()}


def numpy_dtype(dtype: DType) -> np.dtype[np.generic]:
    """NumPy's element type for `dtype`; `uint16` bit patterns for bf16."""
    return _NUMPY[dtype]


def torch_dtype(dtype: DType) -> torch.dtype:
    """torch's element type for `dtype`."""
    return _TORCH[dtype]


def dtype_of(dtype: torch.dtype) -> DType | None:
    """Our name of a torch element type; None where a Program cannot hold it (complex, float8, quantized)."""
    return _FROM_TORCH.get(dtype)


def tensor_from(array: Array, dtype: DType) -> torch.Tensor:
    """A torch view of a host array's memory. The array may be read-only: then the caller must not write."""
    if dtype is DType.BF16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def array_from(tensor: torch.Tensor) -> Array:
    """A NumPy view of a CPU tensor's memory; bf16 as `uint16` bit patterns."""
    if tensor.dtype is torch.bfloat16:
        return tensor.detach().view(torch.int16).numpy().view(np.uint16)
    return tensor.detach().numpy()


def as_float64(array: Array, dtype: DType) -> NDArray[np.float64]:
    """The values of a floating array as float64."""
    if dtype is DType.BF16:
        # bf16 is the upper half of an f32.
        return (array.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return array.astype(np.float64)


def spec_of(tensor: torch.Tensor) -> TensorSpec:
    """Spec of a tensor. Raises KeyError for an element type that Programs cannot hold."""
    return TensorSpec(
        shape=tuple(tensor.shape), dtype=_FROM_TORCH[tensor.dtype], strides=tuple(tensor.stride())
    )


def widened(value: object) -> object:
    """float64 for a narrower float dtype, as an oracle asks for it; anything else unchanged."""
    return torch.float64 if isinstance(value, torch.dtype) and value in NARROW_FLOATS else value


def laid_out(tensor: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    """The same values with the spec's strides; broadcast dimensions (stride 0) share memory."""
    if all(stride != 0 for stride in spec.strides):
        if spec.is_contiguous:
            return tensor.contiguous()
        return torch.empty_strided(spec.shape, spec.strides, dtype=tensor.dtype, device=tensor.device).copy_(
            tensor
        )
    kept = [0 if stride == 0 else size for size, stride in zip(spec.shape, spec.strides, strict=True)]
    first = tensor[tuple(slice(0, size or 1) for size in kept)]
    strides = [stride or 1 for stride in spec.strides]
    base = torch.empty_strided(first.shape, strides, dtype=tensor.dtype, device=tensor.device)
    return base.copy_(first).as_strided(spec.shape, spec.strides)
