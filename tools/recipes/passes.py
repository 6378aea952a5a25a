"""What each sweep over a row computes, and which values it keeps for the next.

A reduction's result exists only after a whole sweep, so a value that needs it belongs to a later sweep. Values made in
one sweep and needed in another are kept on chip where the kernel can (the frontier between two sweeps), and computed
again from memory where it cannot.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memory.records import DType
from tools.recipes.axes import Solved
from tools.recipes.micro import C_TYPES, Fill, Map, Micro, Reduce, Shortcut, Slide


@dataclass
class Sweep:
    """One pass over the elements of a row."""

    loads: list[str] = field(default_factory=list)
    maps: list[Map] = field(default_factory=list)
    reductions: list[Reduce] = field(default_factory=list)
    stores: list[str] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)
    """Values taken from an earlier sweep."""
    row_maps: list[Map] = field(default_factory=list)
    """Computed once per row when this sweep's reductions are known."""
    row_stores: list[str] = field(default_factory=list)
    """Written once per row when this sweep's reductions are known."""

    @property
    def has_elements(self) -> bool:
        """True where the sweep has anything to do for each element."""
        return bool(self.reductions or self.stores)


@dataclass
class Schedule:
    """Sweeps of a region in order; the last one has no reductions."""

    sweeps: list[Sweep]
    row_loads: list[str]
    """Loaded once per row, before the first sweep."""
    first_maps: list[Map]
    """Computed once per row, before the first sweep."""
    references: dict[str, str]
    """Text that stands for a value: another value's name, or a constant."""
    dtypes: dict[str, DType]
    row_values: set[str]

    @property
    def keeps(self) -> list[str]:
        """Values kept from one sweep to a later one, in order."""
        return list(dict.fromkeys(name for sweep in self.sweeps for name in sorted(sweep.kept)))

    def resolve(self, name: str) -> str:
        """The value or constant that `name` is another name for."""
        while name in self.references:
            name = self.references[name]
        return name


def schedule(
    ops: tuple[Micro, ...], solved: Solved, stores: tuple[str, ...], dtypes: dict[str, DType], *, keep: bool
) -> Schedule:
    """Sort a region's operations into sweeps. `keep` False computes everything again in every sweep.

    `dtypes` are those of the values loaded and stored; temporaries get theirs from the operations.
    """
    ops = (
        tuple(op for op in ops if not isinstance(op, Shortcut))
        if keep or not solved.reduced
        else _shortened(ops)
    )
    return _Scheduler(_alive(ops, stores), solved, stores, dtypes, keep=keep).run()


def _shortened(ops: tuple[Micro, ...]) -> tuple[Micro, ...]:
    """Take every shortcut: its reduction and its values where the first of the replaced operations stood."""
    shortcuts = [op for op in ops if isinstance(op, Shortcut)]
    replaced = {name: op for op in shortcuts for name, _ in op.gives}
    done: set[str] = set()
    out: list[Micro] = []
    for op in ops:
        cut = replaced.get(op.name)
        if cut is None:
            out += [] if isinstance(op, Shortcut) else [op]
        elif cut.name not in done:
            done.add(cut.name)
            out.append(Reduce(cut.name, cut.dtype, cut.combine, cut.operand, cut.dims, keep=True))
            out += [Map(name, cut.dtype, text, (cut.name,)) for name, text in cut.gives]
    return tuple(out)


def _alive(ops: tuple[Micro, ...], stores: tuple[str, ...]) -> tuple[Micro, ...]:
    """Operations that some result needs."""
    needed = set(stores)
    for op in reversed(ops):
        if op.name in needed:
            needed |= set(op.operands) if isinstance(op, Map) else set()
            needed |= {op.operand} if not isinstance(op, Map | Fill | Slide) else set()
    return tuple(op for op in ops if op.name in needed)


