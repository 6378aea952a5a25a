"""The row family: reductions along the dimensions that are innermost in memory, with everything built on them.

Three places for a row between its sweeps: registers (a warp or a block per row), shared memory, or nowhere (read it
again). One block or part of a warp per row; `tools.recipes.split` shares a row between blocks.
"""

from __future__ import annotations

from memory.records import KernelStep, Tunable
from tools.recipes import windows
from tools.recipes.body import Body, c_name, indent, to_memory
from tools.recipes.geometry import Geometry
from tools.recipes.kernels import KernelSet, RegionPlan, Variant, choose, preamble
from tools.recipes.micro import C_TYPES, Reduce, state_type
from tools.recipes.passes import Sweep

REGISTER_ITEMS = 32
"""More elements per thread than this spill, or leave too few warps to hide latency."""


def emit(plan: RegionPlan) -> KernelSet:
    """One kernel for the whole region."""
    body = plan.body()
    writer = _Writer(plan, body)
    made = KernelSet(tunables=writer.tunables())
    plan.geometry.macro("V", plan.geometry.vector_expression(f"{plan.prefix}_VEC"))
    if plan.variant is not Variant.WARP_PER_ROW:
        plan.geometry.macro("LANES", f"{plan.prefix}_BLOCK")
    plan.geometry.macro("ITEMS", f"max(1, ceil_div({plan.prefix}_COLS, {plan.prefix}_LANES*{plan.prefix}_V))")
    made.source = writer.source()
    made.steps = [writer.step()]
    return made


