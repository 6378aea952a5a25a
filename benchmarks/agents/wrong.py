"""Situations in which values are wrong: which ones, and by what, says where to look."""

from __future__ import annotations

from benchmarks.agents import kernels, problems
from benchmarks.agents.kernels import replaced
from benchmarks.agents.scaled_relu import KERNEL, scaled_relu_program, scaled_relu_step
from benchmarks.agents.situation import Fact, Situation
from memory.records import Problem, Program, Status

_NUMBER = r"-?[\d.,]+(?:e[+-]?\d+)?"


def _wrong(
    name: str, flaw: str, problem: Problem, program: Program, worst: str, inputs: str, *facts: Fact
) -> Situation:
    """worst: pattern of the worst element; inputs: the distribution that showed it."""
    always = (
        Fact("worst element with its index", worst),
        Fact("expected and got", rf"is (?:{_NUMBER}|nan|-?inf), expected (?:{_NUMBER}|nan|-?inf)"),
        Fact("inputs", rf"\({inputs} inputs\)"),
        Fact("error and what is allowed", rf"error (?:{_NUMBER}|not a number), allowed {_NUMBER}"),
        Fact("how many", r"[\d,]+ of [\d,]+ elements (?:is|are) wrong"),
    )
    return Situation(name, flaw, problem, program, Status.INCORRECT, "wrong_values", (*always, *facts))


_RELU = problems.scaled_relu()
_MEAN = problems.row_mean()

SITUATIONS = (
    _wrong(
        "uncovered_tail",
        "The grid is rounded down, so that no thread has the last elements.",
        _RELU,
        scaled_relu_program(steps=(scaled_relu_step(grid=("ROWS * COLS // BLOCK", "1", "1")),)),
        r"relu\[32, 0\]",
        "normal",
        Fact("only the last 40", r"40 of 1,320 elements are wrong: only the tail, from flat index 1,280"),
        Fact("never written", "never written"),
    ),
    _wrong(
        "one_row_in_32",
        "The last of a block's 32 warps does nothing.",
        problems.scaled_relu(96, 40),
        kernels.relu_by_warps(replaced(kernels.RELU_BY_WARPS, "row >= ROWS", "row >= ROWS || warp == 31")),
        r"relu\[31, 0\]",
        "normal",
        Fact("one row in 32", r"whole rows, one row in 32, from 31"),
        Fact("never written", "never written"),
    ),
    _wrong(
        "one_lane_of_a_warp",
        "The first lane of every warp does not apply its weight.",
        _RELU,
        scaled_relu_program(
            replaced(KERNEL, "x[i] * weight[i % COLS]", "x[i] * (threadIdx.x % 32 ? weight[i % COLS] : 1.0f)")
        ),
        r"relu\[\d+, \d+\]",
        "normal",
        Fact("one element in 32", r"one flat index in 32, from 0"),
    ),
    _wrong(
        "last_columns",
        "A loop over columns ends before the last, partly filled step.",
        _RELU,
        kernels.relu_by_warps(replaced(kernels.RELU_BY_WARPS, "col < COLS;", "col < COLS / 32 * 32;")),
        r"relu\[0, 32\]",
        "normal",
        Fact("only the last 8 columns", r"only the last 8 of 40 columns, from 32"),
        Fact("never written", "never written"),
    ),
    _wrong(
        "wrong_count",
        "The mean divides by the number of threads, not of columns.",
        _MEAN,
        kernels.mean(replaced(kernels.MEAN_BY_BLOCK, "partial[0] / COLS", "partial[0] / BLOCK")),
        r"mean\[\d+\]",
        "normal",
        Fact("every element", "every element"),
        Fact("the factor", r"each is 1\.5 times what is expected"),
    ),
    _wrong(
        "wrong_sign",
        "The result has the wrong sign.",
        _MEAN,
        kernels.mean(replaced(kernels.MEAN_BY_BLOCK, "partial[0] / COLS", "-partial[0] / COLS")),
        r"mean\[\d+\]",
        "normal",
        Fact("every element", "every element"),
        Fact("the sign", "each has the wrong sign"),
    ),
    _wrong(
        "lost_part_of_a_warp",
        "The last step of a warp's reduction is left out.",
        _MEAN,
        kernels.mean_by_warp(replaced(kernels.MEAN_BY_WARP, "offset > 0", "offset > 1")),
        r"mean\[\d+\]",
        "normal",
        Fact("every element", "every element"),
    ),
    _wrong(
        "swallowed_nan",
        "fmaxf gives the number where the other is NaN.",
        _RELU,
        scaled_relu_program(replaced(KERNEL, "y[i] = v < 0.0f ? 0.0f : v;", "y[i] = fmaxf(v, 0.0f);")),
        r"relu\[\d+, \d+\]",
        "special",
        Fact("only where NaN is expected", r"NaN is expected in all of them"),
        Fact("what passed before", r"passed.*normal.*large"),
    ),
    _wrong(
        "overflowing_exponential",
        "A softmax that does not subtract the row's maximum.",
        problems.softmax(),
        kernels.softmax(kernels.SOFTMAX.replace("expf(row[col] - top)", "expf(row[col])")),
        r"softmax\[\d+, \d+\]",
        "large",
        Fact("computed, not unwritten", r"all of them NaN, computed: an overflow"),
        Fact("what passed before", r"passed.*normal.*tiny"),
    ),
    _wrong(
        "half_precision_sum",
        "A sum of half-precision numbers is accumulated in half precision.",
        problems.half_sum(),
        kernels.half_sum(
            replaced(
                replaced(kernels.HALF_SUM, "float sum = 0.0f;", "__half sum = __float2half(0.0f);"),
                "sum += __half2float(x[blockIdx.x * COLS + col]);",
                "sum = __hadd(sum, x[blockIdx.x * COLS + col]);",
            ).replace(
                "sum += __shfl_down_sync(0xffffffffu, sum, offset)",
                "sum = __hadd(sum, __shfl_down_sync(0xffffffffu, sum, offset))",
            ).replace("__float2half(sum)", "sum")
        ),
        r"sum\[\d+\]",
        "normal",
                Fact("only rounding", r"small errors: rounding"),
    ),
    Situation(
        "fixed_size",
        "The number of columns is written into the kernel, and trials have another.",
        problems.row_mean(1024, 1024),
        kernels.mean(kernels.MEAN_BY_BLOCK.replace("COLS", "1024")),
        Status.SANITIZER_ERROR,
        "out_of_bounds",
        (
            Fact("buffer and index", r"x\[6,?144\]"),
            Fact("size of the buffer", r"of 24,?576 bytes"),
            Fact("line", r"\(line 5\)"),
            Fact("ran at the reduced shapes", r"reduced shapes: x \[64, 96\]"),
        ),
        twin=_MEAN,
    ),
)  # fmt: skip
