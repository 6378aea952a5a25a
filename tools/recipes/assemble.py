"""From a cut graph to a Program: kernels for its regions, library calls for the rest, and the buffers between.

Invariants: a kernel gets contiguous tensors only (or inputs with their own strides); a result of the graph has the
strides that PyTorch gives it; what depends on state alone is computed once, in `prepare`.
"""

from __future__ import annotations

from collections.abc import Mapping

from memory.records import Buffer, DType, Graph, LibraryStep, Node, Program, SpecialArgument, Step, Tunable
from tools.recipes import columns, pointwise, rows, split, tiled
from tools.recipes.axes import Solved
from tools.recipes.channels_last import FORMATS, NOWHERE, ChannelsLast, last_order
from tools.recipes.fusion import Fusion, Region, Unit, is_view
from tools.recipes.geometry import Access, build_geometry, load_access, store_access, window_access
from tools.recipes.kernels import KernelSet, RegionPlan, Variant
from tools.recipes.library_steps import library_step
from tools.recipes.micro import Map, Slide
from tools.recipes.places import Place, dense, given_place, is_dense_permuted, stride_order, view_place
from tools.recipes.prelude import prelude
from tools.recipes.regrouping import Dims
from tools.recipes.shapes import Shapes
from tools.recipes.sharing import SharedKernels
from tools.recipes.variants import options, permitted
from tools.work import call_flops, node_call

MAX_KERNEL_CHARS = 200_000
"""Below what a Program's source may have, with room for one more region and the helpers."""
_EMITTERS = {
    Variant.VECTOR: pointwise.emit,
    Variant.TILED: tiled.emit,
    Variant.SPLIT_ROW: split.emit,
    Variant.COLUMNS: columns.emit,
    Variant.COLUMNS_MULTI_PASS: columns.emit,
}


