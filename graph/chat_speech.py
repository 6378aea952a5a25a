"""Longer sentences of the chat: what it can do, how a run begins, who reads hints. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from agents.schemas import short_id
from graph.chat_parts import ChatPart, Text
from graph.settings import Settings, uses_models
from graph.tables import us_text
from memory.records import Problem, Run
from memory.signature import problem_signature
from tools.gpus import GpuSpec
from tools.roofline import floor_us

ABILITIES = (
    "I optimize a module: paste its code or give a path, with what matters to you: 'optimize net.py for an H100, stay"
    " within 1e-5, ten minutes'. Then: 'status', 'explain the winner', 'why did it fail', 'why did 001-002 fail', 'try"
    " this idea: …', 'stop', 'resume for 10 more minutes', 'export to kernels/', 'approve', 'reject: …', 'pin',"
    " 'kill' or 'release 002-003', 'roll back to 001-000', 'list runs', 'never mind'."
)
FIXED_SETTINGS = (
    "a run keeps its device, tolerance and population; only its time and generations can be changed"
)


def tell_capture(problem: Problem, gpu: GpuSpec) -> Iterator[ChatPart]:
    """What was captured, and how fast it could be at best."""
    floor = us_text(floor_us(problem.work, problem.dtype, gpu))
    yield Text(text=f"Captured {problem.name}: {problem_signature(problem)}.")
    yield Text(
        text=f"The floor (speed of light) of one forward on {gpu.name.upper()} is {floor}: nothing is faster."
    )


def tell_beginning(run: Run, settings: Settings, pid: int) -> Text:
    """What happens next."""
    agents = "rules and language models" if uses_models(run.settings) else "rules"
    review = "waits for your approval, and is then" if settings.review else "is"
    return Text(
        text=f"Run {run.id} has begun in a process of its own ({pid}), which goes on without this chat. It times eager"
        f" PyTorch, then {agents} write up to {settings.generations} generation{'s' * (settings.generations != 1)} of"
        f" {settings.population} candidates;"
        f" each is judged, the best goes through {settings.soak_count} more random trials, {review} archived and"
        f" exported to {run.settings['export_dir']}. Say 'status' to see how far it is."
    )


def tell_rollback(candidate_id: str, pid: int) -> str:
    """What happens next, in two sentences."""
    return (
        f"Process {pid} puts {short_id(candidate_id)} through the soak: it takes the winner's place if it passes, the"
        " next best does if not. Say 'status' to see when it is done."
    )


def who_reads_hints(run: Run) -> str:
    """What becomes of an idea, in one sentence."""
    if uses_models(run.settings):
        return "Its language-model agents read it with their next proposals; agents by rules ignore it."
    return "This run has no language models, and agents by rules ignore ideas: it changes nothing but the record."
