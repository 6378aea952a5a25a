"""The column family: reductions along a dimension that is not innermost in memory, such as softmax over channels.

Neighbouring threads own neighbouring rows, so that every load is coalesced although a row's own elements lie far
apart. BY threads may share a row; then shared memory joins their partial results.
"""

from __future__ import annotations

import re

from memory.records import KernelStep, Tunable
from tools.recipes import windows
from tools.recipes.body import Body, c_name, indent, to_memory
from tools.recipes.geometry import ZERO
from tools.recipes.kernels import KernelSet, RegionPlan, Variant, choose, preamble
from tools.recipes.micro import C_TYPES, STATE_WORDS, Map, state_type
from tools.recipes.passes import Sweep
from tools.recipes.rows import describe

REGISTER_ITEMS = 32
"""Elements of a row that one thread may keep for each of its lanes."""
_FULL_CHIP = 132 * 1024
"""Threads that keep a large GPU busy; fewer rows than this are shared between threads."""


def emit(plan: RegionPlan) -> KernelSet:
    """One kernel for the whole region."""
    writer = _Writer(plan, plan.body())
    p = plan.prefix
    plan.geometry.macro("V", plan.geometry.vector_expression(f"{p}_VEC"))
    plan.geometry.macro("ITEMS", f"max(1, ceil_div({p}_COLS, {p}_BY))")
    made = KernelSet(tunables=writer.tunables())
    made.source = writer.source()
    grid = f"max(1, ceil_div({p}_ROWS, {p}_BX*{p}_V))"
    made.steps = [
        KernelStep(
            entry=writer.entry,
            grid=(grid, "1", "1"),
            block=(f"{p}_BX", f"{p}_BY", "1"),
            args=tuple(writer.tensors),
        )
    ]
    return made


