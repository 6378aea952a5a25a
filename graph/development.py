"""One proposal's way from idea to verdict: the coder writes, the pool judges, the compiler agent asks for repairs.

Every effect is keyed by content or by the proposal's id, so running it again after a crash repeats nothing:
a stored verdict is reused and a stored candidate is rewritten identically.
"""

from __future__ import annotations

from dataclasses import dataclass

from agents.schemas import CoderTask, Draft, Member, Proposal
from graph.context import RunContext
from graph.state import ProposeJob
from memory.records import Candidate, Evaluation
from tools.worker import EvaluationJob


@dataclass(frozen=True)
class Verdict:
    """A candidate and its evaluation."""

    candidate: Candidate
    evaluation: Evaluation
    reused: bool
    """The verdict was in the store already."""


def coder_task(proposal: Proposal, job: ProposeJob, context: RunContext) -> CoderTask:
    """What the coder is told about a proposal."""
    # Rules look at no example but the one that they recall.
    wanted = proposal.move.by_model or proposal.innovation is not None
    neighbours = context.past.neighbours(job["neighbours"]) if wanted else ()
    innovation = None
    if proposal.innovation is not None:
        innovation = next((n.innovation for n in neighbours if n.id == proposal.innovation), None)
    return CoderTask(
        proposal=proposal,
        scene=context.scene(proposal.generation, job["lessons"], job["hints"]),
        parents=tuple(context.member(parent) for parent in proposal.parents),
        innovation=innovation,
        neighbours=neighbours,
        known=context.earlier(proposal.generation).known,
        candidate_id=context.candidate_id(proposal.id),
    )


def write(proposal: Proposal, job: ProposeJob, context: RunContext) -> str | None:
    """Have the coder write the program and store it as a candidate; its id, or None where none was written."""
    draft = context.team.coder.write(coder_task(proposal, job, context))
    if draft is None:
        text = f"no program for {proposal.id}: {proposal.idea}"
        context.record("coder", text, proposal.generation)
        return None
    with context.store.together():
        candidate = _candidate(proposal, draft, context, repair=0, parents=proposal.parents)
        if draft.origin.kind != "model":  # a model's own words are in the journal
            text = f"wrote {candidate.origin.kind}: {draft.idea}"
            context.record("coder", text, proposal.generation, candidate_id=candidate.id)
    return candidate.id


def develop(proposal: Proposal, job: ProposeJob, candidate_id: str, context: RunContext) -> list[Verdict]:
    """Judge a candidate, repairing it as often as the compiler agent asks; the last verdict is the proposal's.

    Empty where the run's time was spent before its turn came.
    """
    first = _judge(context.store.candidate(candidate_id), context)
    if first is None:
        return []
    verdicts = [first]
    attempt = 1
    while (request := context.team.compiler.review(verdicts[-1].evaluation, attempt)) is not None:
        last = verdicts[-1].candidate
        draft = Draft(context.program(last.program_hash), last.origin, last.idea, last.techniques)
        mended = context.team.compiler.mend(coder_task(proposal, job, context), draft, request)
        if mended is None or context.deadline.passed:
            break
        context.record(
            "compiler", f"repair {attempt}: {request.instruction}", proposal.generation, candidate_id=last.id
        )
        repaired = _candidate(proposal, mended, context, repair=attempt, parents=(last.id,))
        if (verdict := _judge(repaired, context)) is None:
            break
        verdicts.append(verdict)
        attempt += 1
    return verdicts


def _candidate(
    proposal: Proposal, draft: Draft, context: RunContext, *, repair: int, parents: tuple[str, ...]
) -> Candidate:
    candidate = Candidate(
        id=context.candidate_id(proposal.id, repair),
        run_id=context.run.id,
        program_hash=draft.program.content_hash(),
        generation=proposal.generation,
        island=proposal.island,
        parents=parents,
        origin=draft.origin,
        idea=draft.idea,
        techniques=draft.techniques,
    )
    context.add(candidate, draft.program)
    return candidate


def _judge(candidate: Candidate, context: RunContext) -> Verdict | None:
    """None where the time is spent and the device was not asked yet; the first generation is judged all the same."""
    known = context.verdict(candidate.program_hash)
    if known is not None:
        return Verdict(candidate, known, reused=True)
    case = context.case
    program = context.program(candidate.program_hash)
    job = EvaluationJob(program, case)
    with context.slots:
        if candidate.generation > 0 and context.deadline.passed:  # while others were judged
            return None
        evaluation = context.pool.evaluate(job)
        assert evaluation is not None, "only a soak has no verdict"
        context.deadline.use_device(evaluation.device_s)
    # Another branch may have judged the same program meanwhile; the store keeps the first verdict.
    kept = context.store.put_evaluation(evaluation)
    context.members.put(candidate.id, Member(candidate, program, kept))
    return Verdict(candidate, kept, reused=False)
