"""Lowerings of operations that slide a window over a tensor: pools, and convolutions of each channel by itself."""

from __future__ import annotations

from collections.abc import Sequence

from tools.recipes.arguments import Arguments
from tools.recipes.lowering import LOWERINGS, Context
from tools.recipes.micro import Combine, Slide, SlideAxis
from tools.recipes.sizes import ONE

MAX_WINDOW = 128
"""Elements; a longer loop over each window is no way to do it."""


def _pool(context: Context) -> bool:
    x = context.arguments.tensor(context.parameters[0])
    rank = int(context.base.split("pool")[1][0])
    if x is None or len(context.dims(x)) <= rank or any(o is not None for o in context.node.outputs[1:]):
        return False
    arguments, dtype = context.arguments, context.draft.dtypes[x]
    kernel, ceil = arguments.spread("kernel_size", rank, 1), arguments.flag("ceil_mode")
    stride = arguments.spread("stride", rank, 0) if arguments.integers("stride") else kernel
    padding = arguments.spread("padding", rank, 0)
    axes = _axes(
        context, x, (kernel, stride, padding, arguments.spread("dilation", rank, 1)), inside=not ceil
    )
    if axes is None or not dtype.is_floating:
        return False
    if "max" in context.base:
        _slide(context, Slide("", dtype, Combine.MAXIMUM, x, context.dims(context.output), axes))
        return True
    divisor = arguments.get("divisor_override")
    padded = any(padding) and arguments.get("count_include_pad") is not False
    if divisor is None and padded and ceil:
        return False  # a window that reaches beyond the padding counts what it has of it
    inner = divisor is None and not padded and (any(padding) or ceil)
    slide = Slide("", dtype, Combine.SUM, x, context.dims(context.output), axes, average=inner)
    volume = 1
    for size in kernel:
        volume *= size
    count = divisor if isinstance(divisor, int) and divisor else volume
    _slide(context, slide, "{0}" if inner else f"{{0}} / {count}.0L")
    return True


def _convolution(context: Context) -> bool:
    arguments = context.arguments
    x, weight = arguments.tensor("input"), arguments.tensor("weight")
    if x is None or weight is None or arguments.flag("transposed"):
        return False
    source, filters, dtype = context.dims(x), context.dims(weight), context.draft.dtypes[x]
    rank = len(filters) - 2
    channels = source[1].value if len(source) == rank + 2 else 0
    # One filter for each channel; more filters a channel would have their own order of channels.
    depthwise = arguments.integer("groups", 1) == channels == filters[0].value and filters[1].value == 1
    kernel = tuple(size.value for size in filters[2:])
    if not depthwise or channels == 1 or dtype is not context.draft.dtypes[weight] or not dtype.is_floating:
        return False
    settings = tuple(arguments.spread(name, rank, default) for name, default in _SETTINGS)
    axes = _axes(context, x, (kernel, *settings), inside=True)
    if axes is None:
        return False
    slide = Slide("", dtype, Combine.SUM, x, context.dims(context.output), axes, weight=weight)
    bias = arguments.tensor("bias")
    if bias is None:
        _slide(context, slide)
        return True
    shaped = context.draft.reshape(
        context.draft.fresh("bias"), bias, (*context.dims(bias), *(ONE for _ in range(rank)))
    )
    _slide(context, slide, "{0} + {1}", shaped)
    return True


_SETTINGS = (("stride", 1), ("padding", 0), ("dilation", 1))


def _axes(
    context: Context, x: str, settings: Sequence[tuple[int, ...]], *, inside: bool
) -> tuple[SlideAxis, ...] | None:
    """Kernel, stride, padding and dilation by dimension; None where they are not plain numbers, or too large."""
    rank = len(settings[0])
    if any(len(values) != rank for values in settings) or _differs(context):
        return None
    sizes = context.dims(x)[-rank:]
    axes = tuple(
        SlideAxis(size, kernel, stride, padding, dilation, inside and padding == 0)
        for size, kernel, stride, padding, dilation in zip(sizes, *settings, strict=True)
    )
    volume = 1
    for axis in axes:
        volume *= axis.kernel
    return axes if volume <= MAX_WINDOW else None


def _differs(context: Context) -> bool:
    """True where the problem's twin slides otherwise, as where a kernel's size follows the input's."""
    twin = Arguments(context.shapes.twin_node(context.node))
    return any(
        context.arguments.integers(name) != twin.integers(name)
        for name in ("kernel_size", "stride", "padding", "dilation")
    )


def _slide(context: Context, slide: Slide, text: str = "{0}", *more: str) -> None:
    """Append the window and what is done with its result."""
    draft = context.draft
    name = draft.slide(slide)
    draft.map(context.output, context.dtype, text, name, *more)


LOWERINGS.update(
    {
        **dict.fromkeys(
            [f"max_pool{n}d_with_indices" for n in "23"]
            + [f"{kind}_pool{n}d" for kind in ("avg", "max") for n in "123"],
            _pool,
        ),
        "convolution": _convolution,
    }
)
