"""What scripted models say: answers to every role, for relu(x * weight) of `tests.problems`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from tests.agents.model_server import Asked, Reply, Say, Script

GOOD = """
extern "C" __global__ void scaled(const float* __restrict__ x, const float* weight, float* __restrict__ y) {
  const long long total = (long long)ROWS * COLS;
  for (long long i = (long long)blockIdx.x * BLOCK + threadIdx.x; i < total; i += (long long)gridDim.x * BLOCK) {
    const float v = x[i] * weight[i % COLS];
    y[i] = v < 0.0f ? 0.0f : v;
  }
}
"""
PLAN: dict[str, object] = {
    "idea": "One pass with the scale and the ReLU in registers.",
    "techniques": ["fusion", "grid-stride loop"],
    "dims": {"ROWS": "x.shape[0]", "COLS": "x.shape[1]"},
    "tunables": [{"name": "BLOCK", "value": 256, "choices": [64, 128, 256, 512]}],
    "buffers": [{"name": "y", "shape": ["ROWS", "COLS"], "dtype": "f32"}],
    "steps": [
        {
            "kind": "kernel",
            "entry": "scaled",
            "grid": ["ceil_div(ROWS * COLS, BLOCK)", "1", "1"],
            "block": ["BLOCK", "1", "1"],
            "args": ["x", "weight", "y"],
        }
    ],
    "outputs": ["y"],
}


def program_answer(source: str = GOOD, **changes: object) -> str:
    """A coder's answer."""
    plan = json.dumps({**PLAN, **changes}, indent=1)
    return f"The row stays in registers.\n\n```cuda\n{source.strip()}\n```\n\n```json\n{plan}\n```\n"


def plan_answer(asked: Asked) -> str:
    """A planner's answer: one idea for every open slot."""
    slots = [int(n) for n in re.findall(r"^- slot (\d+):", asked.last, re.MULTILINE)] or [1]
    ideas = [
        {
            "slot": n,
            "bottleneck": "memory",
            "idea": f"Idea {n}: read x once and write y once, 16 bytes a lane.",
        }
        for n in slots
    ]
    return "Memory is the limit.\n```json\n" + json.dumps({"proposals": ideas}) + "\n```"


def reading_answer() -> str:
    """A profiler's answer."""
    return (
        '```json\n{"bottleneck": "memory", "explanation": "DRAM takes it all.", "advice": "Read less."}\n```'
    )


def critique_answer() -> str:
    """A critic's answer."""
    return '```json\n{"lessons": ["Wider loads gained 3 %, measured on 001-000."], "stop": false}\n```'


def team(coder: Callable[[Asked], Reply], compiler: Callable[[Asked], Reply] | None = None) -> Script:
    """A script in which everyone does well but, perhaps, the coder and who mends its programs."""

    def script(asked: Asked) -> Reply:
        if asked.role == "planner":
            return Say(plan_answer(asked))
        if asked.role == "profiler":
            return Say(reading_answer())
        if asked.role == "critic":
            return Say(critique_answer())
        if asked.role == "compiler":
            return compiler(asked) if compiler else Say(program_answer())
        return coder(asked)

    return script
