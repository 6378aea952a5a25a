"""Which models play which role, and how they are reached: parsed from settings, used by agents.llm.

Here: plain values and their text forms. Not here: any network (agents.llm), nor reading the environment
(graph.settings). The key never appears in a repr.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import TypeVar

from memory.errors import BadInput

T = TypeVar("T")

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
"""Reasoning efforts that OpenAI-compatible endpoints know; which of them a model takes is the endpoint's to say."""


class Role(StrEnum):
    """The five agents, and the one that reads free chat."""

    PLANNER = "planner"
    CODER = "coder"
    COMPILER = "compiler"
    PROFILER = "profiler"
    CRITIC = "critic"
    INTERPRETER = "interpreter"


@dataclass(frozen=True)
class ModelChoice:
    """A model of an ensemble."""

    name: str
    weight: float
    """Share of the draws, relative to the other weights."""


@dataclass(frozen=True)
class Casting:
    """How a role is played."""

    models: tuple[ModelChoice, ...]
    temperature: float | None = None
    """None leaves it to the endpoint; reasoning models often refuse any other."""
    effort: str | None = None
    """Reasoning effort, one of EFFORTS; None leaves it to the endpoint."""

    def order(self, rng: Random) -> list[str]:
        """The models' names, drawn one after another by weight."""
        left = list(self.models)
        drawn: list[str] = []
        while left:
            (found,) = rng.choices(left, [m.weight for m in left])
            left.remove(found)
            drawn.append(found.name)
        return drawn


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI-compatible server and how it may be used."""

    casting: Mapping[Role, Casting]
    """Every role has one."""
    api_key: str = field(repr=False)
    base_url: str | None = None
    """None is OpenAI's own."""
    timeout_s: float = 180.0
    """For one request, answer included."""
    retries: int = 4
    """Further requests after one that may succeed later."""
    retry_after_cap_s: float = 60.0
    """A server that asks for a longer pause is treated as out of reach."""
    requests_per_minute: float | None = None
    parallel: int = 8
    """Requests under way at once."""
    max_output_tokens: int = 16_384
    tracing: bool = False
    """Send traces to the vendor's service that langchain knows; only where the operator asks for it."""

    def model_names(self) -> tuple[str, ...]:
        """Every model that may be asked, each once."""
        named = (choice.name for role in Role for choice in self.casting[role].models)
        return tuple(dict.fromkeys(named))


def parse_models(text: str) -> tuple[ModelChoice, ...]:
    """An ensemble such as `gpt-5:0.6,o4-mini:0.4`; a model without a weight has weight 1.

    Only a last part that is a number is a weight, so `llama3:8b` is a model; write `name:2:1` where a tag is a number.
    Raises BadInput naming the part that is wrong.
    """
    choices: list[ModelChoice] = []
    for part in (part.strip() for part in text.split(",")):
        name, _, tail = part.rpartition(":")
        weight = _number(tail) if name else None
        choice = ModelChoice(part, 1.0) if weight is None else ModelChoice(name.strip(), weight)
        whole = choice.name and choice.name == choice.name.strip(":")
        if not whole or not 0 < choice.weight < math.inf:
            raise BadInput(
                f"models {text!r}: {part!r} is no model with a weight above 0; write name or name:weight, "
                "separated by commas"
            )
        choices.append(choice)
    return tuple(choices)


def by_role(text: str, value_of: Callable[[str], T]) -> dict[Role, T]:
    """A value for every role, such as `0.7,compiler:0`: the part without a role holds for the roles not named.

    Roles that nothing is said about are absent. Raises BadInput for an unknown role; what `value_of` raises passes.
    """
    named: dict[Role, T] = {}
    general: list[T] = []
    for part in (part.strip() for part in text.split(",")):
        head, colon, tail = part.partition(":")
        if not colon:
            general.append(value_of(part))
        elif head in Role._value2member_map_:
            named[Role(head)] = value_of(tail)
        else:
            raise BadInput(f"{part!r} in {text!r} names no role; roles: {', '.join(Role)}")
    if len(general) > 1:
        raise BadInput(f"{text!r} has {len(general)} values without a role; one holds for all others")
    return {role: general[0] for role in Role if general} | named


def temperature_of(text: str) -> float:
    """Raises BadInput outside of 0 to 2."""
    value = _number(text)
    if value is None or not 0 <= value <= 2:
        raise BadInput(f"temperature {text!r} is not a number from 0 to 2")
    return value


def effort_of(text: str) -> str:
    """Raises BadInput for an unknown reasoning effort."""
    if text not in EFFORTS:
        raise BadInput(f"reasoning effort {text!r} is none of {', '.join(EFFORTS)}")
    return text


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
