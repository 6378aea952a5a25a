"""A step of an agent explained: why it failed and what happened next, in sentences, from the steps that followed.

Not here: the steps themselves (memory.store_traces) and how they are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

from agents.asking import NO_ANSWER
from agents.schemas import proposal_of, short_id
from graph.summary import policy_hash
from memory.events import EvaluatedCandidate
from memory.records import Run, Status
from memory.store import Store
from memory.store_traces import NO_PROGRAM, Step

_QUOTED = 300
"""Characters of somebody's words in a sentence."""
_REPAIR = "repair "
"""How the compiler's decisions begin that ask for a repair."""
_GOES_ON = {
    "planner": "The rules planned instead",
    "profiler": "The rules read the profile instead",
    "critic": "The rules judged the generation instead",
}


@dataclass(frozen=True)
class Explanation:
    """Of a failed step."""

    why: str
    """A sentence."""
    then: str
    """What happened next; a sentence."""
    made: EvaluatedCandidate | None
    """The candidate that it made, where the verifier refused it: its diagnostics say more."""


def explain(step: Step, run: Run, store: Store) -> Explanation | None:
    """None for a step that did not fail."""
    if not step.failed:
        return None
    if step.candidate_failed and step.failure is None and step.candidate_id is not None:
        return _refused(step, step.candidate_id, run, store)
    if step.failure is None:
        what = step.decision.removeprefix(NO_PROGRAM).partition(":")[0]
        return Explanation(
            f"No program was written for proposal {what}.",
            "The proposal was dropped, and the generation went on with the others.",
            None,
        )
    answered = step.decision != NO_ANSWER
    why = (
        f"{step.model or step.role} {'gave an answer that does not fit' if answered else 'gave no answer'}: "
    )
    return Explanation(why + _quoted(step.failure), _after_silence(step, run, store), None)


def _after_silence(step: Step, run: Run, store: Store) -> str:
    """What came after a call of a model that gave nothing."""
    dropped = f"{NO_PROGRAM}{_proposal(step, run)}:" if step.candidate_id is not None else ""
    later = store.steps_after(run.id, step, or_saying=dropped)
    calls = [s for s in later if s.agent == "model" and s.role == step.role]
    head = ""
    if step.decision.endswith("asked again"):
        good = next((s for s in calls if s.failure is None), None)
        if good is not None:
            return f"{good.model} was asked again, and answered: {_quoted(_short(good.decision, run))}"
        times = f"{len(calls)} times" if len(calls) > 1 else "once more"
        head = f"{step.model} was asked {times}, without success. " if calls else ""
    return head + _without_model(step, later, run)


def _without_model(step: Step, later: list[Step], run: Run) -> str:
    """How the run went on without an answer."""
    if step.role == "coder":
        if any(s.decision.startswith(NO_PROGRAM) for s in later):
            return "No program was written: the proposal was dropped, and the generation went on with the others."
        return "Nothing more is known of this proposal: the run may have been stopped here."
    if step.role == "compiler":
        return "The refused program was not mended, and stays refused."
    ruled = next((s for s in later if s.agent == "rules" and s.role == step.role), None)
    head = _GOES_ON.get(step.role, "The rules went on instead")
    return f"{head}: {_quoted(_short(ruled.decision, run))}" if ruled is not None else f"{head}."


def _refused(step: Step, candidate_id: str, run: Run, store: Store) -> Explanation:
    """Of a step whose program the verifier refused."""
    judged_under = policy_hash(run)
    made = store.evaluated_one(run.id, candidate_id, policy_hash=judged_under)
    verdict = made.evaluation if made else None
    if verdict is None or verdict.status is Status.PASSED:
        return Explanation(
            "Its program was refused under another policy.", "Nothing more is known of it.", None
        )
    first = verdict.diagnostics[0]
    status = verdict.status.value.replace("_", " ")
    why = f"Its program was refused ({status}, stage {verdict.stage.value}): {_quoted(first.message)}"
    return Explanation(why, _after_refusal(step, candidate_id, run, store), made)


def _after_refusal(step: Step, candidate_id: str, run: Run, store: Store) -> str:
    later = store.steps_after(run.id, step)
    asked = [s for s in later if s.role == "compiler" and s.decision.startswith(_REPAIR)]
    silent = [s for s in later if s.role == "compiler" and s.failure is not None]
    if not asked:
        if silent:
            return f"A repair was asked of {silent[-1].model}, which gave none: {_quoted(silent[-1].failure or '')}"
        return "No repair was made of it, and it left the search."
    attempts = len(asked)
    base = proposal_of(candidate_id)
    mended = store.evaluated_one(run.id, f"{base}-r{attempts}", policy_hash=policy_hash(run))
    head = f"{attempts} repair{'s were' if attempts > 1 else ' was'} made"
    instruction = _quoted(asked[-1].decision.partition(": ")[2]).rstrip(".")
    if mended is None or mended.evaluation is None:
        return f"{head} ({instruction}); the last one has no verdict."
    name, status = short_id(mended.candidate.id), mended.evaluation.status
    if status is Status.PASSED:
        return f"{head} ({instruction}), and {name} passed."
    return f"{head} ({instruction}), and {name} was refused as well ({status.value.replace('_', ' ')})."


def _proposal(step: Step, run: Run) -> str:
    return proposal_of((step.candidate_id or "").removeprefix(f"{run.id}-"))


def _short(text: str, run: Run) -> str:
    return text.replace(f"{run.id}-", "")


def _quoted(text: str) -> str:
    joined = " ".join(text.split())
    cut = joined if len(joined) <= _QUOTED else f"{joined[:_QUOTED]}…"
    return cut if cut.endswith((".", "!", "?", "…")) else f"{cut}."
