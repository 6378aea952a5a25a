"""From what a message says of a module to what a run needs: file, class, arguments, settings; or the one question.

Not here: reading the message (graph.chat_intents), starting the run (graph.chat). Nothing here runs the user's code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from graph.chat_constraints import Constraints
from graph.chat_history import Conversation
from graph.chat_intents import Optimize
from graph.chat_source import SourceFacts, complete_imports, examine_source
from graph.chat_target import TargetText, shape_as_inputs
from graph.settings import Settings, resolve_settings
from memory.records import Target
from tools.problem import parse_target

WHICH_MODULE = (
    "Which module? Paste the code or give a path, such as examples/layernorm_gelu.py or net.py:Block; a class without"
    " get_inputs() also needs its inputs, such as 'inputs f32[16,1024]'."
)


@dataclass(frozen=True)
class Located:
    """A request whose module is a file."""

    request: Optimize
    """Without code: pasted code has become the file."""
    facts: SourceFacts | None
    """None where the file cannot be read or parsed: `parse_target` says why."""
    pasted: bool
    added: tuple[str, ...] = ()
    """Imports that the pasted code lacked."""


def merge(newer: Optimize, older: Optimize) -> Optimize:
    """A request with what an earlier message said of it, where this one is silent."""
    other_module = newer.code is not None or newer.target.path is not None
    kept = TargetText(inputs=older.target.inputs, init=older.target.init) if other_module else older.target
    return Optimize(
        target=newer.target.over(kept),
        code=newer.code if other_module else older.code,
        file=newer.file if other_module else older.file,
        constraints=newer.constraints.over(older.constraints),
        unread=" ".join(text for text in (older.unread, newer.unread) if text),
    )


def answers(details: Optimize, text: str, older: Optimize, facts: SourceFacts | None) -> Optimize | None:
    """A request completed by the answer to its question; None where the answer says nothing of it.

    details: the message as `read_details` sees it. A bare class name or shape counts as an answer.
    """
    target = details.target
    if target.inputs is None and (shape := shape_as_inputs(text)):
        target = replace(target, inputs=shape)
    named = [name for name in (facts.modules if facts else ()) if name in text.replace(",", " ").split()]
    if target.class_name is None and len(named) == 1:
        target = replace(target, class_name=named[0])
    if details.code is None and target == TargetText() and not details.constraints.given:
        return None
    return merge(replace(details, target=target), older)


def locate(request: Optimize, conversation: Conversation) -> Located | None:
    """The request with its module as a file; None where it names none. Raises StoreError where code cannot be kept."""
    if request.code is not None:
        code, added = complete_imports(request.code)
        facts = examine_source(code)
        name = request.target.class_name or (_only_class(facts) if facts else None)
        path = conversation.keep_code(code, request.file.removesuffix(".py") or name or "module")
        target = replace(request.target, path=str(path))
        return Located(replace(request, target=target, code=None), facts, pasted=True, added=added)
    if request.target.path is None:
        return None
    return Located(request, read_facts(request.target.path), pasted=False)


def read_facts(path: str) -> SourceFacts | None:
    """What a file defines; None where it cannot be read or parsed."""
    try:
        return examine_source(Path(path).expanduser().read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RuntimeError):
        return None


def missing(located: Located) -> str | None:
    """What only the person can say, as one question; None where nothing is missing."""
    facts, target = located.facts, located.request.target
    if facts is None or not facts.modules:
        return None
    chosen = target.class_name or _only_class(facts)
    if chosen is None:
        tail = (
            ""
            if facts.has_inputs or target.inputs
            else ", and with which inputs? For example: '{0}, inputs f32[16,1024]'"
        )
        return f"Which class is meant: {' or '.join(facts.candidates)}" + (
            tail.format(facts.candidates[0]) or "?"
        )
    needs = facts.needs.get(chosen, ())
    no_inputs = not facts.has_inputs and target.inputs is None
    no_init = bool(needs) and not facts.has_init and target.init is None
    if no_inputs and no_init:
        return (
            f"With which inputs and constructor arguments ({', '.join(needs)}) is {chosen} run? The code has no"
            " get_inputs() and no get_init_inputs(); write, for example, 'inputs f32[16,1024], init [1024]'."
        )
    if no_inputs:
        return f"With which inputs is {chosen} run? It has no get_inputs(); write, for example, 'inputs f32[16,1024]'."
    if no_init:
        return (
            f"With which constructor arguments ({', '.join(needs)}) is {chosen} made? The code has no"
            " get_init_inputs(); write, for example, 'init [1024]'."
        )
    return None


def as_target(located: Located) -> Target:
    """The target of a run. Raises BadInput naming the file, the line where known and the remedy."""
    target = located.request.target
    chosen = target.class_name or (_only_class(located.facts) if located.facts else None)
    named = f"{target.path}:{chosen}" if chosen else str(target.path)
    return parse_target(named, inputs=target.inputs, init=target.init)


def settings_for(constraints: Constraints, base: Settings) -> tuple[Settings, str | None]:
    """The settings of a run, and what to say of the device where a choice had to be made.

    Raises: BadInput for an unknown GPU or a value out of range; ToolMissing for a GPU that this machine lacks.
    """
    given = {
        "gpu": constraints.gpu,
        "device": constraints.device,
        "relative_tolerance": constraints.tolerance,
        "wall_s": constraints.wall_s,
        "generations": constraints.generations,
        "population": constraints.population,
        "review": constraints.review,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    settings = resolve_settings(**(base.model_dump() | chosen))
    if constraints.gpu is None or not settings.on_gpu:
        return settings, None
    real = settings.device_spec.gpu
    if settings.gpu_name in real.lower().replace(" ", ""):
        return settings, None
    if constraints.device == "cuda":
        return (
            settings,
            f"Times are measured on this machine's GPU, {real}, not on {settings.gpu_name.upper()}.",
        )
    simulated = resolve_settings(**(base.model_dump() | chosen | {"device": "simulator"}))
    return (
        simulated,
        f"This machine's GPU is {real}, so {settings.gpu_name.upper()} is simulated; 'on my GPU' measures here.",
    )


def understood(located: Located, target: Target, settings: Settings) -> str:
    """What was understood, in one sentence, with the defaults that fill the rest."""
    said = located.request.constraints
    source = "the pasted code" if located.pasted else target.path
    device = settings.device_spec
    where = f"{device.gpu} (measured)" if settings.on_gpu else f"{device.gpu.upper()} (simulated)"
    generations = f"{settings.generations} generation{'s' * (settings.generations != 1)}"
    population = f"{settings.population}{_default(said.population)}"
    parts = [
        f"{target.class_name} from {source}",
        where if said.gpu or said.device else f"{where} by default",
        f"relative tolerance {settings.relative_tolerance:g}{_default(said.tolerance)}",
        f"at most {settings.wall_s:g} s of searching{_default(said.wall_s)}",
        f"{generations}{_default(said.generations)} of {population}",
    ]
    if target.inputs is not None:
        parts.append(f"inputs {target.inputs}")
    if target.init is not None:
        parts.append(f"constructor arguments {target.init}")
    if settings.review:
        parts.append("the winner waits for your approval")
    return f"I understood: {'; '.join(parts)}."


def remarks(located: Located) -> list[str]:
    """What was not understood, and what was not used."""
    request = located.request
    lines = [f"{remark[0].upper()}{remark[1:]}." for remark in request.constraints.remarks]
    if request.unread:
        lines.append(f"Not understood, and not used: '{request.unread}'.")
    return lines


def _only_class(facts: SourceFacts) -> str | None:
    """The class that is meant where none is named."""
    if "Model" in facts.modules:
        return "Model"
    return facts.candidates[0] if len(facts.candidates) == 1 else None


def _default(value: float | None) -> str:
    return "" if value is not None else " (default)"
