"""Instruction counts of basic blocks, read from the disassembly of an instrumented library.

GCC's coverage pass calls a hook at the start of every basic block; the runner counts the calls by return address.
Here each such address gets the instructions that follow it, sorted into classes that a GPU would also have.
x86 is not SASS: address arithmetic, moves and conversions differ, so totals are estimates (within 50 % as a rule).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tools.simulator.toolchain import run_command

_LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")
_HOOK = "__sanitizer_cov_trace_pc"
_FLOAT_MATH = frozenset("""add sub mul max min ucomi comi round""".split())
_INTEGER = frozenset(
    """add sub imul mul and or xor not neg inc dec shl shr sar sal rol ror bswap popcnt lzcnt tzcnt bsr bsf cmp test
    lea cltq cltd cqto sete setne setg setl cmov andn bextr shlx shrx sarx blsr adc sbb div idiv""".split()
)
# What one call of a mathematics function costs on a GPU in special-function and ordinary instructions.
_MATH_CALL = {
    "sin": (2, 14),
    "cos": (2, 14),
    "tan": (3, 20),
    "exp": (1, 4),
    "exp2": (1, 2),
    "log": (1, 5),
    "log2": (1, 3),
}
_MATH_CALL_OTHER = (2, 20)
# How many instructions into its block a failed bounds check calls its handler.
_CHECK_REACH = 10


@dataclass
class InstructionMix:
    """Instructions by class; of a basic block, or of a launch as warp instructions."""

    fma: float = 0.0
    fp32: float = 0.0
    fp64: float = 0.0
    integer: float = 0.0
    special: float = 0.0
    control: float = 0.0

    def add(self, other: InstructionMix, times: float) -> None:
        """Accumulate another mix `times` over."""
        self.fma += other.fma * times
        self.fp32 += other.fp32 * times
        self.fp64 += other.fp64 * times
        self.integer += other.integer * times
        self.special += other.special * times
        self.control += other.control * times


@lru_cache(maxsize=128)
def block_mixes(library: Path) -> dict[int, InstructionMix]:
    """The mix of each basic block, by the return address of its hook call."""
    output = run_command(
        ["objdump", "-d", "--no-show-raw-insn", str(library)], timeout_s=30, confined=False
    ).stdout
    code = list(_instructions(output))
    checks = _bounds_checks(code)
    blocks: dict[int, InstructionMix] = {}
    current: InstructionMix | None = None
    starts_next = False
    for position, (address, mnemonic, operands) in enumerate(code):
        if starts_next:
            current = blocks.setdefault(address, InstructionMix())
            starts_next = False
        if _HOOK in operands:
            starts_next = mnemonic.startswith(("call", "jmp"))
            current = None
        elif mnemonic.startswith("ret"):
            current = None
        elif current is not None and position not in checks:
            _classify(mnemonic, operands, current)
    return blocks


def _bounds_checks(code: list[tuple[int, str, str]]) -> set[int]:
    """Positions of the compare and jump pairs that the bounds sanitizer added: a GPU kernel has none."""
    places = {address: position for position, (address, _, _) in enumerate(code)}
    found: set[int] = set()
    for position, (_, mnemonic, operands) in enumerate(code):
        target = operands.split(" ")[0]
        if not mnemonic.startswith(("ja", "jae", "jb")) or not re.fullmatch("[0-9a-f]+", target):
            continue
        there = places.get(int(target, 16), len(code))
        if any("__ubsan" in line[2] for line in code[there : there + _CHECK_REACH]):
            found |= {position, position - 1}
    return found


def _instructions(output: str) -> Iterator[tuple[int, str, str]]:
    for line in output.splitlines():
        match = _LINE.match(line)
        if match:
            yield int(match[1], 16), match[2], match[3]


def _classify(mnemonic: str, operands: str, mix: InstructionMix) -> None:
    if mnemonic.startswith("call"):
        _classify_call(operands, mix)
    elif mnemonic.startswith("j"):
        mix.control += 1
    elif mnemonic.startswith("v"):
        _classify_vector(mnemonic[1:], mix)
    elif (mnemonic.rstrip("lqwb") in _INTEGER or mnemonic in _INTEGER) and not _feeds_hook(
        mnemonic, operands
    ):
        mix.integer += 1


def _is_integer(mnemonic: str) -> bool:
    """Arithmetic, with or without the size letter that AT&T syntax appends."""
    return mnemonic in _INTEGER or mnemonic[:-1] in _INTEGER or mnemonic.startswith("cmov")


def _feeds_hook(mnemonic: str, operands: str) -> bool:
    """Address arithmetic into the hook's argument has no counterpart: a GPU load takes base plus offset."""
    if mnemonic.startswith("lea"):
        return "," not in operands.split(")")[0] or operands.endswith(("%rdi", "%edi"))
    return operands.endswith(("%rdi", "%edi")) and mnemonic.startswith("add")


def _classify_call(operands: str, mix: InstructionMix) -> None:
    match = re.search(r"<(\w+)(?:@plt)?", operands)
    name = match[1] if match else ""
    if not match or name.startswith(("__tsan", "__ubsan", "sim_")):
        return
    if name.startswith("_Z"):
        mix.control += 1
        return
    special, ordinary = _MATH_CALL.get(name.removesuffix("f"), _MATH_CALL_OTHER)
    mix.special += special
    if name.endswith("f"):
        mix.fp32 += ordinary
    else:
        mix.fp64 += ordinary


def _classify_vector(name: str, mix: InstructionMix) -> None:
    double = name.endswith(("sd", "pd"))
    base = name[:-2]
    if re.match(r"fn?m(add|sub)", name):
        if double:
            mix.fp64 += 1
        else:
            mix.fma += 1
    elif base in ("div", "sqrt"):
        # A reciprocal or reciprocal root and the Newton steps around it.
        mix.special += 1
        if double:
            mix.fp64 += 8
        else:
            mix.fma += 4
    elif name.startswith("cvt"):
        mix.special += 0.25
        mix.integer += 1
    elif base in _FLOAT_MATH:
        if double:
            mix.fp64 += 1
        else:
            mix.fp32 += 1
