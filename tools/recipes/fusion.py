"""Cutting a graph into regions: which nodes share one kernel, and which stay library calls.

A node joins the regions that make its operands where the joint region still has one loop nest (`tools.recipes.axes`)
and the order of the whole graph stays acyclic. Views are transparent: a region takes in those it needs. Invariant:
every node but a view is in exactly one unit, and the units can be run in the order given.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory.records import Graph, Node
from tools.recipes.arguments import base_name
from tools.recipes.axes import Solved, solve
from tools.recipes.lowering import lower
from tools.recipes.micro import Micro, Reduce, Slide
from tools.recipes.places import WINDOWS
from tools.recipes.shapes import Shapes
from tools.recipes.view_lowering import REORDERS, RESHAPES

MAX_REGION_NODES = 60
"""Beyond this a kernel's registers and arguments cost more than another pass over memory."""
MAX_SIBLINGS = 12
"""Regions tried, latest first, for a node that only shares an input with them."""
INNER_VIEWS = RESHAPES | REORDERS | {"expand"}


@dataclass(frozen=True)
class Region:
    """Nodes that become one kernel (or, for a split row, a few)."""

    nodes: tuple[int, ...]
    """Indices into the graph's nodes, in order; views that were taken in are not listed."""
    ops: tuple[Micro, ...]
    solved: Solved
    stores: tuple[str, ...]
    """Values that something outside reads."""

    @property
    def slides(self) -> tuple[Slide, ...]:
        """Its windows."""
        return _slides(self.ops)

    @property
    def reads(self) -> tuple[str, ...]:
        """Values that it takes from memory, those that windows slide over included."""
        windows = {slide.name: (slide.operand, slide.weight) for slide in self.slides}
        names = [name for load in self.solved.loads for name in windows.get(load, (load,))]
        return tuple(name for name in dict.fromkeys(names) if name is not None)


Unit = Region | int
"""A region, or the index of a node that stays a library call."""


def is_view(node: Node) -> bool:
    """True for a node that only renames elements."""
    return base_name(node.op) in INNER_VIEWS | WINDOWS


