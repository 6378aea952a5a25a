"""The prompt that an agent really sends about a verdict, caught where it would leave for the endpoint.

Nothing is sent: the endpoint is one that keeps the question and gives no answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

from agents.allowance import Allowance, Caps
from agents.asking import Asker
from agents.calls import Call, Completion, ModelFailed, ModelRequest
from agents.coder import ModelCoder
from agents.compiler import ModelCompiler
from agents.critic import ModelCritic
from agents.endpoint import Casting, Endpoint, ModelChoice, Role
from agents.planner import ModelPlanner
from agents.prices import list_prices
from agents.profiler import ModelProfiler
from agents.prompting import Prompt
from agents.rules.coder import RulesCoder
from agents.rules.compiler import RulesCompiler
from agents.rules.critic import RulesCritic
from agents.rules.planner import RulesPlanner
from agents.rules.profiler import RulesProfiler
from agents.schemas import Briefing, CoderTask, Draft, Member, Move, Notes, Proposal, Scene
from benchmarks.agents.generations import Generation, Tried
from benchmarks.agents.record import GPU, RECORDED, Recording, read
from graph.evolution import Herd, World
from memory.records import Candidate, Origin, Status
from tools.gpus import gpu_named
from tools.roofline import floor_us

_MODEL = ModelChoice("nobody", 1.0)
_CANDIDATE = "benchmark-001-000"
_ORIGIN = Origin(kind="model", agent="model", detail=_MODEL.name)

TOLD = {
    Role.COMPILER: ("The refusal",),
    Role.PROFILER: ("The candidate and its profile",),
    Role.CODER: ("Parents",),
    Role.PLANNER: ("Population, best first",),
    Role.CRITIC: (
        "Floor", "The generation", "Survivors, best first", "Generations in a row without a gain", "Lessons so far",
        "Hints of the operator",
    ),
}  # fmt: skip
"""The sections of each role's prompt that tell of the verdicts."""


class _Listening:
    """An endpoint that keeps the last question and never answers."""

    def __init__(self) -> None:
        self.heard: ModelRequest | None = None

    def complete(
        self,
        request: ModelRequest,
        *,
        deadline_s: float,  # noqa: ARG002
        lost: Callable[[], bool],  # noqa: ARG002
    ) -> Completion:
        """See agents.calls.Models."""
        self.heard = request
        raise ModelFailed("nobody answers: this endpoint only listens", hopeless=False)


class _Forgetful:
    """A journal that keeps nothing."""

    def answered(self, key: str) -> Call | None:  # noqa: ARG002
        """See agents.calls.Journal."""
        return None

    def sent(self, call: Call) -> None:
        """See agents.calls.Journal."""

    def keep(self, call: Call, *, answered: bool) -> None:
        """See agents.calls.Journal."""

    def seconds_left(self) -> float:
        """See agents.calls.Journal."""
        return 3600.0


def prompt_about(recording: Recording, role: Role) -> Prompt:
    """What the agent would ask in this situation. Raises ValueError where it would ask nothing."""
    return _heard(role, recording.name, lambda asker: _ASKING[role](asker, recording))


def prompt_on(generation: Generation, folder: Path = RECORDED) -> Prompt:
    """What the critic would ask about a generation. Raises ValueError where it would ask nothing."""
    tried = [_tried(one, 1, number, folder) for number, one in enumerate(generation.tried)]
    survivors = [_tried(one, 0, number, folder) for number, one in enumerate(generation.survivors)]
    scene = replace(_scene(read(generation.tried[0].recorded, folder)), notes=generation.notes)

    def judge(asker: Asker) -> None:
        ModelCritic(asker, RulesCritic()).critique(tried, survivors, generation.stagnation, scene)

    return _heard(Role.CRITIC, generation.name, judge)


