"""Integer ranges of C expressions: what an index may be over all threads of a launch, and whether it gets there.

A range knows its type, so that a result too large for it is seen, and how its values lie (all multiples of a step),
so that a guard `i < n` cuts it where the last thread really is. Exact means that both ends occur: the value only
rises with the variables it is made of, and each of those takes its largest value whatever the others do.
Does not cover: floating point, and negative divisors; such a value is unknown (None).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_LITERAL = re.compile(r"(?P<digits>0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)(?P<suffix>[uUlL]*)$")

_MAX_DIGITS = 100
"""A longer number fits no type."""


@dataclass(frozen=True)
class CType:
    """An integer type."""

    bits: int
    signed: bool

    @property
    def lowest(self) -> int:
        """Smallest value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def highest(self) -> int:
        """Largest value."""
        return (1 << (self.bits - self.signed)) - 1

    def holds(self, low: int, high: int) -> bool:
        """Whether every value between the two fits."""
        return self.lowest <= low and high <= self.highest


INT = CType(32, True)
UNSIGNED = CType(32, False)
LONG = CType(64, True)
UNSIGNED_LONG = CType(64, False)

_TYPES: dict[str, CType] = {
    **dict.fromkeys(("int", "signed", "signed int", "int32_t"), INT),
    **dict.fromkeys(("unsigned", "unsigned int", "uint32_t", "uint"), UNSIGNED),
    **dict.fromkeys(("long", "long int", "long long", "long long int", "int64_t", "ptrdiff_t"), LONG),
    **dict.fromkeys(
        ("unsigned long", "unsigned long long", "unsigned long long int", "uint64_t", "size_t"), UNSIGNED_LONG
    ),
}


def type_named(text: str) -> CType | None:
    """The type that a declaration's words name; None for all but integers of 32 and 64 bits."""
    words = re.sub(r"\b(?:const|constexpr|volatile|register|static|std::)\b|std::", " ", text).split()
    return _TYPES.get(" ".join(words))