class _Writer:
    def __init__(self, plan: RegionPlan, body: Body) -> None:
        self.plan = plan
        self.body = body
        self.geometry: Geometry = plan.geometry
        self.prefix = plan.prefix
        self.entry = f"{plan.prefix.lower()}_rows"
        self.warp = plan.variant is Variant.WARP_PER_ROW
        self.keeps = body.schedule.keeps

    @property
    def slot(self) -> str:
        if self.plan.variant is Variant.SHARED_ROW:
            return f"[(k * {self.prefix}_V + v) * {self.prefix}_LANES + lane]"
        return "[k][v]"

    def tunables(self) -> list[Tunable]:
        width = max(1, 16 // self.plan.widest_bytes)
        lanes = width if self.plan.cols % width == 0 else 1
        work = max(1, self.plan.cols // lanes)
        vec = choose(f"{self.prefix}_VEC", width, (1, 2, 4, 8))
        if self.warp:
            group = choose(f"{self.prefix}_LANES", work, (4, 8, 16, 32))
            return [choose(f"{self.prefix}_BLOCK", 128, (64, 128, 256, 512)), group, vec]
        # About four vectors a thread: enough loads in flight, and still several blocks on a multiprocessor.
        per_thread = 4 if lanes > 1 else 8
        threads = max(64, min(512, work // per_thread))
        if self.plan.variant is Variant.BLOCK_PER_ROW:
            threads = max(threads, -(-self.plan.cols // REGISTER_ITEMS))
        return [choose(f"{self.prefix}_BLOCK", _power(threads), (64, 128, 256, 512, 1024)), vec]

    def source(self) -> list[str]:
        sweeps = self.body.schedule.sweeps
        params, self.tensors = self.body.parameters(sweeps)
        lines = [*self.comment(), *preamble(self.plan)]
        lines += [
            f'extern "C" __global__ void __launch_bounds__({self.prefix}_BLOCK)',
            f"{self.entry}({', '.join(params)}) {{",
        ]
        inside = self.opening()
        for number, sweep in enumerate(sweeps):
            inside += self.sweep(number, sweep)
        return [*lines, *indent(inside, 1), "}"]

    def comment(self) -> list[str]:
        where = _WHERE[self.plan.variant].replace("R_", f"{self.prefix}_")
        return [
            f"// {self.prefix}: {self.plan.title} along rows of {self.prefix}_COLS elements.",
            f"// {where}.",
            "// Reductions need their whole input before anything can use them: each one ends a sweep over the row.",
        ]

    def opening(self) -> list[str]:
        p, geometry = self.prefix, self.geometry
        if self.warp:
            lines = [
                f"const int lane = threadIdx.x % {p}_LANES;",
                f"const {p}_index row = ({p}_index)blockIdx.x * ({p}_BLOCK / {p}_LANES) + threadIdx.x / {p}_LANES;",
            ]
        else:
            lines = ["const int lane = threadIdx.x;", f"const {p}_index row = blockIdx.x;"]
        lines.append(
            f"const bool live = row < {p}_ROWS;  // the others only take part in shuffles and barriers"
        )
        accesses = [*geometry.loads.values(), *geometry.stores.values()]
        lines += geometry.coordinates(geometry.rows, "row", geometry.used_coordinates(accesses))
        lines += row_load_lines(self.body)
        lines += self.body.map_lines(self.body.schedule.first_maps)
        return [*lines, *self.keep_declarations()]

    def keep_declarations(self) -> list[str]:
        p = self.prefix
        if self.plan.variant is not Variant.SHARED_ROW:
            return [f"{self.body.register(n)} {n}_kept[{p}_ITEMS][{p}_V];" for n in self.keeps]
        if not self.keeps:
            return []
        lines = [f"extern __shared__ __align__(16) unsigned char {p.lower()}_shared[];"]
        offset = "0"
        for name in self.keeps:
            kind = self.body.register(name)
            lines.append(f"{kind}* {name}_kept = reinterpret_cast<{kind}*>({p.lower()}_shared + {offset});")
            offset = f"{offset} + sizeof({kind}) * {p}_ITEMS * {p}_V * {p}_LANES"
        return lines

    def sweep(self, number: int, sweep: Sweep) -> list[str]:
        p, body = self.prefix, self.body
        lines = [f"// Sweep {number + 1}: {describe(sweep)}."] if sweep.has_elements else []
        lines += body.part_declarations(sweep.reductions)
        if sweep.has_elements:
            accesses = [self.geometry.loads[n] for n in sweep.loads]
            accesses += [self.geometry.stores[n] for n in sweep.stores]
            inner = self.geometry.coordinates(
                self.geometry.cols, "col", self.geometry.used_coordinates(accesses)
            )
            inner += body.element_lines(sweep, [*self.geometry.rows, *self.geometry.cols], self.slot)
            unroll = "" if self.keeps and self.plan.variant is not Variant.SHARED_ROW else " 4"
            lines += [
                f"#pragma unroll{unroll}",
                f"for (int k = 0; k < {p}_ITEMS; ++k) {{",
                f"    const {p}_index col = (({p}_index)k * {p}_LANES + lane) * {p}_V;",
                f"    if (live && col < {p}_COLS) {{",
                *indent(inner, 2),
                "    }",
                "}",
            ]
        for op in sweep.reductions:
            lines += join_lines(body, op, f"{p}_LANES")
        lines += body.map_lines(sweep.row_maps)
        return lines + row_store_lines(body, sweep, "live && lane == 0")

    def step(self) -> KernelStep:
        p = self.prefix
        rows_per_block = f"({p}_BLOCK//{p}_LANES)" if self.warp else "1"
        shared = "0"
        if self.plan.variant is Variant.SHARED_ROW and self.keeps:
            sizes = [8 if self.body.register(n) in ("double", "long long") else 4 for n in self.keeps]
            shared = f"{sum(sizes)}*{p}_ITEMS*{p}_V*{p}_LANES"
        grid = f"max(1, ceil_div({p}_ROWS, {rows_per_block}))"
        return KernelStep(
            entry=self.entry,
            grid=(grid, "1", "1"),
            block=(f"{p}_BLOCK", "1", "1"),
            shared_bytes=shared,
            args=tuple(self.tensors),
        )


_WHERE = {
    Variant.WARP_PER_ROW: "R_LANES threads of a warp own a row: reductions need shuffles only. It stays in registers",
    Variant.BLOCK_PER_ROW: "One block owns a row and keeps it in registers",
    Variant.SHARED_ROW: "One block owns a row and keeps it in shared memory",
    Variant.MULTI_PASS: "One block owns a row, too long to keep: every sweep reads it again, mostly from L2",
}


def _power(threads: int) -> int:
    """The power of two at or above."""
    return 1 << (threads - 1).bit_length()


def describe(sweep: Sweep) -> str:
    """What a sweep is for, in words."""
    parts = [f"{op.combine.value.lower()} {op.name}" for op in sweep.reductions]
    parts += [f"write {name}" for name in sweep.stores]
    return ", ".join(parts)


def row_load_lines(body: Body) -> list[str]:
    """Values that are read once per row."""
    lines: list[str] = []
    for name in body.schedule.row_loads:
        access = body.geometry.loads[name]
        text = windows.element(body.geometry, access, body.geometry.rows)
        kind = C_TYPES[access.dtype]
        lines.append(f"const {kind} {c_name(name)} = live ? {text} : ({kind})0;")
    return lines


def join_lines(body: Body, op: Reduce, threads: str) -> list[str]:
    """Turn the threads' partial results into the row's result, in every thread."""
    kind, joined = state_type(op), body.join_type(op)
    return [
        f"__shared__ {kind} {op.name}_scratch[32];",
        f"const {kind} {c_name(op.name)} = join_threads<{joined}, {threads}>("
        f"join_lanes<{joined}, {body.v}>({op.name}_part), {op.name}_scratch);",
    ]


def row_store_lines(body: Body, sweep: Sweep, who: str) -> list[str]:
    """Results with one value per row."""
    if not sweep.row_stores:
        return []
    lines: list[str] = []
    for name in sweep.row_stores:
        access = body.geometry.stores[name]
        index = body.geometry.index(access, body.geometry.rows)
        lines.append(f"    {name}_out[{index}] = {to_memory(body.ref(name), access.dtype)};")
    return [f"if ({who}) {{", *lines, "}"]
