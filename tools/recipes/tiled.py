"""Elementwise regions that read along one dimension and write along another, such as channels-last to channels-first.

Whichever way such a kernel walks, either its loads or its stores are apart by a whole row. Here a block takes a square
of the two dimensions through shared memory: it is read along the one and written along the other.
"""

from __future__ import annotations

from memory.records import KernelStep
from tools.recipes import windows
from tools.recipes.body import Body, c_name, indent
from tools.recipes.geometry import Access, Loop
from tools.recipes.kernels import KernelSet, RegionPlan, choose, preamble
from tools.recipes.micro import C_TYPES, STORED_TYPES
from tools.recipes.sizes import ONE

TILE = 32
"""Elements along each side: a warp's worth, so that every access of a warp is one row of 32 neighbours."""


def crossing(plan: RegionPlan) -> tuple[Loop, Loop] | None:
    """The loops along which loads and stores have their neighbours, where these are two loops; else None."""
    if plan.solved.reduced or any(access.window is not None for access in plan.geometry.loads.values()):
        return None
    written = {id(loop): loop for a in plan.geometry.stores.values() if (loop := _along(plan, a)) is not None}
    if len(written) != 1:
        return None
    (store,) = written.values()
    reads = (_along(plan, a) for a in plan.geometry.loads.values() if plan.geometry.stride(a, store) != ONE)
    load = next((loop for loop in reads if loop is not None and loop is not store), None)
    return (load, store) if load is not None and store.size.value > 1 and load.size.value > 1 else None


def _along(plan: RegionPlan, access: Access) -> Loop | None:
    """The loop along which an access that moves along two loops or more has its neighbours."""
    moving = [loop for loop in plan.geometry.rows if plan.geometry.stride(access, loop).value]
    beside = (loop for loop in moving if plan.geometry.stride(access, loop) == ONE)
    return next(beside, None) if len(moving) > 1 else None


def emit(plan: RegionPlan) -> KernelSet:
    """One kernel; each block takes one tile of TILE x TILE elements."""
    loops = crossing(plan)
    assert loops is not None, "only regions whose loads and stores cross are written as tiles"
    return _Writer(plan, *loops).kernels()


class _Writer:
    def __init__(self, plan: RegionPlan, load: Loop, store: Loop) -> None:
        self.plan = plan
        self.load, self.store = load, store
        self.body: Body = plan.body()
        self.geometry = plan.geometry
        self.prefix = plan.prefix
        self.sweep = self.body.schedule.sweeps[0]
        self.tiled = [n for n in self.sweep.loads if _along(plan, self.geometry.loads[n]) is load]
        self.rest = [loop for loop in self.geometry.rows if loop is not load and loop is not store]

    def kernels(self) -> KernelSet:
        p, geometry = self.prefix, self.geometry
        geometry.macro("V", "1")
        across = geometry.macro("ACROSS", f"max(1, ceil_div({self.load.macro}, {TILE}))")
        down = geometry.macro("DOWN", f"max(1, ceil_div({self.store.macro}, {TILE}))")
        tiles = geometry.macro("TILES", "*".join((across, down, *(loop.macro for loop in self.rest))))
        params, tensors = self.body.parameters([self.sweep])
        entry, height = f"{p.lower()}_tiled", f"{p}_BY"
        made = KernelSet(tunables=[choose(height, 8, (4, 8, 16, 32))])
        made.source = [
            f"// {p}: {self.plan.title}: read along one dimension, written along another.",
            f"// A block reads a tile of {TILE} x {TILE} elements row by row into shared memory and writes it column",
            "// by column, so that loads and stores both move whole cache lines. Rows of the tile are one element",
            f"// longer than it is wide: the {TILE} elements of a column then lie in {TILE} banks.",
            *preamble(self.plan),
            f'extern "C" __global__ void __launch_bounds__({TILE} * {height})',
            f"{entry}({', '.join(params)}) {{",
            *indent(self.statements(across, down, tiles), 1),
            "}",
        ]
        made.steps = [
            KernelStep(
                entry=entry,
                grid=(f"max(1, {tiles})", "1", "1"),
                block=(str(TILE), height, "1"),
                args=tuple(tensors),
            )
        ]
        return made

    def statements(self, across: str, down: str, tiles: str) -> list[str]:
        p, geometry = self.prefix, self.geometry
        lines = [
            f"__shared__ {STORED_TYPES[geometry.loads[name].dtype]} {name}_tile[{TILE}][{TILE + 1}];"
            for name in self.tiled
        ]
        lines += [
            f"{p}_index tile = blockIdx.x;",
            f"if (tile >= {tiles}) return;  // a dimension is empty",
            f"const {p}_index first_load = (tile % {across}) * {TILE};",
            f"tile /= {across};",
            f"const {p}_index first_store = (tile % {down}) * {TILE};",
            f"tile /= {down};",
        ]
        for position in range(len(self.rest) - 1, -1, -1):
            loop = self.rest[position]
            lines.append(
                f"const {p}_index {loop.coordinate} = {f'tile % {loop.macro}' if position else 'tile'};"
            )
            lines += [f"tile /= {loop.macro};"] if position else []
        guard = f"if ({self.load.coordinate} < {self.load.macro} && {self.store.coordinate} < {self.store.macro}) {{"
        turn = f"for (int turn = threadIdx.y; turn < {TILE}; turn += {p}_BY) {{"
        return [
            *lines,
            turn,
            *self.position("threadIdx.x", "turn"),
            f"    {guard}",
            *indent(self.fills(), 2),
            "    }",
            "}",
            "__syncthreads();",
            turn,
            *self.position("turn", "threadIdx.x"),
            f"    {guard}",
            *indent(self.element(), 2),
            "    }",
            "}",
        ]

    def position(self, along_load: str, along_store: str) -> list[str]:
        p = self.prefix
        return [
            f"    const {p}_index {self.load.coordinate} = first_load + {along_load};",
            f"    const {p}_index {self.store.coordinate} = first_store + {along_store};",
        ]

    def fills(self) -> list[str]:
        accesses = ((name, self.geometry.loads[name]) for name in self.tiled)
        return [
            f"{name}_tile[turn][threadIdx.x] = {a.tensor}_in[{self.geometry.index(a, self.geometry.rows)}];"
            for name, a in accesses
        ]

    def element(self) -> list[str]:
        loops = self.geometry.rows
        inside = []
        for name in self.tiled:
            dtype = self.geometry.loads[name].dtype
            value = windows.from_memory(f"{name}_tile[threadIdx.x][turn]", dtype)
            inside.append(f"const {C_TYPES[dtype]} {c_name(name)} = {value};")
        before, direct = self.body.load_lines([n for n in self.sweep.loads if n not in self.tiled], loops)
        results, stores, after = self.body.store_lines(self.sweep.stores, loops)
        lanes = [*inside, *direct, *self.body.map_lines(self.sweep.maps), *stores]
        return [*before, *results, *self.body.lanes([f"    {line}" for line in lanes]), *after]
