"""The profiler with a language model: reads the verifier's numbers; where it gives no answer, the rules' reading holds.

Not here: measuring (tools.profiling), the words (prompts/profiler.md).
"""

from __future__ import annotations

from agents import program_sections, scene_sections
from agents.answers import Misfit, ReadingAnswer, parse_object, schema_of
from agents.asking import Asker, Question
from agents.endpoint import Role
from agents.planner import BOTTLENECKS
from agents.ports import Profiler
from agents.prompting import fill
from agents.schemas import Member, Reading, Scene, short_id

BUDGETS = {"problem": 3000, "candidate": 9000}
"""Tokens at most."""


class ModelProfiler:
    """Plays the profiler."""

    def __init__(self, asker: Asker, rules: Profiler) -> None:
        self._asker = asker
        self._rules = rules

    def read(self, member: Member, scene: Scene) -> Reading:
        """See agents.ports.Profiler."""
        values = scene_sections.of_scene(scene, "problem", "floor", "gpu")
        values["candidate"] = program_sections.member_section(member)
        # A candidate is read once, however many generations it stays the best.
        slot = f"read/{short_id(member.candidate.id)}"
        prompt = fill(Role.PROFILER, values, BUDGETS)
        schema = schema_of(ReadingAnswer)
        question = Question(prompt, slot, scene.generation, candidate_id=member.candidate.id, schema=schema)
        answered = self._asker.ask(question, _parsed, lambda a: f"{a.bottleneck}: {a.explanation} {a.advice}")
        return answered[0].reading() if answered else self._rules.read(member, scene)


def _parsed(text: str) -> ReadingAnswer:
    answer = parse_object(text, ReadingAnswer)
    if answer.bottleneck not in BOTTLENECKS:
        raise Misfit(f"bottleneck {answer.bottleneck!r} is none of {sorted(BOTTLENECKS)}")
    return answer
