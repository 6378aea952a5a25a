"""The pointwise family: any chain of elementwise operations as one sweep over memory."""

from __future__ import annotations

from memory.records import KernelStep, Tunable
from tools.recipes.body import Body, indent
from tools.recipes.kernels import KernelSet, RegionPlan, choose, preamble
from tools.recipes.micro import STORED_TYPES


def emit(plan: RegionPlan) -> KernelSet:
    """One kernel: each thread takes ITEMS vectors of V neighbouring elements."""
    prefix, geometry, body = plan.prefix, plan.geometry, plan.body()
    geometry.macro("V", geometry.vector_expression(f"{prefix}_VEC"))
    params, tensors = body.parameters([body.schedule.sweeps[0]])
    entry, block = f"{prefix.lower()}_pointwise", f"{prefix}_BLOCK"
    made = KernelSet(tunables=_tunables(plan))
    made.source = [
        f"// {prefix}: {plan.title}: one sweep.",
        "// Run one by one, these operations would write every intermediate to memory and read it back; here an",
        f"// element stays in a register from load to store. A thread moves {prefix}_ITEMS vectors of {prefix}_V",
        "// neighbours; all loads are issued before the first result is needed, so that their latencies overlap.",
        *preamble(plan),
        f'extern "C" __global__ void __launch_bounds__({block})',
        f"{entry}({', '.join(params)}) {{",
        *indent(_statements(plan, body), 1),
        "}",
    ]
    grid = f"max(1, ceil_div({prefix}_N, {block}*{prefix}_V*{prefix}_ITEMS))"
    made.steps = [
        KernelStep(entry=entry, grid=(grid, "1", "1"), block=(block, "1", "1"), args=tuple(tensors))
    ]
    return made


def _tunables(plan: RegionPlan) -> list[Tunable]:
    width = max(1, 16 // plan.widest_bytes)
    # 16 bytes per thread and load saturate the memory of a full chip; narrower vectors need more of them in flight.
    lanes = width if max(plan.rows, 1) % width == 0 else 1
    return [
        choose(f"{plan.prefix}_BLOCK", 256, (64, 128, 256, 512, 1024)),
        choose(f"{plan.prefix}_VEC", width, (1, 2, 4, 8)),
        choose(f"{plan.prefix}_ITEMS", max(1, min(4, width // lanes)), (1, 2, 4, 8)),
    ]


def _statements(plan: RegionPlan, body: Body) -> list[str]:
    prefix, geometry = plan.prefix, plan.geometry
    sweep = body.schedule.sweeps[0]
    packs = [name for name in sweep.loads if body.packed(geometry.loads[name])]
    position = (
        f"const {prefix}_index i = "
        f"((({prefix}_index)blockIdx.x * {prefix}_ITEMS + item) * {prefix}_BLOCK + threadIdx.x) * {prefix}_V;"
    )
    accesses = [geometry.loads[n] for n in sweep.loads if n not in packs]
    accesses += [geometry.stores[n] for n in sweep.stores]
    inner = geometry.coordinates(geometry.rows, "i", geometry.used_coordinates(accesses))
    inner += body.element_lines(sweep, geometry.rows, "", packs)
    return [
        *_load_loop(plan, body, packs, position),
        "#pragma unroll",
        f"for (int item = 0; item < {prefix}_ITEMS; ++item) {{",
        f"    {position}",
        f"    if (i < {prefix}_N) {{",
        *indent(inner, 2),
        "    }",
        "}",
    ]


def _load_loop(plan: RegionPlan, body: Body, packs: list[str], position: str) -> list[str]:
    """Declarations of the packs and the loop that fills them."""
    geometry, items = plan.geometry, f"{plan.prefix}_ITEMS"
    if not packs:
        return []
    accesses = [geometry.loads[name] for name in packs]
    declared = [f"Pack<{STORED_TYPES[a.dtype]}, {body.v}> {a.value}_pack[{items}];" for a in accesses]
    inner = geometry.coordinates(geometry.rows, "i", geometry.used_coordinates(accesses))
    inner += [f"{name}_pack[item] = {body.pack_load(name, geometry.rows)};" for name in packs]
    return [
        *declared,
        "#pragma unroll",
        f"for (int item = 0; item < {items}; ++item) {{",
        f"    {position}",
        f"    if (i < {plan.prefix}_N) {{",
        *indent(inner, 2),
        "    }",
        "}",
    ]
