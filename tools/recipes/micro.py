"""Micro-operations: what one node of the graph does to one element, or to one row of elements.

A region is a list of these in order. They name values of any rank; `tools.recipes.axes` finds the loops they share.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from enum import StrEnum

from memory.records import DType
from tools.recipes.sizes import Size


class Combine(StrEnum):
    """How a reduction joins two partial results; each is associative and has an identity."""

    SUM = "Sum"
    PRODUCT = "Product"
    MAXIMUM = "Maximum"
    MINIMUM = "Minimum"
    MOMENTS = "Moments"
    """Count, mean and sum of squared distances in one sweep (Welford's and Chan's formulas)."""
    EXPONENTIALS = "Exponentials"
    """Largest value and sum of exp(value - largest) in one sweep: the sum is rescaled when the largest grows."""


@dataclass(frozen=True)
class Map:
    """One scalar expression; `{0}`, `{1}` stand for its operands and `COUNT` for the elements of one row."""

    name: str
    dtype: DType
    text: str
    operands: tuple[str, ...]
    cheap: bool = True
    """Worth computing twice rather than keeping."""


@dataclass(frozen=True)
class Fill:
    """One scalar for every element of a shape."""

    name: str
    dtype: DType
    text: str
    dims: tuple[Size, ...]


@dataclass(frozen=True)
class Reduce:
    """Joins the elements of `operand` along `dims`, kept as sizes of 1 where `keep`."""

    name: str
    dtype: DType
    combine: Combine
    operand: str
    dims: tuple[int, ...]
    keep: bool


@dataclass(frozen=True)
class Shortcut:
    """A reduction that gives several values of the row in one sweep where they otherwise take two.

    It costs more arithmetic per element, so it pays where every sweep reads memory; kernels that keep a row on chip
    leave it out.
    """

    name: str
    dtype: DType
    combine: Combine
    operand: str
    dims: tuple[int, ...]
    gives: tuple[tuple[str, str], ...]
    """(value that it replaces, text of that value with `{0}` for the state)."""


@dataclass(frozen=True)
class SlideAxis:
    """One dimension of a window: element `o` of the result reads `o * stride - padding + k * dilation`, k < kernel."""

    size: Size
    """Of the tensor that is read."""
    kernel: int
    stride: int
    padding: int
    dilation: int
    inside: bool
    """No window reaches beyond the tensor, whatever its size."""


@dataclass(frozen=True)
class Slide:
    """Joins a window of a tensor in memory to one element; the window slides along the last dimensions.

    To its region the result is a load. Elements that would lie outside of the tensor are left out.
    """

    name: str
    dtype: DType
    combine: Combine
    operand: str
    """A value that lies in memory: never made by the same region."""
    dims: tuple[Size, ...]
    """Of the result."""
    axes: tuple[SlideAxis, ...]
    average: bool = False
    """The sum is divided by the number of elements inside."""
    weight: str | None = None
    """(channels, 1, *kernel): each element is multiplied by its channel's."""

    @property
    def title(self) -> str:
        """What it is."""
        if self.weight is not None:
            return "A convolution of each channel by itself"
        return "The maximum" if self.combine is Combine.MAXIMUM else "The mean" if self.average else "The sum"


@dataclass(frozen=True)
class Reshape:
    """The same elements in row-major order under other dimensions."""

    name: str
    operand: str
    dims: tuple[Size, ...]


@dataclass(frozen=True)
class Reorder:
    """Dimension `i` of the result is dimension `order[i]` of the operand."""

    name: str
    operand: str
    order: tuple[int, ...]


@dataclass(frozen=True)
class Expand:
    """Sizes of 1 repeated, and new leading dimensions."""

    name: str
    operand: str
    dims: tuple[Size, ...]


Micro = Map | Fill | Reduce | Shortcut | Reshape | Reorder | Expand | Slide

C_TYPES: dict[DType, str] = {
    DType.F64: "double",
    DType.F32: "float",
    DType.F16: "float",
    DType.BF16: "float",
    DType.I64: "long long",
    DType.I32: "int",
    DType.I16: "short",
    DType.I8: "signed char",
    DType.U8: "unsigned char",
    DType.BOOL: "bool",
}
"""The type a value has in registers: half precision is computed in float and rounded where it is stored."""

STORED_TYPES: dict[DType, str] = {**C_TYPES, DType.F16: "__half", DType.BF16: "__nv_bfloat16"}
"""The type a value has in memory."""


STATE_WORDS = {Combine.MOMENTS: 3, Combine.EXPONENTIALS: 2}
"""Numbers in the state of a reduction that has more than one."""


