"""Symbolic result shapes of matrix products, convolutions, pools and other operations that stay library calls."""

from __future__ import annotations

from memory.records import Node
from tools.recipes.arguments import Arguments, base_name, normal_dims
from tools.recipes.regrouping import Dims
from tools.recipes.shapes import RULES, Shapes, follows_input, match
from tools.recipes.sizes import Size, number, product


def _matrix_product(shapes: Shapes, node: Node, shape: tuple[int, ...], position: int) -> Dims | None:
    names = shapes.operands(node)
    left, right = (shapes.of(name) for name in (names[-2:] if base_name(node.op) != "linear" else names[:2]))
    if base_name(node.op) == "linear":
        return (*left[:-1], *right[:-1])
    if len(left) < 2 or len(right) < 2:
        return None
    shapes.table.equate(left[-1], right[-2])
    batch = match(shapes, node, shape[:-2], position) if len(shape) > 2 else ()
    return (*batch, left[-2], right[-1])


def _window(shapes: Shapes, node: Node, size: Size, wanted: int, terms: tuple[int, int, int]) -> Size:
    """`(size + pad - reach - 1) // stride + 1`, with `size` itself where the padding makes up for the window."""
    pad, reach, stride = terms
    if stride == 1 and pad == reach:
        return size
    change = pad - reach - (1 if stride > 1 else 0)
    body = f"{size.text}{f'+{change}' if change > 0 else f'-{-change}' if change else ''}"
    expression = body if stride == 1 else f"({body})//{stride}+1"
    if stride > 1 and (size.value + change) // stride + 1 != wanted:  # a pool that rounds up
        expression = f"ceil_div({body}, {stride})+1"
        if -(-(size.value + change) // stride) + 1 != wanted:
            return number(wanted)
    return shapes.table.derived(f"{node.name}_size", expression, wanted)


def _convolution(shapes: Shapes, node: Node, shape: tuple[int, ...], _position: int) -> Dims | None:
    arguments = Arguments(node)
    source, weight = (shapes.of(name) for name in shapes.operands(node)[:2])
    rank = len(weight) - 2
    if len(shape) != rank + 2:
        return None
    transposed = arguments.flag("transposed") or "transpose" in base_name(node.op)
    stride, dilation = arguments.spread("stride", rank, 1), arguments.spread("dilation", rank, 1)
    padding = arguments.spread("padding", rank, 0)
    extra = arguments.spread("output_padding", rank, 0)
    sizes: list[Size] = []
    for axis in range(rank):
        size, wanted = source[axis + 2], shape[axis + 2]
        reach = dilation[axis] * (weight[axis + 2].value - 1)
        if transposed:
            grow = reach + extra[axis] - 2 * padding[axis] + 1
            sign = f"+{grow}" if grow >= 0 else f"-{-grow}"
            same = stride[axis] == 1 and grow == 1
            expression = f"({size.text}-1)*{stride[axis]}{sign}"
            sizes.append(size if same else shapes.table.derived(f"{node.name}_size", expression, wanted))
        elif not arguments.integers("padding") and arguments.get("padding") is not None:
            sizes.append(size if size.value == wanted else number(wanted))  # "same" and "valid"
        else:
            sizes.append(_window(shapes, node, size, wanted, (2 * padding[axis], reach, stride[axis])))
    channels = weight[0] if not transposed else weight[1] * number(arguments.integer("groups", 1))
    return (source[0], channels, *sizes)


def _pool(shapes: Shapes, node: Node, shape: tuple[int, ...], _position: int) -> Dims:
    arguments = Arguments(node)
    rank = int(base_name(node.op).split("pool")[1][0])
    source = shapes.of(shapes.operands(node)[0])
    kernel = arguments.spread("kernel_size", rank, 1)
    stride = arguments.spread("stride", rank, 0) if arguments.integers("stride") else kernel
    padding, dilation = arguments.spread("padding", rank, 0), arguments.spread("dilation", rank, 1)
    lead = len(source) - rank
    pooled = [
        _window(
            shapes,
            node,
            source[lead + axis],
            shape[lead + axis],
            (2 * padding[axis], dilation[axis] * (kernel[axis] - 1), stride[axis]),
        )
        for axis in range(rank)
    ]
    return (*source[:lead], *pooled)


def _cat(shapes: Shapes, node: Node, shape: tuple[int, ...], position: int) -> Dims:
    names = shapes.operands(node)
    (axis,) = normal_dims((Arguments(node).integer("dim"),), len(shape))
    parts = [shapes.of(name)[axis] for name in names if len(shapes.of(name)) == len(shape)]
    dims = list(match(shapes, node, shape, position))
    if all(not part.atoms for part in parts):
        dims[axis] = number(shape[axis])
    elif len(set(parts)) == 1:
        dims[axis] = parts[0] * number(len(parts))
    else:
        expression = "+".join(part.text for part in parts)
        if len(expression) < 400:
            dims[axis] = shapes.table.derived(f"{node.name}_{axis}", expression, shape[axis])
    return tuple(dims)


def _stack(shapes: Shapes, node: Node, shape: tuple[int, ...], _position: int) -> Dims:
    names = shapes.operands(node)
    (axis,) = normal_dims((Arguments(node).integer("dim"),), len(shape))
    dims = list(shapes.of(names[0]))
    dims.insert(axis, number(len(names)))
    return tuple(dims)


def _embedding(shapes: Shapes, node: Node, _shape: tuple[int, ...], _position: int) -> Dims:
    weight, index = (shapes.of(name) for name in shapes.operands(node)[:2])
    return (*index, *weight[1:])


def _pad(shapes: Shapes, node: Node, shape: tuple[int, ...], _position: int) -> Dims:
    source = list(shapes.of(shapes.operands(node)[0]))
    for axis, (size, wanted) in enumerate(zip(source, shape, strict=True)):
        grow = wanted - size.value
        if grow:
            expression = f"{size.text}+{grow}" if grow > 0 else f"{size.text}-{-grow}"
            source[axis] = shapes.table.derived(f"{node.name}_{axis}", expression, wanted)
    return tuple(source)


def _repeat(shapes: Shapes, node: Node, shape: tuple[int, ...], _position: int) -> Dims:
    source = shapes.of(shapes.operands(node)[0])
    padded = (number(1),) * (len(shape) - len(source)) + source
    times = Arguments(node).integers("repeats")
    others = Arguments(shapes.twin_node(node)).integers("repeats")
    return tuple(
        size
        * (
            shapes.literal(node, count, other)
            if shapes.twin
            else follows_input(shapes, count) or number(count)
        )
        for size, count, other in zip(padded, times, others, strict=True)
    )


def _batch_norm(shapes: Shapes, node: Node, _shape: tuple[int, ...], position: int) -> Dims:
    source = shapes.of(shapes.operands(node)[0])
    return source if position == 0 else source[1:2]


def _group_norm(shapes: Shapes, node: Node, shape: tuple[int, ...], position: int) -> Dims:
    source = shapes.of(shapes.operands(node)[0])
    return source if position == 0 else (source[0], number(shape[1]))


def _attention(shapes: Shapes, node: Node, shape: tuple[int, ...], position: int) -> Dims | None:
    query, _, value = (shapes.of(name) for name in shapes.operands(node)[:3])
    return (*query[:-1], value[-1]) if position == 0 and len(shape) == len(query) else None


def _upsample(shapes: Shapes, node: Node, shape: tuple[int, ...], _position: int) -> Dims:
    source = shapes.of(shapes.operands(node)[0])
    return tuple(
        size * number(wanted // size.value) if size.value and wanted % size.value == 0 else number(wanted)
        for size, wanted in zip(source, shape, strict=True)
    )


def _flat(shapes: Shapes, node: Node, shape: tuple[int, ...], _position: int) -> Dims | None:
    return (product(shapes.of(shapes.operands(node)[0])),) if len(shape) == 1 else None


RULES.update(
    {
        **dict.fromkeys("mm bmm addmm baddbmm matmul linear".split(), _matrix_product),
        **dict.fromkeys(
            "convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d".split(),
            _convolution,
        ),
        **dict.fromkeys(
            [
                f"{kind}_pool{n}d{tail}"
                for kind in ("max", "avg")
                for n in "123"
                for tail in ("", "_with_indices")
            ],
            _pool,
        ),
        **dict.fromkeys(
            "batch_norm native_batch_norm _native_batch_norm_legit_functional _native_batch_norm_legit "
            "_native_batch_norm_legit_no_training".split(),
            _batch_norm,
        ),
        "cat": _cat,
        "stack": _stack,
        "embedding": _embedding,
        "constant_pad_nd": _pad,
        "pad": _pad,
        "repeat": _repeat,
        "native_group_norm": _group_norm,
        "scaled_dot_product_attention": _attention,
        **dict.fromkeys(
            [f"upsample_{mode}2d" for mode in ("nearest", "bilinear", "bicubic")] + ["upsample_nearest1d"],
            _upsample,
        ),
        "ravel": _flat,
    }
)
