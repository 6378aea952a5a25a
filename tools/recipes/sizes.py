"""Sizes as products of symbols: what lets one Program bind to other shapes than those it was written for.

A Size is `factor * atom * atom ...`, each atom an expression over the shapes of inputs and state (`x.shape[0]`) or the
name of a derived size (`conv_2 = (x.shape[2]+2-3)//2+1`). Invariant: two sizes that compare equal after `canonical`
are equal at every binding the Program accepts, not only at the captured shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory.records import TensorSpec
from tools.expressions import Scope, evaluate


@dataclass(frozen=True, order=True)
class Atom:
    """One symbol and its value at the captured shapes."""

    text: str
    value: int
    twin: int = 0
    """Its value at the reduced twin's shapes; meaningless where there is no twin."""


@dataclass(frozen=True)
class Size:
    """A product of a number and atoms (sorted)."""

    factor: int
    atoms: tuple[Atom, ...] = ()

    @property
    def value(self) -> int:
        """The number it is at the captured shapes."""
        result = self.factor
        for atom in self.atoms:
            result *= atom.value
        return result

    @property
    def twin(self) -> int:
        """The number it is at the twin's shapes."""
        result = self.factor
        for atom in self.atoms:
            result *= atom.twin
        return result

    @property
    def text(self) -> str:
        """An expression of the launch plan."""
        parts = [atom.text for atom in self.atoms]
        if self.factor != 1 or not parts:
            parts.insert(0, str(self.factor))
        return "*".join(parts)

    @property
    def is_one(self) -> bool:
        """True for the number 1, whatever the shapes."""
        return self.factor == 1 and not self.atoms

    def __mul__(self, other: Size) -> Size:
        if self.factor == 0 or other.factor == 0:
            return Size(0)  # one zero, whatever it was multiplied with, so that strides of 0 compare equal
        return Size(self.factor * other.factor, tuple(sorted((*self.atoms, *other.atoms))))

    def divide(self, other: Size) -> Size | None:
        """The exact quotient where every atom of `other` cancels; None where it would need a division."""
        left = list(self.atoms)
        for atom in other.atoms:
            if atom not in left:
                return None
            left.remove(atom)
        if other.factor == 0 or self.factor % other.factor:
            return None
        return Size(self.factor // other.factor, tuple(left))


ONE = Size(1)


def number(value: int) -> Size:
    """A size that is the same at every binding."""
    return Size(value)


def product(sizes: list[Size] | tuple[Size, ...]) -> Size:
    """Product of all sizes; ONE for none."""
    result = ONE
    for size in sizes:
        result = result * size
    return result


class SizeTable:
    """The symbols of one graph: derived sizes with their definitions, and which symbols are equal to which."""

    def __init__(self, taken: set[str], twin: dict[str, TensorSpec] | None = None) -> None:
        """`taken`: names that a derived size may not use. `twin`: inputs and state of a smaller capture."""
        self._taken = taken
        self._twin = Scope({}, twin) if twin is not None else None
        self._twin_numbers: dict[str, int] = {}
        self._definitions: dict[str, str] = {}
        self._names: dict[str, Atom] = {}
        self._equals: dict[Atom, Size] = {}

    def shape(self, tensor: str, axis: int, value: int) -> Size:
        """The size `tensor.shape[axis]` of an input or a state tensor."""
        return Size(1, (self._atom(f"{tensor}.shape[{axis}]", value),))

    def stride(self, tensor: str, axis: int, value: int) -> Size:
        """The stride `tensor.stride[axis]` of an input or a state tensor, in elements."""
        return Size(1, (self._atom(f"{tensor}.stride[{axis}]", value),))

    def _atom(self, text: str, value: int) -> Atom:
        if self._twin is None:
            return Atom(text, value)
        return Atom(text, value, evaluate(text, Scope(self._twin_numbers, self._twin.tensors)))

    def derived(self, stem: str, expression: str, value: int) -> Size:
        """A named size with a definition of its own; the same expression gives the same name."""
        if expression not in self._names:
            name = stem
            while name in self._taken or name in self._definitions:
                name = f"{name}_"
            self._definitions[name] = expression
            atom = self._atom(expression, value)
            self._twin_numbers[name] = atom.twin
            self._names[expression] = Atom(name, value, atom.twin)
        return Size(1, (self._names[expression],))

    def quotient(self, whole: Size, part: Size) -> Size:
        """`whole // part`, which the graph promises to be exact; afterwards `whole` counts as `part * quotient`."""
        whole, part = self.canonical(whole), self.canonical(part)
        exact = whole.divide(part)
        if exact is not None:
            return exact
        value = whole.value // max(part.value, 1)
        if not whole.atoms:
            return number(value)
        result = self.derived(f"Q{len(self._definitions)}", f"({whole.text})//({part.text})", value)
        if whole.factor == 1 and len(whole.atoms) == 1 and whole.atoms[0] not in result.atoms + part.atoms:
            self._equals.setdefault(whole.atoms[0], part * result)
        return result

    def equate(self, left: Size, right: Size) -> None:
        """Record that the graph demands `left == right`: one of two single symbols stands for both from now on."""
        left, right = self.canonical(left), self.canonical(right)
        differ = left.value != right.value or left.twin != right.twin
        if left == right or differ or not (left.atoms and right.atoms):
            return  # a plain number may stand for a symbol that inference did not recognise: it decides nothing
        if "." not in left.text:
            left, right = right, left  # keep the symbol that needs no definition
        for one, other in ((right, left), (left, right)):
            if one.factor == 1 and len(one.atoms) == 1 and one.atoms[0] not in other.atoms:
                self._equals[one.atoms[0]] = other
                return

    def canonical(self, size: Size) -> Size:
        """`size` with every symbol replaced by what it is known to equal."""
        while True:
            found = next((a for a in size.atoms if a in self._equals), None)
            if found is None:
                return size
            rest = list(size.atoms)
            rest.remove(found)
            size = Size(size.factor, tuple(rest)) * self._equals[found]

    def same(self, left: Size, right: Size) -> bool:
        """True where both are equal at every binding."""
        return self.canonical(left) == self.canonical(right)

    def definitions(self, used: str) -> dict[str, str]:
        """Definitions of the derived sizes that the texts in `used` need, each after those it reads."""
        needed: dict[str, str] = {}
        words = set(_words(used))
        for name, expression in reversed(list(self._definitions.items())):
            if name in words:
                needed[name] = expression
                words |= set(_words(expression))
        return dict(reversed(list(needed.items())))


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()
