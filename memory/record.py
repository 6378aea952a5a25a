"""The base of every record, element types, tensor specs and the arguments of ATen operations.

Here: what the other records are made of. Invariant: identity covers every field that changes behaviour, prefixed with
the class and the schema version, and leaves out labels at any depth.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, model_validator
from typing_extensions import TypeAliasType

SCHEMA_VERSION = 2
"""Raised whenever a record's meaning changes; part of every content hash."""

IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]*$"
Identifier = Annotated[str, Field(pattern=IDENTIFIER, max_length=200)]
Expression = Annotated[str, Field(min_length=1, max_length=500)]
"""An integer expression over dims, tunables, `x.shape[i]` and `x.stride[i]`; see tools.expressions."""


class Record(BaseModel):
    """A frozen value with an identity. Equality is by value; identity is `content_hash`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    LABELS: ClassVar[frozenset[str]] = frozenset()
    """Fields that name or explain without changing behaviour; left out of the hash."""

    def content_hash(self) -> str:
        """SHA-256 hex digest of the class name, the schema version and every behaviour-affecting field."""
        return self._digest

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """See pydantic. The copy works out its own hash."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("_digest", None)
        return copied

    @cached_property
    def _digest(self) -> str:
        # Worked out once: a record is frozen, and a search asks for the same programs' hashes again and again.
        text = json.dumps(_identity(self), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(f"{type(self).__name__}\n{SCHEMA_VERSION}\n{text}".encode()).hexdigest()


def _identity(value: object) -> object:
    """JSON form of a value without the labels of any record in it."""
    if isinstance(value, Record):
        kept = [name for name in type(value).model_fields if name not in value.LABELS]
        return {name: _identity(getattr(value, name)) for name in kept}
    if isinstance(value, tuple):
        return [_identity(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _identity(item) for key, item in value.items()}
    return value


class DType(StrEnum):
    """Element types a Program may use."""

    F64 = "f64"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    I64 = "i64"
    I32 = "i32"
    I16 = "i16"
    I8 = "i8"
    U8 = "u8"
    BOOL = "bool"

    @property
    def bytes(self) -> int:
        """Size of one element in bytes."""
        return _DTYPE_BYTES[self]

    @property
    def is_floating(self) -> bool:
        """True for f64, f32, f16 and bf16."""
        return self in (DType.F64, DType.F32, DType.F16, DType.BF16)


_DTYPE_BYTES = {
    DType.F64: 8,
    DType.F32: 4,
    DType.F16: 2,
    DType.BF16: 2,
    DType.I64: 8,
    DType.I32: 4,
    DType.I16: 2,
    DType.I8: 1,
    DType.U8: 1,
    DType.BOOL: 1,
}


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides, in elements, of a dense tensor of `shape`."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


class TensorSpec(Record):
    """Shape, dtype and strides of one tensor; no data."""

    shape: tuple[Annotated[int, Field(ge=0)], ...]
    dtype: DType
    strides: tuple[int, ...]
    """In elements, as PyTorch counts them."""

    @model_validator(mode="after")
    def _ranks_agree(self) -> TensorSpec:
        if len(self.shape) != len(self.strides):
            raise ValueError(f"shape {self.shape} and strides {self.strides} differ in rank")
        return self

    @property
    def elements(self) -> int:
        """Number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def bytes(self) -> int:
        """Bytes of the distinct elements (a broadcast dimension, stride 0, counts once)."""
        count = 1
        for size, stride in zip(self.shape, self.strides, strict=True):
            count *= size if stride != 0 or size == 0 else 1
        return count * self.dtype.bytes

    @property
    def is_contiguous(self) -> bool:
        """True where the elements lie row-major without gaps (sizes of 1 and empty tensors match any stride)."""
        if self.elements == 0:
            return True
        wanted = contiguous_strides(self.shape)
        return all(n == 1 or s == w for n, s, w in zip(self.shape, self.strides, wanted, strict=True))

    @staticmethod
    def dense(shape: tuple[int, ...], dtype: DType) -> TensorSpec:
        """A contiguous tensor's spec."""
        return TensorSpec(shape=shape, dtype=dtype, strides=contiguous_strides(shape))


class SpecialArgument(Record):
    """An argument that plain JSON cannot carry: exactly one field is set."""

    float: str | None = None
    """`inf`, `-inf` or `nan`."""
    text: str | None = None
    """A string argument of the operation, such as `"none"` for gelu's `approximate`."""
    dtype: DType | None = None
    memory_format: (
        Literal["contiguous_format", "channels_last", "channels_last_3d", "preserve_format"] | None
    ) = None
    expression: Expression | None = None
    """An integer expression over the Program's dims and tunables."""

    @model_validator(mode="after")
    def _one_field(self) -> SpecialArgument:
        if len([v for v in self.model_dump().values() if v is not None]) != 1:
            raise ValueError("set exactly one of float, text, dtype, memory_format, expression")
        if self.float is not None and self.float not in ("inf", "-inf", "nan"):
            raise ValueError(
                f"float must be 'inf', '-inf' or 'nan', not {self.float!r}; write others as numbers"
            )
        return self


Argument = TypeAliasType(
    "Argument",
    "StrictBool | StrictInt | StrictFloat | Identifier | SpecialArgument | tuple[Argument, ...] | None",
)
"""An operation's argument. A string names a tensor; numbers, booleans, null and lists are themselves."""
