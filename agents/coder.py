"""The coder with a language model: writes, improves, crosses, ports and simplifies programs; rules do their own moves.

Here: the question for each move, and the second try where an answer is nothing new. Not here: the words
(prompts/coder.md), mending (agents.compiler).
"""

from __future__ import annotations

from agents import program_sections, scene_sections
from agents.answers import ProgramAnswer, parse_program
from agents.asking import Asker, Question
from agents.endpoint import Role
from agents.novelty import fingerprint
from agents.ports import Coder
from agents.prompting import fill, material
from agents.schemas import CoderTask, Draft, short_id
from memory.records import Origin

BUDGETS = {
    "problem": 4000, "neighbours": 9000, "parents": 12000, "failures": 1500, "lessons": 1200, "hints": 800,
}  # fmt: skip
"""Tokens at most."""


class ModelCoder:
    """Plays the coder: a model for the moves that need one, rules for the rest."""

    def __init__(self, asker: Asker, rules: Coder) -> None:
        self._asker = asker
        self._rules = rules

    def write(self, task: CoderTask) -> Draft | None:
        """See agents.ports.Coder."""
        if not task.proposal.move.by_model:
            return self._rules.write(task)
        question = _question(task)
        answered = self._asker.ask(question, parse_program, _decision)
        if answered is None:
            return None
        answer, so_far = answered
        twin = task.known.get(fingerprint(answer.program))
        if twin is not None:
            remark = (
                f"This is candidate {short_id(twin)} again, apart from names, layout and the values of "
                "tunables, and it has been judged. Write a program that works in another way."
            )
            answered = self._asker.ask(question, parse_program, _decision, after=so_far, remark=remark)
            if answered is None or fingerprint(answered[0].program) in task.known:
                return None
            answer, so_far = answered
        return drafted(answer, so_far.model, question, task.proposal.move.value)


def drafted(answer: ProgramAnswer, model: str, question: Question, move: str) -> Draft:
    """An answer as a draft that says who made it how."""
    origin = Origin(
        kind="model", agent="model", detail=model, prompt_hash=question.prompt.template_hash, move=move
    )
    return Draft(answer.program, origin, " ".join(answer.idea.split()), answer.techniques)


def _question(task: CoderTask) -> Question:
    scene, proposal = task.scene, task.proposal
    values = {
        **scene_sections.of_scene(scene, "problem", "floor", "gpu", "failures", "lessons", "hints"),
        "neighbours": program_sections.neighbours_section(task.neighbours),
        "parents": _parents(task),
        "task": f"Move: {proposal.move.value}.\nBottleneck: {proposal.bottleneck}.\n"
        + material("idea", proposal.idea),
    }
    prompt = fill(Role.CODER, values, BUDGETS)
    slot = f"write/{proposal.id}"
    return Question(
        prompt,
        slot,
        scene.generation,
        candidate_id=task.candidate_id,
        move=proposal.move.value,
        model=proposal.model,
    )


def _parents(task: CoderTask) -> str:
    shown = [program_sections.member_section(parent) for parent in task.parents]
    if task.innovation is not None:
        found = task.innovation
        shown.append(f"The winner to port, {found.speedup:.2f}x over eager on {found.arch}:")
        shown.append(program_sections.program_text("the winner to port", found.program))
    return "\n\n".join(shown) or "None: this move starts from the problem."


def _decision(answer: ProgramAnswer) -> str:
    program = answer.program
    kernels = f"{len(program.entries)} kernel{'s' if len(program.entries) != 1 else ''}"
    return f"wrote {kernels} with {len(program.tunables)} tunables: {answer.idea}"
