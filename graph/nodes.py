"""The nodes: each reads the state, calls a port, and returns what changed. What they call is idempotent."""

from __future__ import annotations

from functools import partial
from random import Random

from langgraph.runtime import Runtime
from langgraph.types import Command, Overwrite, Send, interrupt

from agents.schemas import Briefing, Member, Proposal
from graph.context import RunContext
from graph.development import develop, write
from graph.evolution import gained, survivors, too_many_failures
from graph.examination import examine
from graph.progress import (
    BaselineReady,
    CandidateJudged,
    GenerationClosed,
    GenerationPlanned,
    SoakProgress,
    StageStarted,
)
from graph.results import archive_winner, export_winner, run_status
from graph.soak import soak
from graph.state import EvaluateJob, NodeName, ProposeJob, RunState, Update
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
    context.deadline.set(context.settings.wall_s - state.spent_s - context.stopwatch.running())
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
    return Briefing(
        scene=context.scene(state.generation, state.lessons, hints),
        slots=context.settings.population,
        population=tuple(context.member(id_) for id_ in state.population),
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
    """True once the wall time is spent. The first generation is finished all the same: a run ends with a verdict."""
    return proposal.generation > 0 and context.deadline.passed


def critique(state: RunState, runtime: Run) -> Update:
    """Profile the best, judge the generation, keep what was learnt."""
    context = runtime.context
    generation = [context.member(id_) for id_ in state.evaluated]
    before = [context.member(id_) for id_ in state.population]
    after = survivors([*before, *generation], context.settings.population)
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
    """Keep the fittest, count the generation, and check the budget."""
    context = runtime.context
    generation = [context.member(id_) for id_ in state.evaluated]
    before = [context.member(id_) for id_ in state.population]
    population = survivors([*before, *generation], context.settings.population)
    spent_s = state.spent_s + context.stopwatch.lap()
    spent = context.spent(spent_s, state.first_evaluation)
    stop = state.stop or context.budget.exhausted(state.generation + 1, spent) or ""
    if not stop and context.asker is not None:
        stop = context.asker.exhausted
    if not state.proposals:
        stop = stop or "nothing is left to try"
    runtime.stream_writer(_closed(state, generation, population, stop))
    return {
        "population": [m.candidate.id for m in population],
        "generation": state.generation + 1,
        "gentle": too_many_failures(generation),
        "spent_s": spent_s,
        "stop": stop,
    }


def _closed(
    state: RunState, generation: list[Member], population: list[Member], stop: str
) -> GenerationClosed:
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
    while (best := improving(state.population, refuted, context)) is not None:
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


def improving(population: list[str], refuted: list[str], context: RunContext) -> Member | None:
    """The best survivor that beats the baseline and was not refuted."""
    for candidate_id in population:
        member = context.member(candidate_id)
        timing = member.evaluation.timing
        if candidate_id not in refuted and timing is not None and timing.improved:
            return member
    return None


def review(state: RunState, runtime: Run) -> Update:
    """Wait for a person where the settings ask for one. Nothing happens before the interrupt: it runs again."""
    context = runtime.context
    if not context.settings.review:
        return {}
    answer: dict[str, str] = interrupt({"candidate": state.winner})
    verdict = Verdict(answer["verdict"])
    at = context.now().isoformat(timespec="seconds")
    context.store.put_review(
        Review(candidate_id=state.winner, verdict=verdict, note=answer.get("note", ""), at=at)
    )
    if verdict is Verdict.REJECTED:
        return {"refuted": [*state.refuted, state.winner], "winner": ""}
    return {}


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
    context.store.update_run(context.run.id, status=run_status(state), best_candidate=state.winner or None)
    return {}
