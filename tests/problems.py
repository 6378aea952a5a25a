"""The hand-made problem of the benchmarks, for every test that needs one without a capture."""

from benchmarks.agents.scaled_relu import (
    KERNEL,
    module_text,
    scaled_relu_problem,
    scaled_relu_program,
    scaled_relu_step,
)

__all__ = [
    "KERNEL",
    "module_text",
    "scaled_relu_problem",
    "scaled_relu_program",
    "scaled_relu_step",
]
