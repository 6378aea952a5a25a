"""C++ statements of one sweep: loads, the arithmetic of each lane, what is kept, partial results and stores.

Names: `x_in` and `y_out` are pointers, `x_pack` holds V neighbouring elements, `x` is one element (lane `v`), `t_part`
a partial result, `x_kept` an element kept for a later sweep.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memory.records import DType
from tools.recipes import windows
from tools.recipes.geometry import ZERO, Access, Geometry, Loop
from tools.recipes.micro import C_TYPES, STORED_TYPES, Map, Reduce, state_type
from tools.recipes.passes import Schedule, Sweep
from tools.recipes.sizes import ONE

_TAKEN = frozenset(
    "abs acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf erfc exp exp2 expm1 fabs floor fmax fmin "
    "fmod frexp hypot log log10 log1p log2 logb max min pow remainder rint round rsqrt sin sinh sqrt tan tanh trunc "
    "i k v row col lane live item rest first last part split scratch float double int bool char short long unsigned "
    "signed const if else for while do return switch case break continue struct union template typename class static "
    "extern inline true false sizeof auto new delete this register default goto operator private public protected "
    "virtual using namespace throw try catch and or not xor div y0 y1 yn j0 j1 jn gamma norm normal signal select "
    "index lowest highest Sum Product Maximum Minimum Pack Word word t".split()
)


def c_name(value: str) -> str:
    """The C++ variable of a value; functions and words of the language get a mark."""
    return f"{value}_" if value in _TAKEN else value


def to_memory(text: str, dtype: DType) -> str:
    """A register value as it is stored, rounded once."""
    if dtype is DType.F16:
        return f"__float2half_rn({text})"
    return f"__float2bfloat16_rn({text})" if dtype is DType.BF16 else text


@dataclass
class Body:
    """Statements of one region's kernels."""

    geometry: Geometry
    schedule: Schedule
    count: str
    """Text of the number of elements in a row."""

    @property
    def v(self) -> str:
        """Macro of the number of lanes."""
        return f"{self.geometry.prefix}_V"

    @property
    def rows_are_lanes(self) -> bool:
        """True where each lane has a row of its own, so that per-row values are arrays."""
        return self.geometry.by_column

    # --- values -----------------------------------------------------------------------------------------------

    def ref(self, value: str) -> str:
        """Text that reads a value inside the lane loop."""
        name = self.schedule.resolve(value)
        if name not in self.schedule.dtypes:
            return name  # a constant
        lane = "[v]" if self.rows_are_lanes and name in self.schedule.row_values else ""
        return f"{c_name(name)}{lane}"

    def register(self, value: str) -> str:
        """C++ type of a value in registers."""
        return C_TYPES[self.schedule.dtypes[self.schedule.resolve(value)]]

    def expression(self, op: Map) -> str:
        """Right-hand side of a map."""
        return op.text.format(*(self.ref(name) for name in op.operands)).replace("COUNT", self.count)

    # --- loads ------------------------------------------------------------------------------------------------

    def packed(self, access: Access) -> bool:
        """True where the lanes are neighbours in memory."""
        return self.geometry.lane_stride(access) == ONE and access.window is None

    def pack_load(self, name: str, loops: Iterable[Loop]) -> str:
        """Expression that loads V neighbouring elements."""
        access = self.geometry.loads[name]
        kind = STORED_TYPES[access.dtype]
        return f"load_pack<{kind}, {self.v}>({access.tensor}_in + {self.geometry.index(access, loops)})"

    def load_lines(self, names: list[str], loops: list[Loop]) -> tuple[list[str], list[str]]:
        """(before the lane loop, inside it) for element loads at the loops' coordinates."""
        before: list[str] = []
        inside: list[str] = []
        for name in names:
            access = self.geometry.loads[name]
            kind, stored = C_TYPES[access.dtype], STORED_TYPES[access.dtype]
            if self.packed(access):
                before.append(f"const Pack<{stored}, {self.v}> {name}_pack = {self.pack_load(name, loops)};")
                inside.append(self.from_pack(name, f"{name}_pack"))
            elif self.geometry.lane_stride(access) == ZERO:
                text = windows.element(self.geometry, access, loops)
                before.append(f"const {kind} {c_name(name)} = {text};")
            else:
                text = windows.element(self.geometry, access, loops, lane=True)
                inside.append(f"const {kind} {c_name(name)} = {text};")
        return before, inside

    def from_pack(self, name: str, pack: str) -> str:
        """Take one lane out of a pack."""
        access = self.geometry.loads[name]
        return f"const {C_TYPES[access.dtype]} {c_name(name)} = {windows.from_memory(f'{pack}.lane[v]', access.dtype)};"

    # --- arithmetic and stores --------------------------------------------------------------------------------

    def map_lines(self, maps: list[Map]) -> list[str]:
        """One constant per map."""
        return [f"const {C_TYPES[op.dtype]} {c_name(op.name)} = {self.expression(op)};" for op in maps]

    def part_lines(self, reductions: list[Reduce]) -> list[str]:
        """Take this lane's element into each partial result."""
        lines: list[str] = []
        for op in reductions:
            part = f"{op.name}_part[v]"
            value = self.ref(op.operand)
            lines.append(f"{part} = {self.join_type(op)}::take({part}, {value});")
        return lines

    def join_type(self, op: Reduce) -> str:
        """The joining operation, such as `Sum<float>`."""
        return f"{op.combine.value}<{C_TYPES[op.dtype]}>"

    def part_declarations(self, reductions: list[Reduce]) -> list[str]:
        """Partial results, one for each lane, at their identities."""
        if not reductions:
            return []
        kinds = [f"{state_type(op)} {op.name}_part[{self.v}];" for op in reductions]
        fills = [f"    {op.name}_part[v] = {self.join_type(op)}::identity();" for op in reductions]
        return [*kinds, *self.lanes(fills)]

    def lanes(self, inside: list[str]) -> list[str]:
        """A loop over the lanes around already indented lines."""
        return ["#pragma unroll", f"for (int v = 0; v < {self.v}; ++v) {{", *inside, "}"]

    def store_lines(self, names: list[str], loops: list[Loop]) -> tuple[list[str], list[str], list[str]]:
        """(before, inside, after the lane loop) for element stores."""
        before: list[str] = []
        inside: list[str] = []
        after: list[str] = []
        for name in names:
            access = self.geometry.stores[name]
            stored = STORED_TYPES[access.dtype]
            index = self.geometry.index(access, loops)
            value = to_memory(self.ref(name), access.dtype)
            if self.packed(access):
                before.append(f"Pack<{stored}, {self.v}> {name}_result;")
                inside.append(f"{name}_result.lane[v] = {value};")
                after.append(f"store_pack<{stored}, {self.v}>({name}_out + {index}, {name}_result);")
            else:
                step = self.geometry.size_macro(self.geometry.lane_stride(access))
                inside.append(f"{name}_out[{index} + v * {step}] = {value};")
        return before, inside, after

    def element_lines(
        self, sweep: Sweep, loops: list[Loop], slot: str, packs: Iterable[str] = ()
    ) -> list[str]:
        """Everything a sweep does at one position. `slot` indexes kept values; `packs` are loaded already."""
        loaded = set(packs)
        before, inside = self.load_lines([n for n in sweep.loads if n not in loaded], loops)
        inside = [self.from_pack(n, f"{n}_pack[item]") for n in sweep.loads if n in loaded] + inside
        inside += [f"const {self.register(n)} {c_name(n)} = {n}_kept{slot};" for n in sorted(sweep.kept)]
        inside += self.map_lines(sweep.maps)
        made = {*sweep.loads, *(op.name for op in sweep.maps)}
        inside += [f"{n}_kept{slot} = {c_name(n)};" for n in self.schedule.keeps if n in made]
        inside += self.part_lines(sweep.reductions)
        results, stores, after = self.store_lines(sweep.stores, loops)
        lanes = self.lanes([f"    {line}" for line in (*inside, *stores)])
        return [*before, *results, *lanes, *after]

    # --- signature --------------------------------------------------------------------------------------------

    def parameters(self, sweeps: list[Sweep], *, rows: bool = True) -> tuple[list[str], list[str]]:
        """(C++ parameters, tensor names) of a kernel that runs `sweeps`; `rows` adds what is read once per row."""
        names = [n for s in sweeps for n in s.loads] + (self.schedule.row_loads if rows else [])
        kinds = {t: dtype for n in names for t, dtype in windows.tensors(self.geometry.loads[n]).items()}
        writes = [n for s in sweeps for n in (*s.stores, *s.row_stores)]
        texts = [f"const {STORED_TYPES[kinds[t]]}* __restrict__ {t}_in" for t in kinds]
        texts += [f"{STORED_TYPES[self.geometry.stores[n].dtype]}* __restrict__ {n}_out" for n in writes]
        return texts, [*kinds, *(self.geometry.stores[n].tensor for n in writes)]


def indent(lines: Iterable[str], depth: int) -> list[str]:
    """Indent by four spaces a level; preprocessor lines stay at the margin."""
    return [line if line.startswith("#") else f"{'    ' * depth}{line}" for line in lines]