class Fusion:
    """The cut of one graph."""

    def __init__(self, graph: Graph, shapes: Shapes, *, reductions: bool, windows: bool = True) -> None:
        """`reductions`, `windows` False keep every reduction, every pool or convolution a library call."""
        self.graph = graph
        self.shapes = shapes
        self.maker = {o: i for i, node in enumerate(graph.nodes) for o in node.outputs if o is not None}
        self.lowered = [None if is_view(node) else lower(graph, shapes, node) for node in graph.nodes]
        if not reductions:
            self.lowered = [None if ops and _reduces(ops) else ops for ops in self.lowered]
        if not windows:
            self.lowered = [None if ops and _slides(ops) else ops for ops in self.lowered]
        self.users = self._users()
        self.region_of: dict[int, int] = {}
        self.members: dict[int, list[int]] = {}
        self.barriers: set[str] = set()

    def units(self) -> list[Unit]:
        """Regions and library nodes in an order they can run in."""
        for _ in range(len(self.graph.nodes) + 1):
            self.region_of, self.members = {}, {}
            for index, ops in enumerate(self.lowered):
                if ops is not None:
                    self._place(index)
            bad = self._unstorable()
            if not bad:
                break
            self.barriers |= bad
        return self._ordered()

    # --- structure --------------------------------------------------------------------------------------------

    def _users(self) -> dict[str, set[int]]:
        """Nodes that read a value, through views as well; -1 stands for the graph's own results."""
        users: dict[str, set[int]] = {}
        for name in (*self.graph.outputs, *self.graph.updates.values()):
            users.setdefault(name, set()).add(-1)
        for index in range(len(self.graph.nodes) - 1, -1, -1):
            node = self.graph.nodes[index]
            readers = {index}
            if is_view(node):
                readers = set().union(*(users.get(o, set()) for o in node.outputs if o is not None))
                windowed = base_name(node.op) in WINDOWS or -1 in readers
                readers = {-1} if windowed and readers else readers
            for name in self.shapes.operands(node):
                users.setdefault(name, set()).update(readers)
        return users

    def _root(self, name: str) -> str:
        """The value a chain of views starts from."""
        while name in self.maker and is_view(self.graph.nodes[self.maker[name]]):
            name = self.shapes.operands(self.graph.nodes[self.maker[name]])[0]
        return name

    def _chain(self, name: str, inside: set[int]) -> list[int] | None:
        """Views between a region's value and `name`; None where the root lies outside or a view is a window."""
        chain: list[int] = []
        while name in self.maker and is_view(self.graph.nodes[self.maker[name]]):
            index = self.maker[name]
            if base_name(self.graph.nodes[index].op) not in INNER_VIEWS:
                return None
            chain.append(index)
            name = self.shapes.operands(self.graph.nodes[index])[0]
        return chain[::-1] if self.maker.get(name) in inside else None

    def body(self, members: list[int]) -> tuple[Micro, ...]:
        """Micro-operations of a region's nodes, with the views between them, in order."""
        inside, ops, taken = set(members), list[Micro](), set[int]()
        for index in sorted(members):
            for name in self.shapes.operands(self.graph.nodes[index]):
                for view in self._chain(name, inside) or []:
                    if view not in taken:
                        taken.add(view)
                        ops.extend(lower(self.graph, self.shapes, self.graph.nodes[view]) or ())
            ops.extend(self.lowered[index] or ())
        return tuple(ops)

    # --- growth -----------------------------------------------------------------------------------------------

    def _place(self, index: int) -> None:
        """Put a node into the joint region of its operands, into one of theirs, or into a new one."""
        if _slides(self.lowered[index] or ()):  # what it reads must lie in memory
            self._join([], [index])
            return
        candidates: list[int] = []
        for name in self.shapes.operands(self.graph.nodes[index]):
            maker = self.maker.get(self._root(name))
            region = self.region_of.get(maker) if maker is not None else None
            if (
                region is not None
                and region not in candidates
                and self._chain(name, set(self.members[region])) is not None
            ):
                candidates.append(region)
        trials = [candidates] if len(candidates) > 1 else []
        trials += [[region] for region in sorted(candidates, key=lambda r: -len(self.members[r]))]
        for trial in trials:
            nodes = sorted({n for region in trial for n in self.members[region]} | {index})
            if (
                len(nodes) <= MAX_REGION_NODES
                and self._in_registers(nodes)
                and not self._cyclic(nodes)
                and self._legal(nodes)
            ):
                self._join(trial, nodes)
                return
        self._join(self._siblings(index), [index])

    def _siblings(self, index: int) -> list[int]:
        """A region that reads the same tensor in loops of the same extent, so that one load serves both."""
        roots = {self._root(name) for name in self.shapes.operands(self.graph.nodes[index])}
        alone = solve(self.body([index]), self.shapes.of, self.shapes.table)
        for region in sorted(self.members, reverse=True)[:MAX_SIBLINGS]:
            nodes = sorted([*self.members[region], index])
            if roots.isdisjoint(self._reads(self.members[region])) or len(nodes) > MAX_REGION_NODES:
                continue
            both = solve(self.body(nodes), self.shapes.of, self.shapes.table)
            mine = solve(self.body(self.members[region]), self.shapes.of, self.shapes.table)
            extents = {_extent(solved) for solved in (alone, both, mine)}
            if (
                len(extents) == 1
                and self._in_registers(nodes)
                and not self._cyclic(nodes)
                and self._legal(nodes)
            ):
                return [region]
        return []

    def _reads(self, members: list[int]) -> set[str]:
        """Values a region takes from outside, views looked through."""
        inside = set(members)
        names = {self._root(name) for n in members for name in self.shapes.operands(self.graph.nodes[n])}
        return {name for name in names if self.maker.get(name) not in inside}

    def _join(self, regions: list[int], nodes: list[int]) -> None:
        nodes = sorted({*nodes, *(n for region in regions for n in self.members.pop(region, []))})
        key = nodes[0]
        self.members[key] = nodes
        self.region_of.update(dict.fromkeys(nodes, key))

    def _in_registers(self, nodes: list[int]) -> bool:
        """False where a node would read another one's result through a view's or a pool's window, hence from memory."""
        inside = set(nodes)
        slid = (slide for n in nodes for slide in _slides(self.lowered[n] or ()))
        if any(self.maker.get(self._root(slide.operand)) in inside for slide in slid):
            return False
        names = {name for n in nodes for name in self.shapes.operands(self.graph.nodes[n])}
        return all(
            self._chain(name, inside) is not None
            for name in names
            if self.maker.get(self._root(name)) in inside
        )

    def _legal(self, nodes: list[int]) -> bool:
        ops = self.body(nodes)
        solved = solve(ops, self.shapes.of, self.shapes.table)
        if solved is None or (not solved.reduced and _reduces(ops) and len(nodes) > 1):
            return False
        inside = {o for n in nodes for o in self.graph.nodes[n].outputs if o is not None}
        return all(solved.storable(name) for name in inside & self.barriers if name in solved.layouts)

    def _cyclic(self, nodes: list[int]) -> bool:
        """True where something outside lies between two of `nodes`."""
        inside = set(nodes)
        seen: set[int] = set()
        frontier = {maker for n in nodes for maker in self._makers(n)} - inside
        while frontier:
            index = frontier.pop()
            unit = self.members[self.region_of[index]] if index in self.region_of else [index]
            if index in seen or max(unit) < nodes[0]:
                continue
            if not inside.isdisjoint(unit):
                continue
            seen.update(unit)
            for member in unit:
                for maker in self._makers(member):
                    if maker in inside:
                        return True
                    frontier.add(maker)
        return False

    def _makers(self, index: int) -> list[int]:
        """Non-view nodes whose results a node reads."""
        roots = (self._root(name) for name in self.shapes.operands(self.graph.nodes[index]))
        return [self.maker[root] for root in roots if root in self.maker]

    # --- results ----------------------------------------------------------------------------------------------

    def stores(self, members: list[int]) -> tuple[str, ...]:
        """Values of a region that something outside reads, directly or through views."""
        inside = set(members)
        names = [o for n in sorted(members) for o in self.graph.nodes[n].outputs if o is not None]
        return tuple(name for name in names if self.users.get(name, set()) - inside)

    def _unstorable(self) -> set[str]:
        bad: set[str] = set()
        for members in self.members.values():
            solved = solve(self.body(members), self.shapes.of, self.shapes.table)
            names = self.stores(members)
            bad |= {n for n in names if solved is not None and not solved.storable(n)} - self.barriers
        return bad

    def _ordered(self) -> list[Unit]:
        """Units in dependency order, each as early as its first node."""
        pending: dict[int, list[int]] = dict(self.members)
        for index, node in enumerate(self.graph.nodes):
            if index not in self.region_of and not is_view(node):
                pending[index] = [index]
        key_of = {n: key for key, nodes in pending.items() for n in nodes}
        needs = {
            key: {key_of[m] for n in nodes for m in self._makers(n)} - {key} for key, nodes in pending.items()
        }
        order: list[Unit] = []
        done: set[int] = set()
        while pending:
            ready = next(key for key in sorted(pending) if needs[key] <= done)
            nodes = pending.pop(ready)
            done.add(ready)
            order.append(self._region(nodes) if ready in self.members else ready)
        return order

    def _region(self, members: list[int]) -> Region:
        ops = self.body(members)
        solved = solve(ops, self.shapes.of, self.shapes.table)
        if solved is None:
            raise AssertionError(f"region of nodes {members} was accepted and no longer has one loop nest")
        return Region(tuple(sorted(members)), ops, solved, self.stores(members))


def _extent(solved: Solved | None) -> int | None:
    """Elements of a region's loop nest; None, which equals nothing useful, where there is none."""
    if solved is None:
        return None
    count = 1
    for size in solved.sizes.values():
        count *= size.value
    return count


def _slides(ops: tuple[Micro, ...]) -> tuple[Slide, ...]:
    return tuple(op for op in ops if isinstance(op, Slide))


def _reduces(ops: tuple[Micro, ...]) -> bool:
    return any(isinstance(op, Reduce) for op in ops)
