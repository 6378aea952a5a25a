"""The compiler with a language model: mends what a model wrote and the verifier refused.

Here: the question about one refusal. Not here: which refusals are worth a repair, and how many (the rules decide),
nor the words (prompts/compiler.md).
"""

from __future__ import annotations

from agents import program_sections, scene_sections
from agents.answers import ProgramAnswer, parse_program
from agents.asking import Asker, Question
from agents.coder import drafted
from agents.endpoint import Role
from agents.novelty import fingerprint
from agents.ports import Compiler
from agents.prompting import fill
from agents.schemas import REPAIR, CoderTask, Draft, RepairRequest
from memory.records import Evaluation, Program

BUDGETS = {"problem": 4000, "program": 14000, "refusal": 3000, "lessons": 1200}
"""Tokens at most."""


class ModelCompiler:
    """Plays the compiler: a model mends models' programs, rules mend their own."""

    def __init__(self, asker: Asker, rules: Compiler) -> None:
        self._asker = asker
        self._rules = rules

    def review(self, evaluation: Evaluation, attempt: int) -> RepairRequest | None:
        """See agents.ports.Compiler."""
        return self._rules.review(evaluation, attempt)

    def mend(self, task: CoderTask, draft: Draft, request: RepairRequest) -> Draft | None:
        """See agents.ports.Compiler."""
        if draft.origin.kind != "model":
            return self._rules.mend(task, draft, request)
        question = _question(task, draft, request)
        answered = self._asker.ask(question, parse_program, _decision)
        if answered is None:
            return None
        answer, so_far = answered
        if _same(answer.program, draft.program):
            # It would get the same verdict.
            return None
        return drafted(answer, so_far.model, question, REPAIR)


def _same(first: Program, second: Program) -> bool:
    """The same program at the same point of its tunables: another point may need less of what ran out."""
    values = [[t.value for t in program.tunables] for program in (first, second)]
    return values[0] == values[1] and fingerprint(first) == fingerprint(second)


def _question(task: CoderTask, draft: Draft, request: RepairRequest) -> Question:
    scene = task.scene
    values = {
        **scene_sections.of_scene(scene, "problem", "gpu", "lessons"),
        "program": program_sections.program_text("the refused program", draft.program),
        "refusal": program_sections.refusal_section(request, draft.program, scene),
    }
    prompt = fill(Role.COMPILER, values, BUDGETS)
    slot = f"mend/{task.proposal.id}/{request.attempt}"
    return Question(prompt, slot, scene.generation, candidate_id=task.candidate_id)


def _decision(answer: ProgramAnswer) -> str:
    return f"mended: {answer.idea}"
