"""Sliding windows as C++: a device function that joins one window of a tensor, and the calls of it.

A pool or a depthwise convolution is to its region what a load is: its result is read from another tensor in memory,
only that an element takes a window of elements. What follows (and the reductions after it) fuses as after any load.
Neighbouring windows overlap; their elements come from the L1 cache.
"""

from __future__ import annotations

from memory.records import DType
from tools.recipes.geometry import ZERO, Access, Geometry, Loop, Window
from tools.recipes.micro import C_TYPES, STORED_TYPES, Combine, literal
from tools.recipes.sizes import Size


def from_memory(text: str, dtype: DType) -> str:
    """An element of memory in its register type."""
    if dtype is DType.F16:
        return f"__half2float({text})"
    return f"__bfloat162float({text})" if dtype is DType.BF16 else text


def element(geometry: Geometry, access: Access, loops: list[Loop], *, lane: bool = False) -> str:
    """Expression of one element in its register type, at the loops' coordinates; of lane `v` where `lane`."""
    step = geometry.lane_stride(access)
    moves = lane and step != ZERO
    window = access.window
    if window is not None and geometry.vector_loop is not None:
        moves = moves and not window.slides(geometry.vector_loop.axes[-1])
    index = geometry.index(access, loops)
    if moves:
        index += _lanes(geometry, access)
    if window is None:
        return from_memory(f"{access.tensor}_in[{index}]", access.dtype)
    tensors, places = [f"{access.tensor}_in"], [index]
    if window.weight is not None:
        channel = geometry.index(window.weight, loops)
        weighted = lane and geometry.lane_stride(window.weight) != ZERO
        tensors.append(f"{window.weight.tensor}_in")
        places.append(channel + (_lanes(geometry, window.weight) if weighted else ""))
    places += [_coordinate(geometry, group, loops, lane=lane) for group in window.groups]
    return f"{_name(geometry, window)}({', '.join((*tensors, *places))})"


def functions(geometry: Geometry) -> list[str]:
    """The device functions of a region's windows."""
    lines: list[str] = []
    for access in geometry.loads.values():
        if access.window is not None:
            lines += _function(geometry, access, access.window)
    return lines


def tensors(access: Access) -> dict[str, DType]:
    """Tensors that loading an element reads, with their dtypes."""
    found = {access.tensor: access.dtype}
    if access.window is not None and access.window.weight is not None:
        found[access.window.weight.tensor] = access.window.weight.dtype
    return found


def _name(geometry: Geometry, window: Window) -> str:
    return f"{geometry.prefix.lower()}_window{window.number}"


def _lanes(geometry: Geometry, access: Access) -> str:
    step = geometry.lane_stride(access)
    return " + v" if step.text == "1" else f" + v * {geometry.size_macro(step)}"


def _coordinate(geometry: Geometry, group: tuple[int, ...], loops: list[Loop], *, lane: bool) -> str:
    """Where a window stands along one dimension, which may have been split into several axes."""
    terms: list[str] = []
    for position, axis in enumerate(group):
        loop = next(loop for loop in loops if axis in loop.axes)
        text = f"({loop.coordinate} + v)" if lane and loop is geometry.vector_loop else loop.coordinate
        inner = [geometry.size_macro(geometry.axis_size(other)) for other in group[position + 1 :]]
        terms.append(" * ".join((text, *inner)))
    return " + ".join(terms) or "0"


def _function(geometry: Geometry, access: Access, window: Window) -> list[str]:
    slide, index = window.slide, f"{geometry.prefix}_index"
    kind, stored = C_TYPES[access.dtype], STORED_TYPES[access.dtype]
    ranks = range(len(slide.axes))
    parameters = [f"const {stored}* __restrict__ from", *_weight_parameter(window), f"{index} base"]
    parameters += [f"{index} first"] if window.weight is not None else []
    parameters += [f"{index} at{rank}" for rank in ranks]
    shape = " x ".join(str(axis.kernel) for axis in slide.axes)
    lines = [
        f"// {slide.title}: a window of {shape} elements; what lies outside of the tensor is left out.",
        f"__device__ __forceinline__ {kind} {_name(geometry, window)}({', '.join(parameters)}) {{",
        f"    {kind} total = {_identity(slide.combine, access.dtype)};",
    ]
    lines += ["    int inside = 0;"] if slide.average else []
    pad = "    "
    place, weight = ["base"], ["first"]
    for rank, axis in enumerate(slide.axes):
        position = f"at{rank}" + (f" * {axis.stride}" if axis.stride > 1 else "")
        position += f" - {axis.padding}" if axis.padding else ""
        position += f" + k{rank}" + (f" * {axis.dilation}" if axis.dilation > 1 else "")
        lines += [
            "#pragma unroll",
            f"{pad}for (int k{rank} = 0; k{rank} < {axis.kernel}; ++k{rank}) {{",
            f"{pad}    const {index} i{rank} = {position};",
        ]
        if not axis.inside:
            lines.append(
                f"{pad}    if (i{rank} < 0 || i{rank} >= {geometry.size_macro(axis.size)}) continue;"
            )
        place.append(_term(geometry, f"i{rank}", window.strides[rank]))
        if window.weight is not None:
            weight.append(_term(geometry, f"k{rank}", window.weight_strides[rank]))
        pad += "    "
    value = from_memory(f"from[{' + '.join(place)}]", access.dtype)
    if window.weight is not None:
        factor = from_memory(f"filter[{' + '.join(weight)}]", window.weight.dtype)
        value += f" * {factor}"
    lines.append(f"{pad}const {kind} value = {value};")
    lines.append(f"{pad}{_JOINS[slide.combine]}")
    lines += [f"{pad}++inside;"] if slide.average else []
    lines += [f"{'    ' * (rank + 1)}}}" for rank in reversed(ranks)]
    lines.append(f"    return total / ({kind})inside;" if slide.average else "    return total;")
    return [*lines, "}"]


_JOINS = {
    Combine.SUM: "total += value;",
    Combine.MAXIMUM: "total = (value > total || value != value) ? value : total;  // a NaN stays, as in PyTorch",
}


def _weight_parameter(window: Window) -> list[str]:
    if window.weight is None:
        return []
    return [f"const {STORED_TYPES[window.weight.dtype]}* __restrict__ filter"]


def _identity(combine: Combine, dtype: DType) -> str:
    return literal(0.0 if combine is Combine.SUM else float("-inf"), dtype)


def _term(geometry: Geometry, coordinate: str, stride: Size) -> str:
    text = geometry.size_macro(geometry.table.canonical(stride))
    return coordinate if text == "1" else f"{coordinate} * {text}"
