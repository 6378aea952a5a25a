"""The composition root: the one place that names concrete agents, stores and pools, and wires the graph."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agents.allowance import Allowance
from agents.asking import Asker
from agents.coder import ModelCoder
from agents.compiler import ModelCompiler
from agents.critic import ModelCritic
from agents.endpoint import Role
from agents.interpreter import ModelInterpreter
from agents.planner import ModelPlanner
from agents.ports import Team
from agents.profiler import ModelProfiler
from agents.rules.coder import RulesCoder
from agents.rules.compiler import RulesCompiler
from agents.rules.critic import RulesCritic
from agents.rules.planner import RulesPlanner
from agents.rules.profiler import RulesProfiler
from graph import nodes, routing
from graph.budget import Deadline
from graph.chat_reader import CallLog, ModelReader, Reader
from graph.checkpoints import open_checkpoints
from graph.context import RunContext, Stopwatch
from graph.folders import prepare_home
from graph.journal import StoreJournal
from graph.past import Past
from graph.settings import Settings
from graph.state import EvaluateJob, NodeName, ProposeJob, RunState
from memory.archive import Archive
from memory.embedding import HashEmbedder
from memory.errors import ToolMissing
from memory.records import Run
from memory.store import Store
from tools.pool import EvaluationPool, LocalPool
from tools.worker import WorkerSpec

Graph = CompiledStateGraph[RunState, RunContext, RunState, RunState]


_AFTER_SELECT: list[str] = [NodeName.PLAN, NodeName.VERIFY, NodeName.FINISH]
_AFTER_REVIEW: list[str] = [NodeName.ARCHIVE, NodeName.VERIFY, NodeName.PLAN]


def build_graph(saver: SqliteSaver) -> Graph:
    """baseline → plan → propose* → evaluate* → critique → select → … → verify → review → archive → export."""
    graph = StateGraph(RunState, context_schema=RunContext)
    graph.add_node(NodeName.BASELINE, nodes.baseline)
    graph.add_node(NodeName.PLAN, nodes.plan)
    graph.add_node(
        NodeName.PROPOSE, nodes.propose, input_schema=ProposeJob, destinations=(NodeName.EVALUATE,)
    )
    graph.add_node(NodeName.EVALUATE, nodes.evaluate, input_schema=EvaluateJob)
    graph.add_node(NodeName.CRITIQUE, nodes.critique)
    graph.add_node(NodeName.SELECT, nodes.select)
    graph.add_node(NodeName.VERIFY, nodes.verify)
    graph.add_node(NodeName.REVIEW, nodes.review)
    graph.add_node(NodeName.ARCHIVE, nodes.archive)
    graph.add_node(NodeName.EXPORT, nodes.export)
    graph.add_node(NodeName.FINISH, nodes.finish)
    graph.add_edge(START, NodeName.BASELINE)
    graph.add_edge(NodeName.BASELINE, NodeName.PLAN)
    graph.add_conditional_edges(NodeName.PLAN, routing.after_plan, [NodeName.PROPOSE, NodeName.CRITIQUE])
    graph.add_edge(NodeName.EVALUATE, NodeName.CRITIQUE)
    graph.add_edge(NodeName.CRITIQUE, NodeName.SELECT)
    graph.add_conditional_edges(NodeName.SELECT, routing.after_select, _AFTER_SELECT)
    graph.add_conditional_edges(NodeName.VERIFY, routing.after_verify, [NodeName.REVIEW, NodeName.FINISH])
    graph.add_conditional_edges(NodeName.REVIEW, routing.after_review, _AFTER_REVIEW)
    graph.add_edge(NodeName.ARCHIVE, NodeName.EXPORT)
    graph.add_edge(NodeName.EXPORT, NodeName.FINISH)
    graph.add_edge(NodeName.FINISH, END)
    return graph.compile(checkpointer=saver)


def team(settings: Settings, asker: Asker | None) -> Team:
    """The agents: rules, and models before them where there are any."""
    planner, coder, compiler = RulesPlanner(), RulesCoder(), RulesCompiler()
    profiler, critic = RulesProfiler(), RulesCritic(settings.stop_after, settings.floor_target)
    if asker is None or settings.endpoint is None:
        return Team(planner, coder, compiler, profiler, critic)
    coders = settings.endpoint.casting[Role.CODER].models
    return Team(
        ModelPlanner(asker, planner, coders),
        ModelCoder(asker, coder),
        ModelCompiler(asker, compiler),
        ModelProfiler(asker, profiler),
        ModelCritic(asker, critic),
    )


@contextmanager
def open_asker(run: Run, store: Store, settings: Settings, journal: StoreJournal) -> Iterator[Asker | None]:
    """The run's language models; None where the agents are rules."""
    endpoint = settings.endpoint
    if endpoint is None:
        yield None
        return
    # Here and not above: langchain and the SDK take seconds to import, and most commands need neither.
    from agents.llm import LanguageModels

    journal.count_lost()
    spent = store.spend(run.id)
    allowance = Allowance(settings.caps, spent_tokens=spent.tokens, spent_usd=spent.cost_usd)
    with closing(LanguageModels(endpoint)) as models:
        yield Asker(endpoint, models, journal, settings.price_list, allowance, seed=str(run.seed))


