"""The nodes: each reads the state, calls a port, and returns what changed. What they call is idempotent."""

from __future__ import annotations

from functools import partial
from random import Random

from langgraph.runtime import Runtime
from langgraph.types import Command, Overwrite, Send, interrupt

from agents.schemas import Briefing, Member, Proposal, short_id
from graph.context import RunContext
from graph.development import develop, write
from graph.evolution import gained
from graph.examination import examine
from graph.population import killed, step, world_of
from graph.progress import (
    BaselineReady,
    CandidateJudged,
    GenerationClosed,
    GenerationPlanned,
    SoakProgress,
    StageStarted,
)
from graph.results import archive_winner, export_winner, run_status, write_best
from graph.rollback import Course
from graph.shortfall import FELL_BACK
from graph.soak import soak
from graph.state import EvaluateJob, NodeName, ProposeJob, RunState, Update
from graph.strategies import distinct
from memory.events import Review, Verdict

Run = Runtime[RunContext]
LESSONS_KEPT = 20


def baseline(state: RunState, runtime: Run) -> Update:
    """Prepare the case: trials from the user's module, the baselines, and what the archive remembers."""
    context = runtime.context
    runtime.stream_writer(StageStarted("drawing trials from the module and its float64 oracle"))
    case = context.case
    recalled = context.recall()
    scene = context.scene(0, (), ())
    runtime.stream_writer(BaselineReady(case.baselines, scene.floor_us, len(case.trials), len(recalled)))
    context.record("planner", f"{len(recalled)} similar innovations in the archive", state.generation)
    return {"neighbours": recalled, "first_evaluation": context.store.last_evaluation()}


def plan(state: RunState, runtime: Run) -> Update:
    """Ask the planner for a generation's proposals."""
    context = runtime.context
    context.set_deadline(state.spent_s, state.first_evaluation)
    hints = context.store.hints(context.run.id)
    briefing = _briefing(state, hints, context)
    # The generation is part of the seed, so a resumed run draws what it would have drawn.
    proposals = list(context.team.planner.plan(briefing, Random(f"{context.run.seed}/{state.generation}")))
    context.record(
        "planner", f"{len(proposals)} proposals for generation {state.generation}", state.generation
    )
    runtime.stream_writer(GenerationPlanned(state.generation, len(proposals)))
    return {"proposals": proposals, "hints": hints, "evaluated": Overwrite([])}


def _briefing(state: RunState, hints: list[str], context: RunContext) -> Briefing:
    world = world_of(state, context)
    return Briefing(
        scene=context.scene(state.generation, state.lessons, hints),
        slots=context.settings.population,
        population=tuple(context.evolution.population(world)),
        breeding=context.evolution.herd(world),
        tried=context.past.tried(state.generation),
        neighbours=context.past.neighbours(state.neighbours),
        gentle=state.gentle,
        outcomes=context.earlier(state.generation).outcomes,
    )


def propose(state: ProposeJob, runtime: Run) -> Command[str]:
    """One branch: have the coder write the programs, then send them to be judged."""
    context = runtime.context
    written = ["" if _too_late(p, context) else write(p, state, context) or "" for p in state["proposals"]]
    return Command(goto=Send(NodeName.EVALUATE.value, EvaluateJob(job=state, candidate_ids=written)))


def evaluate(state: EvaluateJob, runtime: Run) -> Update:
    """One branch: judge the programs, with repairs."""
    context, job = runtime.context, state["job"]
    judged: list[str] = []
    for proposal, candidate_id in zip(job["proposals"], state["candidate_ids"], strict=True):
        if not candidate_id or _too_late(proposal, context):
            continue
        for v in develop(proposal, job, candidate_id, context):
            runtime.stream_writer(CandidateJudged(v.candidate, v.evaluation, v.reused))
            judged.append(v.candidate.id)
    return {"evaluated": judged}


def _too_late(proposal: Proposal, context: RunContext) -> bool:
    """True once the time is spent. The first generation is finished all the same: a run ends with a verdict."""
    return proposal.generation > 0 and context.deadline.passed


