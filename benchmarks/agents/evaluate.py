"""Scores the agents' prompts on the recorded situations: python -m benchmarks.agents.evaluate [--json]

For every situation the prompt is rendered that the agent would send, and the facts are looked for that a reader needs
in order to act. No model is asked: this judges prompts. Exit status 1 where a fact is missing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from agents.prompting import Prompt, tokens_of
from benchmarks.agents.asked import prompt_about, prompt_on, told_in
from benchmarks.agents.generations import GENERATIONS, Generation
from benchmarks.agents.record import RECORDED, Recording, read
from benchmarks.agents.situation import Fact, Situation
from benchmarks.agents.situations import SITUATIONS


@dataclass(frozen=True)
class Score:
    """What one prompt says of one situation."""

    situation: str
    status: str
    role: str
    present: tuple[str, ...]
    missing: tuple[str, ...]
    tokens: int
    """Of the whole prompt, about."""
    told_tokens: int
    """Of its sections on verdicts, programs left out."""

    @property
    def facts(self) -> str:
        """Present of all."""
        return f"{len(self.present)}/{len(self.present) + len(self.missing)}"


def scores_of(situation: Situation, recording: Recording) -> list[Score]:
    """A score for each role that is asked in the situation."""
    status = recording.evaluation.status.value
    return [
        _score(
            situation.name,
            status,
            prompt_about(recording, role),
            [f for f in situation.facts if role in f.roles],
        )
        for role in situation.roles
    ]


def score_of(generation: Generation, folder: Path = RECORDED) -> Score:
    """The critic's score on a generation."""
    return _score(generation.name, "a generation", prompt_on(generation, folder), generation.facts)


def _score(name: str, status: str, prompt: Prompt, wanted: Sequence[Fact]) -> Score:
    told = told_in(prompt)
    return Score(
        situation=name,
        status=status,
        role=prompt.role.value,
        present=tuple(fact.name for fact in wanted if fact.told_in(told)),
        missing=tuple(fact.name for fact in wanted if not fact.told_in(told)),
        tokens=tokens_of(prompt.system) + tokens_of(prompt.user),
        told_tokens=tokens_of(told),
    )


def table(scores: list[Score]) -> str:
    """The scores as Markdown, with the total."""
    lines = ["| situation | status | prompt | facts | missing | tokens | on the verdict |", "|" + "---|" * 7]
    for score in scores:
        missing = ", ".join(score.missing) or "-"
        cells = (score.situation, score.status, score.role, score.facts, missing)
        lines.append(f"| {' | '.join(cells)} | {score.tokens:,} | {score.told_tokens:,} |")
    present, missed = sum(len(s.present) for s in scores), sum(len(s.missing) for s in scores)
    situations = len({score.situation for score in scores})
    total = f"{present} of {present + missed} facts in {len(scores)} prompts on {situations} situations."
    return "\n".join((*lines, "", total))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the scores; 1 where a fact is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON array in place of the table")
    parser.add_argument("--recorded", type=Path, default=RECORDED, help="folder of the recordings")
    options = parser.parse_args(arguments)
    scores = [
        score
        for name, found in SITUATIONS.items()
        for score in scores_of(found, read(name, options.recorded))
    ]
    scores += [score_of(generation, options.recorded) for generation in GENERATIONS.values()]
    print(json.dumps([asdict(score) for score in scores], indent=1) if options.json else table(scores))  # noqa: T201
    return int(any(score.missing for score in scores))


if __name__ == "__main__":
    sys.exit(main())
