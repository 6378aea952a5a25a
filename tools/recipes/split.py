"""Long rows, few of them: several blocks share a row, and each sweep is a kernel of its own.

A kernel boundary is the only barrier between blocks that needs no cooperation. Every kernel first joins the partial
results that the one before left in memory (a few hundred numbers), then sweeps its part of the row.
"""

from __future__ import annotations

from memory.records import Buffer, DType, KernelStep
from tools.recipes.body import Body, c_name, indent
from tools.recipes.kernels import KernelSet, RegionPlan, choose, preamble
from tools.recipes.micro import C_TYPES, STATE_WORDS, Reduce, state_type
from tools.recipes.passes import Sweep
from tools.recipes.rows import describe, row_load_lines, row_store_lines

_FULL_CHIP_BLOCKS = 132 * 8
_DTYPES = {
    "float": DType.F32,
    "double": DType.F64,
    "long long": DType.I64,
    "int": DType.I32,
    "short": DType.I16,
}
_DTYPES |= {"signed char": DType.I8, "unsigned char": DType.U8}


def emit(plan: RegionPlan) -> KernelSet:
    """One kernel for each sweep of the region, and a last one where only per-row work is left."""
    p, geometry, body = plan.prefix, plan.geometry, plan.body()
    width = max(1, 16 // plan.widest_bytes)
    splits = max(1, min(_FULL_CHIP_BLOCKS // max(plan.rows, 1), plan.cols // 4096))
    made = KernelSet()
    made.tunables = [
        choose(f"{p}_BLOCK", 256, (128, 256, 512, 1024)),
        choose(f"{p}_VEC", width, (1, 2, 4, 8)),
        choose(f"{p}_SPLITS", splits, (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)),
    ]
    geometry.macro("V", geometry.vector_expression(f"{p}_VEC"))
    geometry.macro("CHUNK", f"max(1, ceil_div({p}_COLS, {p}_SPLITS*{p}_V))*{p}_V")
    made.source = [
        f"// {p}: {plan.title} along few but long rows of {p}_COLS elements.",
        f"// {p}_SPLITS blocks share a row, or most of the chip would idle. Blocks cannot wait for each other, so",
        "// every reduction ends a kernel, and the next kernel joins its partial results first.",
        *preamble(plan),
    ]
    sweeps = body.schedule.sweeps
    for number, sweep in enumerate(sweeps):
        _kernel(plan, body, number, made)
        for op in sweep.reductions:
            kind = C_TYPES[op.dtype]
            words = str(STATE_WORDS.get(op.combine, 1))
            shape = (f"max(1, {p}_ROWS)", f"{p}_SPLITS", words)
            made.buffers.append(Buffer(name=_partial(p, op), shape=shape, dtype=_DTYPES[kind]))
    return made


def _partial(prefix: str, op: Reduce) -> str:
    return f"{prefix.lower()}_{op.name}_partial"


def _read(prefix: str, op: Reduce, index: str) -> str:
    words = STATE_WORDS.get(op.combine)
    source = f"{_partial(prefix, op)}_in"
    return f"read_state<{state_type(op)}>({source} + ({index}) * {words})" if words else f"{source}[{index}]"


def _write(prefix: str, op: Reduce, index: str, value: str) -> str:
    words = STATE_WORDS.get(op.combine)
    target = f"{_partial(prefix, op)}_out"
    return (
        f"write_state({target} + ({index}) * {words}, {value})" if words else f"{target}[{index}] = {value}"
    )


def _kernel(plan: RegionPlan, body: Body, number: int, made: KernelSet) -> None:
    p, sweeps = plan.prefix, body.schedule.sweeps
    sweep = sweeps[number]
    before = [op for earlier in sweeps[:number] for op in earlier.reductions]
    row_stores = sweeps[number - 1].row_stores if number else []
    if number == 0 and not sweep.has_elements:
        return
    if number and not (sweep.has_elements or row_stores):
        return
    view = Sweep(loads=sweep.loads, stores=sweep.stores, row_stores=row_stores)
    params, tensors = body.parameters([view])
    partials = [(op, _partial(p, op)) for op in before]
    params += [f"const {C_TYPES[op.dtype]}* __restrict__ {name}_in" for op, name in partials]
    params += [f"{C_TYPES[op.dtype]}* __restrict__ {_partial(p, op)}_out" for op in sweep.reductions]
    tensors += [name for _, name in partials] + [_partial(p, op) for op in sweep.reductions]
    entry = f"{p.lower()}_sweep{number + 1}"
    shared = sweep.has_elements
    inside = _opening(plan, body, shared=shared)
    inside += _joined(p, body, sweeps[:number])
    inside += row_store_lines(body, Sweep(row_stores=row_stores), "live && part == 0 && threadIdx.x == 0")
    inside += _elements(plan, body, sweep) if shared else []
    made.source += [
        f"// Kernel {number + 1}: {describe(sweep) or 'results with one value per row'}.",
        f'extern "C" __global__ void __launch_bounds__({p}_BLOCK)',
        f"{entry}({', '.join(params)}) {{",
        *indent(inside, 1),
        "}",
    ]
    grid = f"max(1, {p}_ROWS*{p}_SPLITS)" if shared else f"max(1, {p}_ROWS)"
    made.steps.append(
        KernelStep(entry=entry, grid=(grid, "1", "1"), block=(f"{p}_BLOCK", "1", "1"), args=tuple(tensors))
    )


def _opening(plan: RegionPlan, body: Body, *, shared: bool) -> list[str]:
    p, geometry = plan.prefix, plan.geometry
    lines = [
        f"const {p}_index row = blockIdx.x{f' / {p}_SPLITS' if shared else ''};",
        f"const int part = {f'blockIdx.x % {p}_SPLITS' if shared else '0'};",
        f"const bool live = row < {p}_ROWS;",
    ]
    accesses = [*geometry.loads.values(), *geometry.stores.values()]
    lines += geometry.coordinates(geometry.rows, "row", geometry.used_coordinates(accesses))
    return [*lines, *row_load_lines(body), *body.map_lines(body.schedule.first_maps)]


def _joined(p: str, body: Body, sweeps: list[Sweep]) -> list[str]:
    """The row's results of earlier sweeps, from the partial results in memory."""
    lines: list[str] = []
    for sweep in sweeps:
        for op in sweep.reductions:
            kind, joined = state_type(op), body.join_type(op)
            lines += [
                f"{kind} {op.name}_mine = {joined}::identity();",
                f"for (int s = threadIdx.x; live && s < {p}_SPLITS; s += {p}_BLOCK)",
                f"    {op.name}_mine = {joined}::join({op.name}_mine, {_read(p, op, f'row * {p}_SPLITS + s')});",
                f"__shared__ {kind} {op.name}_row_scratch[32];",
                f"const {kind} {c_name(op.name)} = "
                f"join_threads<{joined}, {p}_BLOCK>({op.name}_mine, {op.name}_row_scratch);",
            ]
        lines += body.map_lines(sweep.row_maps)
    return lines


def _elements(plan: RegionPlan, body: Body, sweep: Sweep) -> list[str]:
    """Sweep over this block's part of the row, and its partial results."""
    p, geometry = plan.prefix, plan.geometry
    accesses = [geometry.loads[n] for n in sweep.loads] + [geometry.stores[n] for n in sweep.stores]
    inner = geometry.coordinates(geometry.cols, "col", geometry.used_coordinates(accesses))
    inner += body.element_lines(sweep, [*geometry.rows, *geometry.cols], "")
    lines = [
        *body.part_declarations(sweep.reductions),
        f"const {p}_index begin = ({p}_index)part * {p}_CHUNK;",
        f"const {p}_index end = begin + {p}_CHUNK < {p}_COLS ? begin + {p}_CHUNK : {p}_COLS;",
        "#pragma unroll 4",
        f"for ({p}_index col = begin + ({p}_index)threadIdx.x * {p}_V; live && col < end; "
        f"col += {p}_BLOCK * {p}_V) {{",
        *indent(inner, 1),
        "}",
    ]
    for op in sweep.reductions:
        kind, joined = state_type(op), body.join_type(op)
        lines += [
            f"__shared__ {kind} {op.name}_scratch[32];",
            f"const {kind} {op.name}_block = join_threads<{joined}, {p}_BLOCK>("
            f"join_lanes<{joined}, {body.v}>({op.name}_part), {op.name}_scratch);",
            f"if (live && threadIdx.x == 0) {_write(p, op, f'row * {p}_SPLITS + part', f'{op.name}_block')};",
        ]
    return lines