@contextmanager
def open_reader(settings: Settings) -> Iterator[Reader | None]:
    """What reads free chat; None where the agents are rules. The endpoint is opened with the first message."""
    endpoint = settings.endpoint
    if endpoint is None:
        yield None
        return
    log = CallLog(endpoint.timeout_s)
    with ExitStack() as stack:

        @cache
        def opened() -> ModelInterpreter:
            from agents.llm import LanguageModels  # see open_asker

            models = stack.enter_context(closing(LanguageModels(endpoint)))
            asker = Asker(endpoint, models, log, settings.price_list, Allowance(settings.caps), seed="chat")
            return ModelInterpreter(asker)

        yield ModelReader(opened, log)


@contextmanager
def open_store(settings: Settings) -> Iterator[Store]:
    """The run store under `home`, created on first use. Raises BadInput where `home` cannot be written to."""
    prepare_home(settings)
    with Store(store_path(settings)) as store:
        yield store


def store_path(settings: Settings) -> Path:
    """The run store's file."""
    return settings.root / "store.db"


def checkpoints_path(settings: Settings) -> Path:
    """The checkpoints' file."""
    return settings.root / "checkpoints.db"


@contextmanager
def open_archive(settings: Settings) -> Iterator[Archive]:
    """The innovation archive: a Chroma server where one is named, else a folder under `home`."""
    with Archive.open(archive_location(settings), HashEmbedder()) as archive:
        yield archive


def archive_location(settings: Settings) -> str | Path:
    """A server's URL, or a folder under `home`, which is prepared."""
    return settings.archive_server or prepare_home(settings) / "archive"


def require_archive(settings: Settings) -> None:
    """Refuse an archive's server that does not answer, before any work. Raises: ArchiveError."""
    if settings.archive_url is not None:
        with open_archive(settings):
            return


def open_saver(settings: Settings) -> AbstractContextManager[SqliteSaver]:
    """Checkpoints under `home`."""
    return open_checkpoints(checkpoints_path(settings))


def worker_spec(settings: Settings) -> WorkerSpec:
    """How evaluation workers open their device."""
    return WorkerSpec(settings.device_spec, settings.root / "cache")


def open_pool(settings: Settings) -> AbstractContextManager[EvaluationPool]:
    """Simulator workers, one for each core; on a GPU one worker owns it, with a spare, and the cores compile ahead.

    With `pool` ray, the same on each machine of a cluster. Raises: ToolMissing without Ray.
    """
    if settings.pool == "ray":
        return _open_ray_pool(settings)
    if settings.on_gpu:
        return LocalPool(worker_spec(settings), 1, spares=1, compilers=settings.worker_count)
    return LocalPool(worker_spec(settings), settings.worker_count)


def _open_ray_pool(settings: Settings) -> AbstractContextManager[EvaluationPool]:
    try:
        # Here and not above: Ray is optional, and slow to import.
        from tools.ray_actor import SeatSpec
        from tools.ray_pool import RayPool
        from tools.ray_seats import Patience
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise ToolMissing("`--pool ray` needs Ray: pip install 'warpsmith[ray]'") from error
    # Each machine has its own `~`.
    home = settings.home if settings.home.parts[:1] == ("~",) else settings.root
    spec = SeatSpec(settings.device_spec, str(home / "cache"), spares=int(settings.on_gpu), compilers=0)
    return RayPool(
        spec, settings.workers, address=settings.ray_address, patience=Patience(settings.ray_wait_s)
    )


@contextmanager
def open_context(
    run: Run, store: Store, settings: Settings, *, warm: bool, pool: EvaluationPool | None = None
) -> Iterator[RunContext]:
    """Live objects for one run; everything is closed, and every worker ended, on leaving.

    warm: start the evaluation workers now rather than with the first candidate. pool: an open one, which stays open.
    """
    problem = store.problem(run.problem_hash)
    twin = store.twin(run.problem_hash) or problem
    with ExitStack() as stack:
        if pool is None:
            pool = stack.enter_context(open_pool(settings))
        if warm:
            pool.warm()
        deadline = Deadline()
        journal = StoreJournal(store, run.id, lambda: datetime.now(UTC), deadline)
        archive = stack.enter_context(open_archive(settings))
        asker = stack.enter_context(open_asker(run, store, settings, journal))
        context = RunContext(
            run=run,
            problem=problem,
            twin=twin,
            settings=settings,
            store=store,
            archive=archive,
            team=team(settings, asker),
            pool=pool,
            slots=threading.BoundedSemaphore(pool.callers),
            stopwatch=Stopwatch(),
            deadline=deadline,
            past=Past(store, archive, run.id),
            asker=asker,
        )
        yield context