def state_type(op: Reduce) -> str:
    """C++ type of a reduction's partial result."""
    kind = C_TYPES[op.dtype]
    return f"{op.combine.value}State<{kind}>" if op.combine in STATE_WORDS else kind


def literal(value: float | int | bool, dtype: DType) -> str:
    """A number as C++ text of the register type of `dtype`."""
    kind = C_TYPES[dtype]
    if dtype is DType.BOOL:
        return "true" if value else "false"
    if dtype.is_floating:
        return _real(float(value), double=kind == "double")
    whole = int(value)
    if dtype is DType.I64:
        return f"{whole}LL" if whole > -(2**63) else "(-9223372036854775807LL - 1)"
    return str(whole) if whole >= 0 else f"({whole})"


def _real(value: float, *, double: bool) -> str:
    if math.isnan(value):
        return "__longlong_as_double(0x7ff8000000000000LL)" if double else "__int_as_float(0x7fc00000)"
    limit = 1.7976931348623157e308 if double else 3.4028235677973366e38
    if abs(value) >= limit:
        text = "__longlong_as_double(0x7ff0000000000000LL)" if double else "__int_as_float(0x7f800000)"
        return f"(-{text})" if value < 0 else text
    text = repr(value) if "e" in repr(value) or "." in repr(value) else f"{value!r}.0"
    text = text if double else f"{text}f"
    return f"({text})" if value < 0 or text.startswith("-") else text


@dataclass
class Draft:
    """Micro-operations of one node while they are written; every temporary's name starts with the node's."""

    stem: str
    dtypes: dict[str, DType]
    """Dtype of every value named so far, operands included."""
    ops: list[Micro] = field(default_factory=list)

    def fresh(self, word: str) -> str:
        """An unused temporary name."""
        name = f"{self.stem}_{word}"
        while name in self.dtypes:
            name = f"{name}_"
        return name

    def map(self, name: str, dtype: DType, text: str, *operands: str, cheap: bool = True) -> str:
        """Append a Map whose operands are converted to the register type of `dtype`."""
        converted = text
        for index, operand in enumerate(operands):
            source = C_TYPES[self.dtypes[operand]]
            if source != C_TYPES[dtype]:
                converted = converted.replace(f"{{{index}}}", f"({C_TYPES[dtype]}){{{index}}}")
        return self.raw(name, dtype, fit(converted, dtype), *operands, cheap=cheap)

    def raw(self, name: str, dtype: DType, text: str, *operands: str, cheap: bool = True) -> str:
        """Append a Map whose text deals with operand types itself."""
        self.ops.append(Map(name, dtype, text, operands, cheap))
        self.dtypes[name] = dtype
        return name

    def reduce(
        self, word: str, combine: Combine, operand: str, dims: tuple[int, ...], *, keep: bool = True
    ) -> str:
        """Append a Reduce under a temporary name, accumulated in the operand's own dtype."""
        name = self.fresh(word)
        self.ops.append(Reduce(name, self.dtypes[operand], combine, operand, dims, keep))
        self.dtypes[name] = self.dtypes[operand]
        return name

    def slide(self, slide: Slide) -> str:
        """Append a Slide under a temporary name, in the operand's own dtype."""
        name = self.fresh("window")
        self.ops.append(replace(slide, name=name))
        self.dtypes[name] = slide.dtype
        return name

    def shortcut(
        self, combine: Combine, operand: str, dims: tuple[int, ...], gives: tuple[tuple[str, str], ...]
    ) -> None:
        """Append a Shortcut to values made before."""
        name = self.fresh("state")
        fitted = tuple((value, fit(text, self.dtypes[operand])) for value, text in gives)
        self.ops.append(Shortcut(name, self.dtypes[operand], combine, operand, dims, fitted))
        self.dtypes[name] = self.dtypes[operand]

    def reshape(self, name: str, operand: str, dims: tuple[Size, ...]) -> str:
        """Append a Reshape."""
        self.ops.append(Reshape(name, operand, dims))
        self.dtypes[name] = self.dtypes[operand]
        return name


def fit(text: str, dtype: DType) -> str:
    """Give a template its precision: `exp@(` becomes expf( or exp(, and `1.0L` becomes 1.0f or 1.0."""
    single = C_TYPES[dtype] != "double"
    out = text.replace("@(", "f(" if single else "(")
    return _PRECISE.sub(r"\1f" if single else r"\1", out)


_PRECISE = re.compile(r"(\d+\.\d+(?:e[-+]?\d+)?)L\b")