class _Scheduler:
    def __init__(
        self,
        ops: tuple[Micro, ...],
        solved: Solved,
        stores: tuple[str, ...],
        dtypes: dict[str, DType],
        *,
        keep: bool,
    ) -> None:
        self.solved = solved
        self.stores = stores
        self.keep = keep
        self.dtypes = dict(dtypes)
        self.references: dict[str, str] = {}
        self.maps: dict[str, Map] = {}
        self.reductions: dict[str, Reduce] = {}
        for op in ops:
            self.take(op)
        self.level: dict[str, int] = dict.fromkeys(solved.loads, 0)
        for op in ops:
            self.rank(op)

    def take(self, op: Micro) -> None:
        if isinstance(op, Reduce) and self.solved.reduced:
            self.reductions[op.name] = op
            self.dtypes[op.name] = op.dtype
        elif isinstance(op, Fill):
            self.references[op.name] = op.text
            self.dtypes[op.name] = op.dtype
        elif isinstance(op, Slide):
            self.dtypes[op.name] = op.dtype  # a load
        elif isinstance(op, Map):
            self.dtypes[op.name] = op.dtype
            copies = op.text == "{0}" and C_TYPES[self.dtypes[op.operands[0]]] == C_TYPES[op.dtype]
            if copies:
                self.references[op.name] = op.operands[0]
            else:
                self.maps[op.name] = op
        else:
            self.references[op.name] = op.operand
            self.dtypes[op.name] = self.dtypes[op.operand]

    def resolve(self, name: str) -> str:
        while name in self.references:
            name = self.references[name]
        return name

    def rank(self, op: Micro) -> None:
        """Number of sweeps that must have ended before a value exists."""
        if op.name in self.reductions:
            self.level[op.name] = self.level_of(self.reductions[op.name].operand) + 1
        elif op.name in self.maps:
            self.level[op.name] = max((self.level_of(n) for n in self.maps[op.name].operands), default=0)

    def level_of(self, name: str) -> int:
        return self.level.get(self.resolve(name), 0)

    def on_row(self, name: str) -> bool:
        """True where a value is the same for all elements of a row (constants are text, not values)."""
        return bool(self.solved.reduced) and not (self.solved.depends[name] & self.solved.reduced)

    def run(self) -> Schedule:
        count = 1 + max((self.level[name] for name in self.reductions), default=0)
        for name in self.stores:
            count = max(count, self.level_of(name) + 1)
        sweeps = [Sweep() for _ in range(count)]
        for name, reduction in self.reductions.items():
            sweeps[self.level[name] - 1].reductions.append(reduction)
        for name in self.stores:
            full = frozenset(self.solved.axes_of(name)) == self.solved.domain
            if full:
                sweeps[self.level_of(name)].stores.append(name)
            else:
                sweeps[max(self.level_of(name) - 1, 0)].row_stores.append(name)
        row_loads, first = self.row_level(sweeps)
        self.fill(sweeps)
        values = {n for n in (*self.maps, *self.reductions, *self.solved.loads) if self.on_row(n)}
        return Schedule(sweeps, row_loads, first, self.references, self.dtypes, values)

    def row_level(self, sweeps: list[Sweep]) -> tuple[list[str], list[Map]]:
        needed: set[str] = set()
        stack = [r.operand for r in self.reductions.values()] + list(self.stores)
        while stack:
            name = self.resolve(stack.pop())
            if name in needed or name not in self.level:
                continue
            needed.add(name)
            stack += self.maps[name].operands if name in self.maps else ()
            stack += [self.reductions[name].operand] if name in self.reductions else []
        first: list[Map] = []
        for name, op in self.maps.items():
            if self.on_row(name) and name in needed:
                (sweeps[self.level[name] - 1].row_maps if self.level[name] else first).append(op)
        return [n for n in self.solved.loads if self.on_row(n) and n in needed], first

    def fill(self, sweeps: list[Sweep]) -> None:
        """Give every sweep the loads and maps its reductions and stores need."""
        home: dict[str, int] = {}
        for number, sweep in enumerate(sweeps):
            roots = [r.operand for r in sweep.reductions] + sweep.stores
            needed = self.needed(roots, home, number)
            sweep.kept = {n for n in needed if home.get(n, number) < number}
            self.drop_recomputable(sweep)
            sweep.loads = [n for n in self.solved.loads if n in needed and n not in sweep.kept]
            sweep.maps = [op for n, op in self.maps.items() if n in needed and n not in sweep.kept]
            for name in (*sweep.loads, *(op.name for op in sweep.maps)):
                if (self.keep and self.solved.depends[name] & self.solved.rows) or (
                    self.keep and not self.solved.rows
                ):
                    home.setdefault(name, number)

    def needed(self, roots: list[str], home: dict[str, int], number: int) -> set[str]:
        """Element values to have in a sweep; the search stops at values an earlier sweep can hand over."""
        found: set[str] = set()
        stack = list(roots)
        while stack:
            name = self.resolve(stack.pop())
            if name in found or name not in self.level or self.on_row(name):
                continue
            found.add(name)
            if home.get(name, number) == number and name in self.maps:
                stack += self.maps[name].operands
        return found

    def drop_recomputable(self, sweep: Sweep) -> None:
        """Compute a cheap kept value again where everything it needs is kept or per row anyway."""
        for name in sorted(sweep.kept):
            op = self.maps.get(name)
            if op is None or not op.cheap:
                continue
            operands = [self.resolve(o) for o in op.operands]
            elements = [o for o in operands if o in self.level and not self.on_row(o)]
            if elements and all(o in sweep.kept and o != name for o in elements):
                sweep.kept.discard(name)