def critique(state: RunState, runtime: Run) -> Update:
    """Profile the best, judge the generation, keep what was learnt."""
    context = runtime.context
    generation = [context.member(id_) for id_ in state.evaluated]
    before = [context.member(id_) for id_ in state.population]
    after = distinct([*before, *generation], context.evolution.fitness.rank)[: context.settings.population]
    stagnation = 0 if gained(before, after) else state.stagnation + 1
    scene = context.scene(state.generation, state.lessons, state.hints)
    if after:
        reading = context.team.profiler.read(after[0], scene)
        if not reading.by_model:  # a model's own words are in the journal
            text = f"{reading.bottleneck}: {reading.explanation}; {reading.advice}"
            context.record("profiler", text, state.generation, candidate_id=after[0].candidate.id)
    found = context.team.critic.critique(generation, after, stagnation, scene)
    for lesson in (*(() if found.by_model else found.lessons), *([found.reason] if found.stop else [])):
        context.record("critic", lesson, state.generation)
    for candidate_id in found.suspicious:
        context.record("critic", "looks too good to be true", state.generation, candidate_id=candidate_id)
    lessons = list(dict.fromkeys([*state.lessons, *found.lessons]))[-LESSONS_KEPT:]
    return {"lessons": lessons, "stagnation": stagnation, "stop": found.reason if found.stop else ""}


def select(state: RunState, runtime: Run) -> Update:
    """Evolve the population, count the generation, and check the budget and the rollback policy."""
    context = runtime.context
    after = step(state, context)
    spent_s = state.spent_s + context.stopwatch.lap()
    stop = state.stop or context.budget.exhausted(
        state.generation + 1, context.spent(spent_s, state.first_evaluation)
    )
    if not stop and context.asker is not None:
        stop = context.asker.exhausted
    if not state.proposals:
        stop = stop or "nothing is left to try"
    fallen_back = False
    if after.course is not Course.ONWARD:
        fallen_back, said = _rolled_back(after.course, state, context)
        context.record("critic", said, state.generation)
        stop = said if after.course is Course.FALL_BACK else stop
    runtime.stream_writer(_closed(state, context, after.population, stop or ""))
    return after.update() | {
        "generation": state.generation + 1,
        "good": state.good or after.course is Course.ONWARD,
        "fallen_back": fallen_back,
        "spent_s": spent_s,
        "stop": stop or "",
    }


def _rolled_back(found: Course, state: RunState, context: RunContext) -> tuple[bool, str]:
    """Whether the result is PyTorch itself now, and what is said of it."""
    if found is Course.ROLL_BACK:
        where = "back to the last good generation" if state.good else "no generation was good yet"
        return False, f"more than a fifth of generation {state.generation} failed: {where}, gentler from here"
    if context.settings.fallback == "best":
        return False, f"{FELL_BACK}, so the search ends with the best of the last good generation"
    return True, f"{FELL_BACK}, so the result is the module as PyTorch runs it"


def _closed(state: RunState, context: RunContext, population: list[Member], stop: str) -> GenerationClosed:
    generation = [context.member(id_) for id_ in state.evaluated]
    passed = sum(m.passed for m in generation)
    timing = population[0].evaluation.timing if population else None
    return GenerationClosed(
        generation=state.generation,
        passed=passed,
        failed=len(generation) - passed,
        best_us=timing.median_us if timing else None,
        lessons=tuple(state.lessons),
        stop=stop,
    )


