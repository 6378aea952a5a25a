"""Starts and resumes runs: everything between a command and the graph. Not here: what is printed (graph.cli)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from graph.build import (
    Graph,
    build_graph,
    checkpoints_path,
    open_archive,
    open_context,
    open_saver,
    store_path,
)
from graph.checkpoints import prune
from graph.context import RunContext
from graph.nodes import set_aside
from graph.oversight import earlier_winner
from graph.pausing import telling_how_to_go_on, working
from graph.progress import GenerationClosed, Progress, StageStarted
from graph.results import export_path, export_winner, program_path, write_best
from graph.seeds import with_checked_seeds
from graph.settings import Settings, settings_from_run, uses_models
from graph.shortfall import ENDED
from graph.state import NodeName, RunState
from graph.summary import IN_REVIEW, INTERRUPTED, Summary, summarise_run
from memory.archive import Archive
from memory.errors import BadInput
from memory.events import OPERATOR, AgentEvent, Review, Verdict
from memory.lock import RunLock
from memory.records import Run, RunStatus, Target
from memory.store import Store
from tools.pool import EvaluationPool
from tools.problem import Captured, Watch, capture

Listener = Callable[[Progress], None]
CAPTURING = "capturing the module"


@dataclass(frozen=True)
class Outcome:
    """How a run ended, or that it waits for a person."""

    summary: Summary
    waits_for_review: str | None = None
    """The candidate to be reviewed."""


def start_run(target: Target, settings: Settings, store: Store, tell: Listener) -> Run:
    """Capture the target and record a run. A run exists only for a problem that could be captured.

    Raises: BadInput with the file, the line where known, and the remedy.
    """
    tell(StageStarted(CAPTURING))
    return record_run(capture_target(target, settings), settings, store)


def capture_target(target: Target, settings: Settings, *, watch: Watch | None = None) -> Captured:
    """Capture as the settings say; `watch` is given the child that does it, which another thread may cancel.

    Raises: BadInput with the file, the line where known, and the remedy.
    """
    limit, deadline_s = settings.verify_elements, settings.capture_deadline_s
    return capture(target, deadline_s=deadline_s, reduce_above=limit, watch=watch)


def record_run(
    captured: Captured, settings: Settings, store: Store, *, archive: Archive | None = None
) -> Run:
    """A new run of a captured problem, in the store. archive: an open one to look for the run's seeds in.

    Raises: BadInput naming a seed that the archive lacks or that is no valid program for the problem.
    """
    if settings.seed_ids:
        with nullcontext(archive) if archive is not None else open_archive(settings) as opened:
            settings = with_checked_seeds(settings, captured, opened)
    problem_hash = store.put_pair(captured.problem, captured.reduced)
    created = datetime.now(UTC)
    kept = settings.model_copy(update={"export_dir": settings.export_dir.resolve()})
    run = Run(
        id=_run_id(captured.problem.name, created, problem_hash),
        problem_hash=problem_hash,
        device=settings.device_spec.name,
        settings=kept.as_text(),
        seed=settings.seed,
        created=created.isoformat(),
    )
    store.put_run(run)
    return run


def _run_id(name: str, created: datetime, problem_hash: str) -> str:
    """Readable, sortable by time, and unique: `layernorm_gelu-20261202-091530-3fa9`."""
    slug = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:40] or "module"
    tail = hashlib.sha256(f"{problem_hash}{created.isoformat()}".encode()).hexdigest()[:4]
    return f"{slug}-{created:%Y%m%d-%H%M%S}-{tail}"


def continue_run(
    run: Run,
    store: Store,
    settings: Settings,
    tell: Listener,
    *,
    answer: dict[str, str] | None = None,
    pool: EvaluationPool | None = None,
) -> Outcome:
    """Run the graph from wherever the run stands to its end, or to the next review.

    answer: a person's verdict, where the run waits for one. pool: an open one to use and leave open.
    Raises: StoreError where another process works on the run; BadInput where it has ended, or its export folder cannot
    be written to; DiskFull, the run being paused then.
    """
    if settings.device_spec.name != run.device:
        raise BadInput(
            f"run {run.id} was started on {run.device}; this would continue it on {settings.device_spec.name}"
        )
    with (
        telling_how_to_go_on(run),
        RunLock(store_path(settings), run.id),
        working(run, store, reopened=answer is not None and answer["verdict"] == Verdict.ROLLED_BACK.value),
        open_saver(settings) as saver,
        open_context(run, store, settings, warm=True, pool=pool) as context,
    ):
        graph, config = build_graph(saver), _config(run, settings)
        start = _start(graph, config, context, answer)
        # The node that plans sets it too; a run taken up amid a generation has that behind it.
        kept = graph.get_state(config).values
        context.set_deadline(kept.get("spent_s", 0.0), kept.get("first_evaluation", 0))
        try:
            for event in graph.stream(
                start, config, context=context, stream_mode="custom", durability="sync"
            ):
                if isinstance(event, GenerationClosed):
                    prune(saver, run.id)
                if isinstance(event, Progress):
                    tell(event)
        except BadInput as error:
            # The module cannot be judged at all; a missing tool, in contrast, leaves the run to be resumed.
            generation = graph.get_state(config).values.get("generation", 0)
            context.record("planner", f"{ENDED}{error}", generation)
            store.update_run(run.id, status=RunStatus.FAILED, best_candidate=None)
            raise
        if (waiting := _waiting(graph, config)) is not None:
            write_best(run, store, settings, winner=waiting)
    return Outcome(find_summary(store.run(run.id), store, settings), waiting)


def _start(
    graph: Graph, config: RunnableConfig, context: RunContext, answer: dict[str, str] | None
) -> RunState | Command[str] | None:
    """What the graph is given: a state at its beginning, a person's word, or nothing where it just goes on."""
    waiting, run_id = _waiting(graph, config), context.run.id
    if answer is not None:
        answer = {**answer, "at": context.now().isoformat(timespec="seconds")}
    if waiting is None:
        if answer is not None and answer["verdict"] == Verdict.ROLLED_BACK.value:
            _reopen(graph, config, context, answer)
        elif answer is not None:
            raise BadInput(f"run {run_id} does not wait for review; resume it without --approve or --reject")
        return None if graph.get_state(config).created_at is not None else RunState(run_id=run_id)
    if answer is not None:
        return Command(resume=answer)
    # A word that was kept just before a kill need not be given again.
    given = _word_on(waiting, run_id, context.store)
    return Command(resume=given.model_dump(mode="json")) if given is not None else None


