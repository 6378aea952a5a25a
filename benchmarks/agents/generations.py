"""Generations for the critic: recorded verdicts side by side, and what it must be told in order to judge them.

Their ideas are what a coder could have written: none names the flaw.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from agents.endpoint import Role
from agents.schemas import Notes
from benchmarks.agents.situation import Fact
from memory.records import Status

_CRITIC = (Role.CRITIC,)


@dataclass(frozen=True)
class Tried:
    """A candidate: a recorded situation under an idea."""

    recorded: str
    idea: str
    improves_best: bool = False
    """Its parent is the best survivor."""


@dataclass(frozen=True)
class Generation:
    """What a critic is asked about."""

    name: str
    what: str
    """One sentence."""
    tried: tuple[Tried, ...]
    """Candidates 001-000, 001-001 and so on; all recorded on one problem."""
    facts: tuple[Fact, ...]
    survivors: tuple[Tried, ...] = ()
    """Of generation 0, best first: candidates 000-000 and so on."""
    stagnation: int = 0
    notes: Notes = field(default_factory=Notes)


def _of(number: int, status: Status, name: str, words: str) -> Fact:
    """Words that stand in one candidate's line, behind its verdict."""
    return Fact(
        name, rf"001-{number:03d} \(model[^)]*\): {status.value}: (?:(?!- 00\d-\d).)*?{words}", _CRITIC
    )


def _fact(name: str, pattern: str) -> Fact:
    return Fact(name, pattern, _CRITIC)


def _line(generation: int, number: int) -> str:
    """A passed candidate's line up to what it is bound by."""
    return rf"{generation:03d}-{number:03d} \(model[^)]*\): [\d.,]+ µs \(modelled\), [\d.]+x eager"


FAILURES = Generation(
    "failures_with_causes",
    "Five candidates fail, each for a reason of its own, and one passes.",
    (
        Tried("undeclared_name", "Keep the product in a register."),
        Tried("out_of_bounds_tail", "One thread an element, blocks of 128."),
        Tried("uncovered_tail", "Round the grid so that every block is full."),
        Tried("swallowed_nan", "Let fmaxf do the ReLU in one instruction."),
        Tried("argument_count", "Leave the weights to the constant cache."),
        Tried("two_launches", "Scale first, then rectify."),
    ),
    (
        _of(0, Status.COMPILE_ERROR, "the misspelt name", r'identifier "vv" is undefined'),
        _of(1, Status.SANITIZER_ERROR, "the access out of bounds", r"x\[1,?320\]"),
        _of(2, Status.INCORRECT, "the tail", r"only the tail, from flat index 1,?280"),
        _of(2, Status.INCORRECT, "the tail was never written", r"never written"),
        _of(3, Status.INCORRECT, "only NaN", r"NaN is expected in all of them"),
        _of(4, Status.SCHEMA_ERROR, "the arguments", r"takes 3 arguments .* is given 2\b"),
        _of(3, Status.INCORRECT, "which idea failed", r"idea: Let fmaxf do the ReLU"),
        _fact("what passed, and how fast", rf"{_line(1, 5)}, launch-bound, \d+% of the floor"),
        _fact("which idea passed", r"idea: Scale first, then rectify\."),
        _fact("nothing has survived before", r"# Survivors, best first None yet"),
    ),
)

SHARED_MEMORY = Generation(
    "one_cause_in_many",
    "Threads of a block or warp do not agree, in four ways: the lesson is about all of them.",
    (
        Tried("missing_barrier", "A tree in shared memory."),
        Tried("barrier_in_a_branch", "A tree in which idle threads rest."),
        Tried("shuffle_mask", "Shuffles in place of shared memory."),
        Tried("unwritten_shared_memory", "One warp fills the tree."),
    ),
    (
        _of(0, Status.SANITIZER_ERROR, "the race", r"partial\[\d+\].*no barrier between"),
        _of(1, Status.SANITIZER_ERROR, "the barrier not all reach", r"32 of 64 threads"),
        _of(2, Status.SANITIZER_ERROR, "the mask", r"mask 0x7fffffff"),
        _of(3, Status.SANITIZER_ERROR, "what was never written", r"partial\[\d+\]"),
    ),
)

BELOW_FLOOR = Generation(
    "below_the_floor",
    "One candidate is faster than the bytes can move, because it leaves work out; two are honest and slow.",
    (
        Tried("work_left_out", "A warp a row, with a bound that the compiler can see."),
        Tried("uncoalesced_loads", "A thread a row."),
        Tried("low_occupancy", "Stage the rows in shared memory."),
    ),
    (
        _of(0, Status.SUSPICIOUS, "time and floor", r"[\d.]+ µs is below the floor of 15\.62 µs"),
        _of(0, Status.SUSPICIOUS, "its idea", r"idea: A warp a row"),
        _fact("the floor's arithmetic", r"67,174,400 bytes over [\d,]+ GB/s = [\d.]+ µs"),
        _fact("what a time below it means", r"A time below the floor is taken for a cheat"),
        _fact("the honest times", rf"{_line(1, 1)}, memory-bound.*{_line(1, 2)}, occupancy-bound"),
        _fact("why the first is slow", r"001-001 .*32\.0 sectors per load request"),
    ),
)

UNEXPLAINED = Generation(
    "a_gain_without_a_reason",
    "A candidate is nearly three times as fast as the best before, and its idea gives no reason for that.",
    (Tried("bank_conflicts", "Shorter names for the indices.", improves_best=True),),
    (
        _fact("whose child it is", r"001-000 \(model, improve of 000-000\)"),
        _fact("its time and share of the floor", rf"{_line(1, 0)}, \S+-bound, 32% of the floor"),
        _fact("its idea", r"idea: Shorter names for the indices\."),
        _fact("the best before", rf"# Survivors, best first .*{_line(0, 0)}"),
        _fact("the idea before", r"idea: Read along rows, write along columns\."),
        _fact("what it does otherwise", r"001-000 .*16,252,928 bank conflicts.*# Survivors"),
    ),
    survivors=(Tried("uncoalesced_stores", "Read along rows, write along columns."),),
)

STAGNATION = Generation(
    "stagnation",
    "Nothing has been gained, what was tried is known, and the best is far from the floor.",
    (Tried("low_occupancy", "Even larger tiles.", improves_best=True),),
    (
        _fact("whose child it is", r"001-000 \(model, improve of 000-000\)"),
        _fact("how long", r"# Generations in a row without a gain 1\b"),
        _fact(
            "the best, and how far it is",
            rf"# Survivors, best first .*{_line(0, 0)}, memory-bound, 19% of the floor",
        ),
        _fact("what limits the best", r"# Survivors, best first .*32\.0 sectors per load request"),
        _fact("what limits what was tried", rf"{_line(1, 0)}, occupancy-bound"),
        _fact("how far the floor is", r"Floor: 15\.62 µs"),
        _fact("lessons not to repeat", r"# Lessons so far .*Tiles of 64 KiB were slower than 16 KiB"),
        _fact("the operator's hints", r"# Hints of the operator .*Try half as many rows a block"),
    ),
    survivors=(Tried("uncoalesced_loads", "A thread a row."),),
    stagnation=1,
    notes=Notes(
        lessons=("Tiles of 64 KiB were slower than 16 KiB (000-003).",),
        hints=("Try half as many rows a block.",),
    ),
)

GENERATIONS: dict[str, Generation] = {
    generation.name: generation
    for generation in (FAILURES, SHARED_MEMORY, BELOW_FLOOR, UNEXPLAINED, STAGNATION)
}