@dataclass(frozen=True)
class Range:
    """The values of an expression."""

    low: int
    high: int
    ctype: CType = INT
    exact: bool = True
    """Both ends occur, see the module's text."""
    step: int | None = 1
    """Neighbouring values are so far apart, and all of them occur; None where that is not known."""
    uses: frozenset[str] = frozenset()
    """Variables it is made of, such as threadIdx.x."""

    @property
    def single(self) -> bool:
        """One value only."""
        return self.low == self.high

    @property
    def fits(self) -> bool:
        """Every value fits its type."""
        return self.ctype.holds(self.low, self.high)

    def below(self, bound: Range, *, inclusive: bool) -> Range | None:
        """Cut off by a guard `value < bound` (`<=` where inclusive); None where nothing is left."""
        limit = bound.high - (not inclusive)
        if self.high <= limit:
            return self
        if limit < self.low:
            return None
        if self.step is None or not bound.single:
            return replace(self, high=limit, exact=False, step=None)
        return replace(self, high=self.low + (limit - self.low) // self.step * self.step)

    def above(self, bound: Range, *, inclusive: bool) -> Range | None:
        """Cut off by a guard `value > bound`."""
        limit = bound.low + (not inclusive)
        if self.low >= limit:
            return self
        return None if limit > self.high else replace(self, low=limit, exact=False, step=None)


def number(value: int, ctype: CType = INT) -> Range:
    """One value."""
    return Range(value, value, ctype)


def literal(text: str) -> Range | None:
    """A number as C reads it; None for a floating-point one."""
    match = _LITERAL.fullmatch(text)
    if match is None or len(text) > _MAX_DIGITS:
        return None
    digits = match["digits"].replace("'", "")
    octal = digits[0] == "0" and digits.isdigit()
    if octal and re.search(r"[89]", digits):
        return None
    value = int(digits, 8 if octal else 0)
    suffix = match["suffix"].lower()
    wide, unsigned = "l" in suffix or value > UNSIGNED.highest, "u" in suffix
    if not unsigned and value > INT.highest:
        unsigned, wide = (
            digits[:2].lower() == "0x" and value <= UNSIGNED.highest,
            value > UNSIGNED.highest or wide,
        )
        wide = wide or not unsigned
    return number(value, CType(64 if wide else 32, not unsigned))


def combined(operator: str, a: Range, b: Range) -> Range | None:
    """`a operator b` in the type that C gives it; the caller looks whether it fits."""
    if operator in ("<<", ">>"):
        if not b.single or not 0 <= b.low < a.ctype.bits:
            return None
        power = number(1 << b.low, a.ctype)
        return combined("*" if operator == "<<" else "/", a, power)
    operation = _OPERATIONS.get(operator)
    made = operation(a, b) if operation is not None else None
    if made is None:
        return None
    bits = max(a.ctype.bits, b.ctype.bits)
    signed = all(r.ctype.signed or r.ctype.bits < bits for r in (a, b))
    return replace(made, ctype=CType(bits, signed), uses=a.uses | b.uses)


def smaller(a: Range, b: Range) -> Range:
    """min(a, b)."""
    return Range(min(a.low, b.low), min(a.high, b.high), a.ctype, a.exact and b.exact, None, a.uses | b.uses)


def larger(a: Range, b: Range) -> Range:
    """max(a, b)."""
    return Range(max(a.low, b.low), max(a.high, b.high), a.ctype, a.exact and b.exact, None, a.uses | b.uses)


def either(a: Range, b: Range) -> Range:
    """One or the other."""
    wider = a.ctype if a.ctype.bits >= b.ctype.bits else b.ctype
    return Range(min(a.low, b.low), max(a.high, b.high), wider, False, None, a.uses | b.uses)


def _sum(a: Range, b: Range) -> Range:
    return Range(a.low + b.low, a.high + b.high, exact=a.exact and b.exact, step=_step_of_sum(a, b))


def _step_of_sum(a: Range, b: Range) -> int | None:
    """blockIdx.x * 256 + threadIdx.x takes every value only where threadIdx.x reaches 255."""
    if a.single or b.single:
        return b.step if a.single else a.step
    if a.uses & b.uses or a.step is None or b.step is None:
        return None
    fine, coarse = (a, b) if a.step <= b.step else (b, a)
    fine_step, coarse_step = min(a.step, b.step), max(a.step, b.step)
    gapless = fine.high - fine.low + fine_step >= coarse_step
    return fine_step if gapless and coarse_step % fine_step == 0 and coarse.exact else None


def _difference(a: Range, b: Range) -> Range:
    if b.single:
        return replace(a, low=a.low - b.low, high=a.high - b.low)
    return Range(a.low - b.high, a.high - b.low, exact=False, step=None)


def _product(a: Range, b: Range) -> Range:
    if a.single:
        a, b = b, a
    if b.single and b.low >= 0:
        step = None if a.step is None else max(1, a.step * b.low)
        return replace(a, low=a.low * b.low, high=a.high * b.low, step=step)
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    rising = a.low >= 0 and b.low >= 0
    return Range(min(ends), max(ends), exact=a.exact and b.exact and rising, step=None)


def _quotient(a: Range, b: Range) -> Range | None:
    if b.low <= 0 or a.low < 0:
        return None
    if not b.single:
        return Range(a.low // b.high, a.high // b.low, exact=False, step=None)
    step = None
    if a.step is not None and (a.step <= b.low or a.step % b.low == 0):
        step = max(1, a.step // b.low)
    return replace(a, low=a.low // b.low, high=a.high // b.low, step=step)


def _remainder(a: Range, b: Range) -> Range | None:
    if b.low <= 0 or a.low < 0:
        return None
    if b.single and a.high < b.low:
        return a
    if a.single and b.single:
        return number(a.low % b.low)
    return Range(0, min(a.high, b.high - 1), exact=False, step=None)


def _masked(a: Range, b: Range) -> Range | None:
    if a.low < 0 or b.low < 0:
        return None
    if a.single and b.single:
        return number(a.low & b.low)
    return Range(0, min(a.high, b.high), exact=False, step=None)


_OPERATIONS = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "/": _quotient,
    "%": _remainder,
    "&": _masked,
}
