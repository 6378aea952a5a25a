"""The critic with a language model: adds lessons to the rules'; the rules' own lessons and stops always stand.

Not here: the words (prompts/critic.md). Invariant: a model's wish to stop counts only after a generation without a
gain, so that one wrong answer cannot end a run that is getting somewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from agents import program_sections, scene_sections
from agents.answers import CritiqueAnswer, parse_object, schema_of
from agents.asking import Asker, Question
from agents.endpoint import Role
from agents.ports import Critic
from agents.prompting import fill
from agents.schemas import Critique, Member, Scene, short_id

BUDGETS = {"problem": 3000, "generation": 5000, "population": 2000, "lessons": 1200, "hints": 800}
"""Tokens at most."""


class ModelCritic:
    """Plays the critic."""

    def __init__(self, asker: Asker, rules: Critic) -> None:
        self._asker = asker
        self._rules = rules

    def critique(
        self, generation: Sequence[Member], population: Sequence[Member], stagnation: int, scene: Scene
    ) -> Critique:
        """See agents.ports.Critic."""
        ruled = self._rules.critique(generation, population, stagnation, scene)
        if ruled.stop or not generation:
            return ruled
        values = {
            **scene_sections.of_scene(scene, "problem", "floor", "lessons", "hints"),
            "generation": program_sections.population_section(generation, len(generation)),
            "population": program_sections.population_section(population),
            "stagnation": str(stagnation),
        }
        prompt, schema = fill(Role.CRITIC, values, BUDGETS), schema_of(CritiqueAnswer)
        question = Question(prompt, f"critique/{scene.generation}", scene.generation, schema=schema)
        answered = self._asker.ask(question, lambda text: parse_object(text, CritiqueAnswer), _decision)
        if answered is None:
            return ruled
        said = answered[0]
        named = {short_id(m.candidate.id): m.candidate.id for m in generation}
        suspected = (named[name] for name in said.suspicious if name in named)
        learnt = (" ".join(lesson.split()) for lesson in said.lessons if lesson.strip())
        stop = said.stop and stagnation > 0
        return Critique(
            lessons=tuple(dict.fromkeys((*ruled.lessons, *learnt))),
            suspicious=tuple(dict.fromkeys((*ruled.suspicious, *suspected))),
            stop=stop,
            reason=f"the critic sees no more to gain: {' '.join(said.reason.split())}" if stop else "",
            by_model=True,
        )


def _decision(answer: CritiqueAnswer) -> str:
    lessons = "; ".join(answer.lessons) or "no new lesson"
    return f"{lessons}{'; would stop: ' + answer.reason if answer.stop else ''}"