def verify(state: RunState, runtime: Run) -> Update:
    """Put the best candidates that beat the baseline through the soak, until one passes it."""
    context = runtime.context
    total = context.settings.soak_count
    refuted = list(state.refuted)
    while (best := improving(state, refuted, context)) is not None:
        candidate_id = best.candidate.id
        if context.settings.on_gpu:
            fault = examine(best, context, lambda doing: runtime.stream_writer(StageStarted(doing)))
            if fault is not None:
                refuted.append(candidate_id)
                continue
        outcome = soak(best, context, partial(_tell_soak, runtime, candidate_id, total))
        if outcome.failure is None:
            cut = (
                f" of {total}: its {context.settings.soak_s:.0f} s were over"
                if outcome.trials < total
                else ""
            )
            text = f"passed {outcome.trials} further random trials{cut}"
            context.record("critic", text, state.generation, candidate_id=candidate_id)
            return {
                "winner": candidate_id,
                "refuted": refuted,
                "trials": outcome.trials,
                "full_shape_trials": outcome.full_shape_trials,
            }
        why = outcome.failure.diagnostics[0].message
        context.record("critic", f"refuted in its soak: {why}", state.generation, candidate_id=candidate_id)
        refuted.append(candidate_id)
    return {"winner": "", "refuted": refuted}


def _tell_soak(runtime: Run, candidate_id: str, total: int, done: int) -> None:
    runtime.stream_writer(SoakProgress(candidate_id, done, total))


def improving(state: RunState, refuted: list[str], context: RunContext) -> Member | None:
    """The candidate that a person prefers, or the best survivor that beats the baseline; none that was refuted."""
    out = {*refuted, *killed(context)}
    for candidate_id in [state.preferred, *state.population] if state.preferred else state.population:
        member = context.member(candidate_id)
        timing = member.evaluation.timing
        if candidate_id not in out and timing is not None and timing.improved:
            return member
    return None


def review(state: RunState, runtime: Run) -> Update:
    """Wait for a person where the settings ask for one. Nothing happens before the interrupt: it runs again."""
    context = runtime.context
    if not wants_review(context.member(state.winner), context):
        return {}
    answer: dict[str, str] = interrupt({"candidate": state.winner})
    # The answer is checkpointed with its time, so that a killed review is not written down twice.
    said = Review.model_validate({"candidate_id": state.winner, **answer})
    if said.verdict in (Verdict.REJECTED, Verdict.ROLLED_BACK):
        return set_aside(state, said, context)
    context.store.put_review(said)
    return {}


def set_aside(state: RunState, said: Review, context: RunContext) -> Update:
    """The winner wins no more: another one is verified, or the search goes on with what was said of it."""
    context.store.put_review(said)
    found: Update = {
        "refuted": [id_ for id_ in [*state.refuted, state.winner] if id_ != said.to],
        "winner": "",
        "preferred": said.to,
    }
    if said.note:
        lesson = f"a reviewer set {short_id(state.winner)} aside: {said.note}"
        context.record("critic", lesson, state.generation, candidate_id=state.winner)
        found["lessons"] = [*state.lessons, lesson][-LESSONS_KEPT:]
    if said.verdict is Verdict.REJECTED and said.note and context.asker is not None:
        # Models can make something of the note, so the search goes on where the budget allows it.
        spent = context.spent(state.spent_s, state.first_evaluation)
        found["stop"] = context.budget.exhausted(state.generation, spent) or context.asker.exhausted or ""
        found["stagnation"] = 0
    return found


def wants_review(member: Member, context: RunContext) -> bool:
    """True where the settings ask for a person's word on this winner."""
    timing, settings = member.evaluation.timing, context.settings
    return settings.review and timing is not None and timing.speedup >= settings.review_above


def archive(state: RunState, runtime: Run) -> Update:
    """Remember the winner for similar problems."""
    context = runtime.context
    runtime.stream_writer(StageStarted("storing the winner in the archive"))
    innovation = archive_winner(context.member(state.winner), state, context)
    context.record("critic", f"archived as {innovation[:12]}", state.generation, candidate_id=state.winner)
    return {}


def export(state: RunState, runtime: Run) -> Update:
    """Write the winner as one Python file."""
    path = export_winner(runtime.context.member(state.winner), state, runtime.context)
    return {"export_path": str(path)}


def finish(state: RunState, runtime: Run) -> Update:
    """Close the run's record. Without a winner the result is PyTorch itself."""
    context = runtime.context
    # Before the status: nobody resumes a run that has ended.
    write_best(context.run, context.store, context.settings, winner=state.winner or None)
    context.store.update_run(context.run.id, status=run_status(state), best_candidate=state.winner or None)
    return {}