def _reopen(graph: Graph, config: RunnableConfig, context: RunContext, answer: dict[str, str]) -> None:
    """Bring a run that has ended back to where its search was over, to verify another winner."""
    state = RunState(**graph.get_state(config).values)
    if state.winner:  # else a kill came between the next two lines
        said = Review.model_validate({"candidate_id": state.winner, **answer})
        again = set_aside(state, said, context) | {"stop": state.stop or "rolled back"}
        graph.update_state(config, again, as_node=NodeName.SELECT.value)
    context.store.update_run(context.run.id, status=RunStatus.RUNNING, best_candidate=None)


def _waiting(graph: Graph, config: RunnableConfig) -> str | None:
    """The candidate that waits for a person's word."""
    waiting = [i.value["candidate"] for task in graph.get_state(config).tasks for i in task.interrupts]
    return str(waiting[0]) if waiting else None


def _word_on(candidate_id: str, run_id: str, store: Store) -> Review | None:
    """What a person decided last in the run, if it was about this candidate."""
    deciding = (Verdict.APPROVED, Verdict.REJECTED, Verdict.ROLLED_BACK)
    decided = [review for review in store.reviews_of_run(run_id) if review.verdict in deciding]
    return decided[-1] if decided and decided[-1].candidate_id == candidate_id else None


def _config(run: Run, settings: Settings) -> RunnableConfig:
    # langgraph queues checkpoint writes behind the branches of a fan-out: with fewer threads than branches a kill
    # would lose finished ones. The context's semaphore limits the work instead.
    threads = settings.population + 4
    return {
        "configurable": {"thread_id": run.id},
        "max_concurrency": threads,
        "recursion_limit": 20 + 6 * settings.generations,
    }


def resume_run(
    run: Run,
    store: Store,
    settings: Settings,
    tell: Listener,
    *,
    answer: dict[str, str] | None = None,
    wall_s: float | None = None,
    generations: int | None = None,
    **places: str | None,
) -> Outcome:
    """Continue a run that was stopped or killed, under its own settings; limits given now win, and so do `places`: the
    settings that say where work is done (`pool`, `ray_address`, `archive_url`).

    Raises: BadInput for a run that has ended.
    """
    if run.status.ended:
        raise BadInput(f"run {run.id} has ended ({run.status.words}); see `warpsmith show {run.id}`")
    kept = resumed_settings(run, settings, wall_s=wall_s, generations=generations, **places)
    return continue_run(run, store, kept, tell, answer=answer)


def roll_back(
    run: Run, candidate: str, store: Store, settings: Settings, tell: Listener, *, note: str = ""
) -> Outcome:
    """Put an earlier winner into the winner's place, once it has passed its soak; the next best where it does not.

    candidate: its id, or the short one that tables show. Raises: BadInput as `rollback_target`.
    """
    to = rollback_target(run, candidate, store, settings)
    answer = {"verdict": Verdict.ROLLED_BACK.value, "to": to, "note": note}
    return continue_run(run, store, resumed_settings(run, settings), tell, answer=answer)


def rollback_target(run: Run, candidate: str, store: Store, settings: Settings) -> str:
    """The id of the candidate that a run can be rolled back to.

    Raises: BadInput for a run that neither improved nor waits for review, and for a candidate that could not have won.
    """
    if run.status is not RunStatus.IMPROVED and find_summary(run, store, settings).status != IN_REVIEW:
        raise BadInput(
            f"run {run.id} has no winner to roll back from ({run.status.words}); "
            "this is for a run that improved, or whose winner waits for review"
        )
    return earlier_winner(run, candidate, store)