class Assembler:
    """Writes the Program of one graph."""

    def __init__(
        self,
        graph: Graph,
        shapes: Shapes,
        fusion: Fusion,
        *,
        hoist: bool = True,
        last: ChannelsLast = NOWHERE,
    ) -> None:
        """`hoist` False leaves what depends on state alone where eager has it: in every call."""
        self.last = last
        self.graph = graph
        self.shapes = shapes
        self.fusion = fusion
        self.maker = fusion.maker
        self.given = {*graph.inputs, *(entry.value for entry in graph.state)}
        self.constant = {entry.value for entry in graph.state} - set(graph.updates)
        self.places: dict[str, Place] = {n: given_place(graph, shapes, n) for n in sorted(self.given)}
        self.tensors: dict[str, str] = {name: name for name in self.given}
        self.buffers: list[Buffer] = []
        self.hoist = hoist
        self.steps: dict[bool, list[Step]] = {True: [], False: []}
        self.saved_flops = 0
        """What hoisting spares every call."""
        self.kernels: list[KernelSet] = []
        self.dims: dict[str, str] = {}
        self.dtypes: set[DType] = set()
        self.families: set[bool] = set()
        self.plans: dict[str, RegionPlan] = {}
        self.shared = SharedKernels({entry.value: graph.values[entry.value] for entry in graph.state})

    def program(self, units: list[Unit], variants: Mapping[str, Variant]) -> Program:
        """The whole Program; a region without an entry in `variants` takes its first option."""
        for unit in units:
            if isinstance(unit, Region) and self._room():
                if unit.stores:
                    self._region(unit, variants)
                continue
            for index in unit.nodes if isinstance(unit, Region) else (unit,):
                if self._is_needed(self.graph.nodes[index]):
                    self._library(self.graph.nodes[index])
        outputs = tuple(self.tensor(name) for name in self.graph.outputs)
        updates = {state: self.tensor(value) for state, value in self.graph.updates.items()}
        return self._finish(outputs, updates)

    def _room(self) -> bool:
        """False when the source is as long as a Program may be: the rest of the graph stays with the library."""
        return sum(len(line) + 1 for made in self.kernels for line in made.source) < MAX_KERNEL_CHARS

    def _finish(self, outputs: tuple[str, ...], updates: dict[str, str]) -> Program:
        body = "\n".join("\n".join((*made.source, "")) for made in self.kernels if made.source)
        head = self._head() if self.kernels else ""
        steps = self.steps[False]
        if not steps:  # a module that only returns inputs, views of state or constants
            steps, self.steps[True] = self.steps[True], []
        used = " ".join([*self.dims.values(), *self._expressions(), body])
        tunables: tuple[Tunable, ...] = tuple(t for made in self.kernels for t in made.tunables)
        return Program(
            source=f"{head}\n{body}" if body else "// Every step is a library call.\n",
            dims={**self.shapes.table.definitions(used), **self.dims},
            tunables=tunables,
            buffers=tuple(self.buffers),
            prepare=tuple(self.steps[True]),
            steps=tuple(steps),
            outputs=outputs,
            updates=updates,
        )

    def _head(self) -> str:
        schedules = [plan.schedule() for plan in self.plans.values() if plan.solved.reduced]
        reductions = [op for found in schedules for sweep in found.sweeps for op in sweep.reductions]
        return prelude(
            self.dtypes, reductions, by_row=False in self.families, by_column=True in self.families
        )

    def _expressions(self) -> list[str]:
        texts = [text for buffer in self.buffers for text in buffer.shape]
        for step in (*self.steps[True], *self.steps[False]):
            if isinstance(step, LibraryStep):
                texts += _expressions((step.args, tuple(step.kwargs.values())))
        return texts

    def _is_needed(self, node: Node) -> bool:
        return any(o is not None and self.fusion.users.get(o) for o in node.outputs)

    # --- buffers ----------------------------------------------------------------------------------------------

    def _buffer(self, name: str, dims: Dims, dtype: DType, *, view: bool = False) -> None:
        shape = tuple(size.text for size in dims)
        self.buffers.append(
            Buffer(name=name, shape=shape, dtype=dtype, layout="any" if view else "contiguous")
        )

    def _free_name(self, name: str) -> str:
        taken = {*self.graph.values, *(buffer.name for buffer in self.buffers)}
        while name in taken:
            name = f"{name}_"
        return name

    def _add(self, step: Step, *, constant: bool) -> None:
        self.steps[constant and self.hoist].append(step)

    def tensor(self, name: str) -> str:
        """The tensor a library step reads (or the caller gets) for a value; makes views where needed."""
        if name in self.tensors:
            return self.tensors[name]
        if name in self.maker and is_view(self.graph.nodes[self.maker[name]]):
            self._library(self.graph.nodes[self.maker[name]])
        else:
            self._permuted_view(name)
        return self.tensors[name]

    def _permuted_view(self, name: str) -> None:
        """Give a value that a kernel wrote in another order of dimensions its own order back."""
        order = self._order(name)
        inverse = tuple(order.index(axis) for axis in range(len(order)))
        self._buffer(name, self.shapes.of(name), self.graph.values[name].dtype, view=True)
        step = LibraryStep(
            op="aten.permute.default", args=(self.places[name].tensor, inverse), outputs=(name,)
        )
        self._add(step, constant=name in self.constant)
        self.tensors[name] = name

    def place(self, name: str) -> Place:
        """Where a kernel reads a value; copies it where no strides can express a view or the layout is open."""
        if name in self.places:
            return self.places[name]
        node = self.graph.nodes[self.maker[name]]
        found: Place | None = None
        if is_view(node):
            source = self.place(self.shapes.operands(node)[0])
            found = view_place(self.shapes, node, node.outputs.index(name), source)
        elif name in self.last.made:
            found = self._unfolded(name)
        self.places[name] = found or self._copied(name)
        if found and self._is_constant(node):
            self.constant.add(name)
        return self.places[name]

    def _order(self, name: str) -> tuple[int, ...]:
        """Dimensions of a value that a kernel writes, as they lie in memory."""
        spec = self.graph.values[name]
        if name in self.last.fed:
            return last_order(len(spec.shape))
        return stride_order(spec) if is_dense_permuted(spec) else tuple(range(len(spec.shape)))

    def _ordered(self, tensor: str, name: str, order: tuple[int, ...]) -> Place:
        """Where a value's elements are in a contiguous tensor that holds its dimensions in another order."""
        dims = self.shapes.of(name)
        strides = dict(zip(order, dense(tensor, tuple(dims[axis] for axis in order)).strides, strict=True))
        return Place(tensor, dims, tuple(strides[axis] for axis in range(len(dims))))

    def _unfolded(self, name: str) -> Place:
        """A convolution's result, which lies channels-last already, as the contiguous tensor that kernels take."""
        dims, order = self.shapes.of(name), last_order(len(self.shapes.of(name)))
        tensor = self._free_name(f"{name}_last")
        self._buffer(tensor, tuple(dims[axis] for axis in order), self.graph.values[name].dtype)
        step = LibraryStep(op="aten.permute.default", args=(self.tensor(name), order), outputs=(tensor,))
        self._add(step, constant=name in self.constant)
        return self._ordered(tensor, name, order)

    def _weight(self, name: str) -> str:
        """A convolution's weight channels-last, made once where it does not change."""
        spec, tensor = self.graph.values[name], self._free_name(f"{name}_last")
        self._buffer(tensor, self.shapes.of(name), spec.dtype, view=True)
        kwargs = {"memory_format": SpecialArgument(memory_format=FORMATS[len(spec.shape)])}
        step = LibraryStep(
            op="aten.clone.default", args=(self.tensor(name),), kwargs=dict(kwargs), outputs=(tensor,)
        )
        self._add(step, constant=name in self.constant)
        return tensor

    def _copied(self, name: str) -> Place:
        source = self.tensor(name)
        copy = self._free_name(f"{name}_dense")
        self._buffer(copy, self.shapes.of(name), self.graph.values[name].dtype)
        kwargs = {"memory_format": SpecialArgument(memory_format="contiguous_format")}
        step = LibraryStep(op="aten.clone.default", args=(source,), kwargs=dict(kwargs), outputs=(copy,))
        self._add(step, constant=name in self.constant)
        return dense(copy, self.shapes.of(name))

    # --- library calls ----------------------------------------------------------------------------------------

    def _is_constant(self, node: Node) -> bool:
        return all(name in self.constant for name in self.shapes.operands(node))

    def _library(self, node: Node) -> None:
        rename = {name: self.tensor(name) for name in self.shapes.operands(node)}
        constant = self._is_constant(node)
        for name in node.outputs:
            if name is None:
                continue
            if name in self.last.made:
                rename[self.last.weights[name]] = self._weight(self.last.weights[name])
            spec = self.graph.values[name]
            view = is_view(node) or not spec.is_contiguous or name in self.last.made
            self._buffer(name, self.shapes.of(name), spec.dtype, view=view)
            self.tensors[name] = name
            if not view:
                self.places[name] = dense(name, self.shapes.of(name))
            if constant:
                self.constant.add(name)
        self._add(library_step(self.shapes, node, rename, node.outputs), constant=constant)
        self._count_saved([node] if constant else [])

    # --- regions ----------------------------------------------------------------------------------------------

    def region_plan(self, region: Region, prefix: str, variants: Mapping[str, Variant]) -> RegionPlan:
        """Loops and accesses of a region, and the variant it gets."""
        solved, values = region.solved, self.graph.values
        loads: dict[str, Access] = {}
        for slide in region.slides:
            loads[slide.name] = self._window(slide, len(loads), solved)
        for name in solved.loads:
            if name in loads:
                continue
            place = self.place(name)
            plain = place == dense(place.tensor, place.dims)
            loads[name] = load_access(name, place, solved, values[name].dtype, dense=plain)
        stores = {}
        for name in region.stores:
            order = self._order(name)
            tensor = name if order == tuple(range(len(order))) else self._free_name(f"{name}_dense")
            stores[name] = store_access(name, tensor, solved, values[name].dtype, order)
        dtypes = {name: access.dtype for name, access in (*loads.items(), *stores.items())}
        words = tuple(self.graph.nodes[i].op.split(".")[1] for i in region.nodes)
        geometry = build_geometry(prefix, self.shapes.table, solved, loads, stores)
        plan = RegionPlan(prefix, Variant.VECTOR, geometry, solved, region.ops, region.stores, dtypes, words)
        wanted = variants.get(prefix)
        chosen = wanted if wanted and permitted(plan, wanted) else options(plan)[0]
        return RegionPlan(prefix, chosen, geometry, solved, region.ops, region.stores, dtypes, words)

    def _window(self, slide: Slide, number: int, solved: Solved) -> Access:
        weights = None
        if slide.weight is not None:
            weights = self.place(slide.weight), self.graph.values[slide.weight].dtype
        return window_access(slide, number, self.place(slide.operand), weights, solved)

    def _region(self, region: Region, variants: Mapping[str, Variant]) -> None:
        plan = self.region_plan(region, f"R{len(self.plans)}", variants)
        self.plans[plan.prefix] = plan
        constant = all(name in self.constant for name in region.reads)
        for name, access in plan.geometry.stores.items():
            order, dims = self._order(name), self.shapes.of(name)
            self._buffer(access.tensor, tuple(dims[axis] for axis in order), access.dtype)
            self.places[name] = self._ordered(access.tensor, name, order)
            if access.tensor == name:
                self.tensors[name] = name
            if constant:
                self.constant.add(name)
        made = self.shared.share(plan, _EMITTERS.get(plan.variant, rows.emit)(plan))
        self.kernels.append(made)
        self.buffers.extend(made.buffers)
        self.dims |= plan.geometry.dims if made.source else {}
        self.dtypes |= {a.dtype for a in (*plan.geometry.loads.values(), *plan.geometry.stores.values())}
        self.dtypes |= {op.dtype for op in plan.ops if isinstance(op, Map)}  # a cast rounds in registers
        if plan.solved.reduced:
            self.families.add(plan.geometry.by_column)
        for step in made.steps:
            self._add(step, constant=constant)
        self._count_saved([self.graph.nodes[index] for index in region.nodes] if constant else [])

    def _count_saved(self, nodes: list[Node]) -> None:
        if self.hoist:
            self.saved_flops += sum(call_flops(node_call(node, self.graph.values)) for node in nodes)


def _expressions(argument: object) -> list[str]:
    if isinstance(argument, SpecialArgument):
        return [argument.expression] if argument.expression else []
    if isinstance(argument, tuple):
        return [text for item in argument for text in _expressions(item)]
    return []