def _heard(role: Role, about: str, ask: Callable[[Asker], None]) -> Prompt:
    listening = _Listening()
    casting = dict.fromkeys(Role, Casting((_MODEL,)))
    endpoint = Endpoint(casting, api_key="none")
    ask(Asker(endpoint, listening, _Forgetful(), list_prices(), Allowance(Caps())))
    if listening.heard is None:
        raise ValueError(f"{role.value} asks nothing about {about!r}")
    system, user = (message.text for message in listening.heard.messages)
    return Prompt(role, system, user, "")


def told_in(prompt: Prompt) -> str:
    """The prompt's sections on verdicts, without the programs, which say nothing about them."""
    told: list[str] = []
    for title in TOLD[prompt.role]:
        found = re.search(rf"^# {re.escape(title)}\n.*?(?=^# |\Z)", prompt.user, re.MULTILINE | re.DOTALL)
        if found is None:
            raise ValueError(f"the {prompt.role.value}'s prompt has no section {title!r}")
        told.append(_PROGRAM.sub("", found[0]))
    return "".join(told)


_PROGRAM = re.compile(
    r"^<<material (\w+): [^\n]*, (?:CUDA source|plan)>>$.*?^<<end of material \1>>$", re.MULTILINE | re.DOTALL
)


def _scene(recording: Recording) -> Scene:
    gpu, problem = gpu_named(GPU), recording.problem
    floor = floor_us(problem.work, problem.dtype, gpu)
    return Scene(problem, recording.twin, gpu, floor, generation=1, notes=Notes())


def _member(recording: Recording, candidate_id: str = _CANDIDATE, idea: str = "A first try.") -> Member:
    """Under an idea that does not name the flaw: that is what a reader has to find."""
    candidate = Candidate(
        id=candidate_id,
        run_id="benchmark",
        program_hash=recording.program.content_hash(),
        generation=1,
        origin=_ORIGIN,
        idea=idea,
    )
    return Member(candidate, recording.program, recording.evaluation)


def _tried(tried: Tried, generation: int, number: int, folder: Path) -> Member:
    found = _member(read(tried.recorded, folder), f"benchmark-{generation:03d}-{number:03d}", tried.idea)
    if not tried.improves_best:
        return found
    origin = _ORIGIN.model_copy(update={"move": Move.IMPROVE.value})
    descent = {"origin": origin, "parents": ("benchmark-000-000",)}
    return replace(found, candidate=found.candidate.model_copy(update=descent))


def _task(recording: Recording, parents: tuple[Member, ...]) -> CoderTask:
    proposal = Proposal(
        id="001-001",
        generation=1,
        move=Move.IMPROVE,
        idea="Relieve what limits the parent.",
        bottleneck="memory",
        parents=tuple(parent.candidate.id for parent in parents),
    )
    return CoderTask(proposal, _scene(recording), parents, None)


def _mend(asker: Asker, recording: Recording) -> None:
    compiler = ModelCompiler(asker, RulesCompiler())
    request = compiler.review(recording.evaluation, 1)
    if request is not None:
        draft = Draft(recording.program, _ORIGIN, "A first try.", ())
        compiler.mend(_task(recording, ()), draft, request)


def _read(asker: Asker, recording: Recording) -> None:
    if recording.evaluation.status is Status.PASSED:
        ModelProfiler(asker, RulesProfiler()).read(_member(recording), _scene(recording))


def _write(asker: Asker, recording: Recording) -> None:
    ModelCoder(asker, RulesCoder()).write(_task(recording, (_member(recording),)))


def _plan(asker: Asker, recording: Recording) -> None:
    member = _member(recording)
    population = (member,) if member.passed else ()
    briefing = Briefing(
        scene=_scene(recording),
        slots=2,
        population=population,
        breeding=Herd(World((population,), (0,))),
        tried=frozenset((member.candidate.program_hash,)),
        neighbours=(),
        gentle=False,
    )
    ModelPlanner(asker, RulesPlanner(), (_MODEL,)).plan(briefing, Random(0))


_ASKING: dict[Role, Callable[[Asker, Recording], None]] = {
    Role.COMPILER: _mend,
    Role.PROFILER: _read,
    Role.CODER: _write,
    Role.PLANNER: _plan,
}