def resumed_settings(run: Run, settings: Settings, **given: object) -> Settings:
    """A stored run's settings, at this home; limits given now win."""
    return settings_from_run(run.settings, home=settings.home, **given)


def give_hint(run: Run, text: str, store: Store) -> str:
    """Keep an operator's idea for a run's models; a sentence on what will become of it. Raises BadInput for none."""
    idea = " ".join(text.split())
    if not idea:
        raise BadInput("the hint is empty; say in words what the models should try")
    if run.status.ended:
        raise BadInput(f"run {run.id} has ended; start another one and give it the hint")
    at = datetime.now(UTC).isoformat()
    digest = hashlib.sha256(f"{at}{idea}".encode()).hexdigest()[:16]
    store.put_event(
        AgentEvent(
            id=f"{run.id}-{digest}", run_id=run.id, at=at, role=OPERATOR, agent="person", generation=0,
            latency_s=0.0, decision=idea,
        )
    )  # fmt: skip
    if not uses_models(run.settings):
        return "kept; this run's agents are rules, which do not read hints"
    return "kept; the models see it from the next generation on"


def export_again(run: Run, store: Store, settings: Settings) -> Summary:
    """Write a run's winner again, into the export folder of `settings`. Raises BadInput for a run without one."""
    if run.best_candidate is None:
        raise BadInput(
            f"run {run.id} has no verified winner ({run.status.value.replace('_', ' ')}); its result is PyTorch itself"
        )
    moved = run.model_copy(
        update={"settings": {**run.settings, "export_dir": str(settings.export_dir.resolve())}}
    )
    kept = settings_from_run(moved.settings, home=settings.home)
    with open_saver(kept) as saver, open_context(moved, store, kept, warm=False) as context:
        state = RunState(**build_graph(saver).get_state(_config(run, settings)).values)
        export_winner(context.member(run.best_candidate), state, context)
    return find_summary(moved, store, settings)


def find_run(prefix: str, store: Store) -> Run:
    """The run whose id is or begins with `prefix`. Raises BadInput that says where ids are listed."""
    try:
        return store.run(prefix)
    except BadInput as error:
        what = str(error).partition(";")[0]
        raise BadInput(
            f"{what}; give an id that `warpsmith show` lists, or enough of its beginning"
        ) from error


def find_summary(run: Run, store: Store, settings: Settings) -> Summary:
    """A run's outcome with the files it left, where they still are."""
    program, export = program_path(run, settings), export_path(run)
    return summarise_run(
        store,
        run.id,
        status=standing(run, store, settings),
        program_path=program if program.exists() else None,
        export_path=export if export.exists() else None,
    )


def standing(run: Run, store: Store, settings: Settings) -> str:
    """A run's status, with those told apart that have not ended: at work, waiting for a person, paused where the disk
    was full, or left by a process that died."""
    # In this order: a run that ends between the two looks has ended.
    held = RunLock(store_path(settings), run.id).is_held()
    status = store.run(run.id).status
    if status.ended:
        return status.value
    if held:
        return RunStatus.RUNNING.value
    if status is RunStatus.PAUSED:
        return status.value
    # Whether a run may wait for a person is among its settings, and its checkpoints take far longer to read.
    if not _may_wait(run) or not checkpoints_path(settings).exists():
        return INTERRUPTED
    with open_saver(settings) as saver:
        waiting = _waiting(build_graph(saver), _config(run, settings))
    return IN_REVIEW if waiting is not None and _word_on(waiting, run.id, store) is None else INTERRUPTED


def waiting_runs(store: Store, settings: Settings) -> list[tuple[Run, str]]:
    """Runs whose winner waits for a person's word, newest first, each with the candidate's id."""
    asked = [run for run in store.unended_runs() if run.status is RunStatus.RUNNING and _may_wait(run)]
    idle = [run for run in asked if not RunLock(store_path(settings), run.id).is_held()]
    if not idle or not checkpoints_path(settings).exists():
        return []
    found: list[tuple[Run, str]] = []
    with open_saver(settings) as saver:
        graph = build_graph(saver)
        for run in idle:
            waiting = _waiting(graph, _config(run, settings))
            if waiting is not None and _word_on(waiting, run.id, store) is None:
                found.append((run, waiting))
    return found


def checkpointed(run: Run, settings: Settings) -> RunState | None:
    """What the run's last checkpoint holds; None where there is none yet."""
    if not checkpoints_path(settings).exists():
        return None
    with open_saver(settings) as saver:
        values = build_graph(saver).get_state(_config(run, settings)).values
    return RunState(**values) if values else None


def _may_wait(run: Run) -> bool:
    return run.settings.get("review") == str(True)