class _Writer:
    def __init__(self, plan: RegionPlan, body: Body) -> None:
        self.plan = plan
        self.body = body
        self.geometry = plan.geometry
        self.prefix = plan.prefix
        self.entry = f"{plan.prefix.lower()}_columns"
        self.tensors: list[str] = []

    def tunables(self) -> list[Tunable]:
        rows, p = max(self.plan.rows, 1), self.prefix
        width = max(1, 16 // self.plan.widest_bytes)
        states = any(op.combine in STATE_WORDS for s in self.body.schedule.sweeps for op in s.reductions)
        keeps = self.plan.variant is Variant.COLUMNS and bool(self.body.schedule.keeps)
        vec = 1 if keeps else min(width, 4)
        threads = max(1, rows // vec)
        share = max(1, min(_FULL_CHIP // threads, self.plan.cols // 4, 32))
        if keeps:
            share = max(share, -(-self.plan.cols // REGISTER_ITEMS))
        by = min(32, 1 << (share - 1).bit_length())
        # Every pair of choices fits a block of 1,024 threads.
        shapes = {1: ((32, 64, 128, 256), (1, 2, 4)), 32: ((32,), (1, 2, 4, 8, 16, 32))}
        widths, heights = shapes.get(by, ((32, 64), (1, 2, 4, 8, 16)))
        if keeps:
            # Every kept element is unrolled: beyond what registers hold it would spill, and compile for ten seconds.
            heights = tuple(h for h in heights if h * REGISTER_ITEMS >= self.plan.cols) or (by,)
        return [
            choose(f"{p}_BX", 128 if by == 1 else 32, widths),
            choose(f"{p}_BY", by, heights),
            choose(f"{p}_VEC", vec, (1, 2) if states or keeps else (1, 2, 4)),
        ]

    def source(self) -> list[str]:
        p = self.prefix
        sweeps = self.body.schedule.sweeps
        params, self.tensors = self.body.parameters(sweeps)
        keeping = "keeps them in registers" if self.body.schedule.keeps else "reads them again in every sweep"
        lines = [
            f"// {p}: {self.plan.title} along {p}_COLS elements that are not neighbours in memory.",
            f"// A thread owns {p}_V neighbouring rows, so that a warp reads whole cache lines; {p}_BY threads share",
            f"// a row's elements. A thread {keeping}.",
            *preamble(self.plan),
            f'extern "C" __global__ void __launch_bounds__({p}_BX * {p}_BY)',
            f"{self.entry}({', '.join(params)}) {{",
        ]
        inside = self.opening()
        for number, sweep in enumerate(sweeps):
            inside += self.sweep(number, sweep)
        return [*lines, *indent(inside, 1), "}"]

    def opening(self) -> list[str]:
        p, geometry = self.prefix, self.geometry
        lines = [
            f"const {p}_index row = (({p}_index)blockIdx.x * {p}_BX + threadIdx.x) * {p}_V;",
            f"const bool live = row < {p}_ROWS;  // the others only take part in barriers",
        ]
        kinds = dict.fromkeys(state_type(op) for s in self.body.schedule.sweeps for op in s.reductions)
        for kind in kinds:
            lines.append(f"__shared__ {kind} {_scratch(kind)}[{p}_BY > 1 ? {p}_BX * {p}_BY * {p}_V : 1];")
        accesses = [*geometry.loads.values(), *geometry.stores.values()]
        lines += geometry.coordinates(geometry.rows, "row", geometry.used_coordinates(accesses))
        lines += self.row_loads()
        lines += self.row_maps(self.body.schedule.first_maps)
        return [
            *lines,
            *(f"{self.body.register(n)} {n}_kept[{p}_ITEMS][{p}_V];" for n in self.body.schedule.keeps),
        ]

    def row_loads(self) -> list[str]:
        declared: list[str] = []
        inside: list[str] = []
        for name in self.body.schedule.row_loads:
            access = self.geometry.loads[name]
            kind = C_TYPES[access.dtype]
            text = windows.element(self.geometry, access, self.geometry.rows, lane=True)
            declared.append(f"{kind} {c_name(name)}[{self.body.v}];")
            inside.append(f"    {c_name(name)}[v] = live ? {text} : ({kind})0;")
        return [*declared, *self.body.lanes(inside)] if declared else []

    def row_maps(self, maps: list[Map]) -> list[str]:
        if not maps:
            return []
        declared = [f"{C_TYPES[op.dtype]} {c_name(op.name)}[{self.body.v}];" for op in maps]
        inside = [f"    {c_name(op.name)}[v] = {self.body.expression(op)};" for op in maps]
        return [*declared, *self.body.lanes(inside)]

    def sweep(self, number: int, sweep: Sweep) -> list[str]:
        p, body = self.prefix, self.body
        lines = [f"// Sweep {number + 1}: {describe(sweep)}."] if sweep.has_elements else []
        lines += body.part_declarations(sweep.reductions)
        if sweep.has_elements:
            accesses = [self.geometry.loads[n] for n in sweep.loads]
            accesses += [self.geometry.stores[n] for n in sweep.stores]
            used = self.geometry.used_coordinates(accesses)
            inner = self.geometry.coordinates(self.geometry.cols, "col", used)
            inner += body.element_lines(sweep, [*self.geometry.rows, *self.geometry.cols], "[k][v]")
            lines += [
                f"#pragma unroll{'' if body.schedule.keeps else ' 4'}",
                f"for (int k = 0; k < {p}_ITEMS; ++k) {{",
                f"    const {p}_index col = ({p}_index)k * {p}_BY + threadIdx.y;",
                f"    if (live && col < {p}_COLS) {{",
                *indent(inner, 2),
                "    }",
                "}",
            ]
        for op in sweep.reductions:
            kind = state_type(op)
            lines += [
                f"join_columns<{body.join_type(op)}, {p}_BX, {p}_BY, {body.v}>({op.name}_part, {_scratch(kind)});",
                f"const {kind} (&{c_name(op.name)})[{body.v}] = {op.name}_part;",
            ]
        lines += self.row_maps(sweep.row_maps)
        return lines + self.row_stores(sweep)

    def row_stores(self, sweep: Sweep) -> list[str]:
        if not sweep.row_stores:
            return []
        inside: list[str] = []
        for name in sweep.row_stores:
            access = self.geometry.stores[name]
            index = self.geometry.index(access, self.geometry.rows)
            step = self.geometry.lane_stride(access)
            if step != ZERO:
                index += f" + v * {self.geometry.size_macro(step)}" if step.text != "1" else " + v"
            inside.append(f"    {name}_out[{index}] = {to_memory(self.body.ref(name), access.dtype)};")
        return ["if (live && threadIdx.y == 0) {", *indent(self.body.lanes(inside), 1), "}"]


def _scratch(kind: str) -> str:
    return f"scratch_{re.sub('[ <>]+', '_', kind).strip('_').lower()}"
