"""The planner with a language model: rules fill most slots, a model has ideas for the others.

Here: what a model is asked and what it made of its slots. Not here: which slots go to models and for which move
(agents.slots), the words (prompts/planner.md), recipes and tuning (agents.rules.planner).
Invariant: generation 0 is the rules' alone, and whatever the model leaves empty they fill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from agents import program_sections, scene_sections
from agents.answers import Misfit, PlanAnswer, PlannedSlot, parse_object, schema_of
from agents.asking import Asker, Question
from agents.endpoint import ModelChoice, Role
from agents.ports import Planner
from agents.prompting import fill
from agents.schemas import Briefing, Member, Move, Proposal, short_id
from agents.slots import Slot, described, model_slots, open_slot

BOTTLENECKS = frozenset(("memory", "compute", "latency", "launch", "occupancy", "library"))
BUDGETS = {
    "problem": 4000,
    "population": 2500,
    "neighbours": 6000,
    "failures": 1500,
    "lessons": 1200,
    "hints": 800,
}
"""Tokens at most."""


class ModelPlanner:
    """Plays the planner by a model's ideas and the rules' moves."""

    def __init__(self, asker: Asker, rules: Planner, coders: Sequence[ModelChoice]) -> None:
        self._asker = asker
        self._rules = rules
        self._coders = coders

    def plan(self, briefing: Briefing, rng: Random) -> Sequence[Proposal]:
        """See agents.ports.Planner."""
        if briefing.scene.generation == 0:
            return self._rules.plan(briefing, rng)
        # After too many failures the rules take small steps; only where they have none left, models go on.
        if briefing.gentle and (ruled := self._rules.plan(briefing, rng)):
            return ruled
        made = self._by_model(briefing, rng)
        # The rules get every slot that is left; where they have nothing more to try, fewer slots are filled.
        left = briefing.slots - len(made)
        ruled = self._rules.plan(replace(briefing, slots=left), rng) if left else ()
        numbered = enumerate((*made, *ruled))
        return [p.model_copy(update={"id": f"{briefing.scene.generation:03d}-{i:03d}"}) for i, p in numbered]

    def _by_model(self, briefing: Briefing, rng: Random) -> list[Proposal]:
        coders = [choice for choice in self._coders if self._asker.available(choice.name)]
        if not coders or self._asker.exhausted:
            return []
        count = model_slots(briefing.slots)
        slots = [open_slot(number, briefing, coders, rng) for number in range(1, count + 1)]
        listed = {short_id(m.candidate.id): m for m in briefing.population}
        answered = self._asker.ask(
            _question(briefing, slots),
            lambda text: _checked(parse_object(text, PlanAnswer), slots, listed),
            lambda plan: f"{len(plan.proposals)} ideas: " + "; ".join(p.idea for p in plan.proposals),
        )
        if answered is None:
            return []
        by_number = {slot.number: slot for slot in slots}
        return [_proposal(p, by_number[p.slot], listed, briefing) for p in answered[0].proposals]


def _question(briefing: Briefing, slots: Sequence[Slot]) -> Question:
    scene = briefing.scene
    values = {
        **scene_sections.of_scene(scene, "problem", "floor", "gpu", "failures", "lessons", "hints"),
        "population": program_sections.population_section(briefing.population),
        "neighbours": program_sections.neighbours_section(briefing.neighbours),
        "slots": "\n".join(described(slot) for slot in slots),
    }
    prompt = fill(Role.PLANNER, values, BUDGETS)
    return Question(prompt, f"plan/{scene.generation}", scene.generation, schema=schema_of(PlanAnswer))


def _checked(answer: PlanAnswer, slots: Sequence[Slot], listed: dict[str, Member]) -> PlanAnswer:
    """Raises Misfit for slots, bottlenecks or parents that there are not."""
    known = {slot.number for slot in slots}
    seen: set[int] = set()
    for planned in answer.proposals:
        if planned.slot not in known or planned.slot in seen:
            raise Misfit(f"slot {planned.slot} is not open; fill each of {sorted(known)} once")
        if planned.bottleneck not in BOTTLENECKS:
            raise Misfit(
                f"slot {planned.slot}: bottleneck {planned.bottleneck!r} is none of {sorted(BOTTLENECKS)}"
            )
        for parent in planned.parents:
            if parent not in listed:
                raise Misfit(f"slot {planned.slot}: no candidate {parent!r}; there are {sorted(listed)}")
        seen.add(planned.slot)
    return answer


def _proposal(planned: PlannedSlot, slot: Slot, listed: dict[str, Member], briefing: Briefing) -> Proposal:
    parents = [m.candidate.id for m in slot.parents]
    wanted = [listed[name].candidate.id for name in dict.fromkeys(planned.parents)]
    # A move keeps its number of parents: improving needs one, a crossover two or three, a new program none.
    if len(wanted) == len(parents) or (slot.arm.move is Move.COMBINE and len(wanted) > 1):
        parents = wanted
    return Proposal(
        id="",
        generation=briefing.scene.generation,
        move=slot.arm.move,
        idea=" ".join(planned.idea.split()),
        bottleneck=planned.bottleneck,
        parents=tuple(parents),
        innovation=slot.innovation,
        model=slot.arm.model,
        island=slot.parents[0].candidate.island if slot.parents else slot.number % briefing.breeding.islands,
    )
