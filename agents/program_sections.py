"""What the sections of a prompt say of programs and of the verdicts on them. Pure text.

Here: candidates, their profiles, winners of earlier runs, refusals. Not here: the scene (agents.scene_sections).
Invariant: whatever a user, a model, a compiler or a kernel wrote is given as material.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from agents.prompting import NONE, material, one_line
from agents.scene_sections import input_shapes
from agents.schemas import Member, Neighbour, RepairRequest, Scene, short_id
from memory.records import Candidate, Diagnostic, Evaluation, Program, Status

SHOWN_ERRORS = 8
SHOWN_STEPS = 12


def program_text(name: str, program: Program) -> str:
    """Source and plan, as two materials."""
    plan = program.model_dump(mode="json", exclude={"source"}, exclude_defaults=True)
    for part, steps in (("prepare", program.prepare), ("steps", program.steps)):
        if steps:  # the kind is a default, and yet no plan reads back without it
            said = zip(steps, plan[part], strict=True)
            plan[part] = [{"kind": step.kind, **rest} for step, rest in said]
    lines = [f' "{key}": {json.dumps(value, separators=(", ", ": "))}' for key, value in plan.items()]
    return "\n".join(
        (
            material(f"{name}, CUDA source", program.source),
            material(f"{name}, plan", "{" + ",\n".join(lines) + "}"),
        )
    )


def member_section(member: Member) -> str:
    """A candidate whole: idea, verdict with profile and warnings, source and plan."""
    warnings = [
        _finding(d, member.program) for d in member.evaluation.diagnostics[:SHOWN_ERRORS] if not d.severe
    ]
    name = f"candidate {short_id(member.candidate.id)}"
    told = [material(name, member_line(member)), profile_text(member.evaluation), *warnings]
    return "\n".join((*told, program_text(name, member.program)))


def member_line(member: Member) -> str:
    """A candidate in one line, which holds words of whoever made it: give it as material."""
    candidate, timing, profile = member.candidate, member.evaluation.timing, member.evaluation.profile
    head = f"- {short_id(candidate.id)} ({_descent(candidate)})"
    if timing is None:
        why = member.evaluation.diagnostics[0].message
        return f"{head}: {member.evaluation.status.value}: {one_line(why)}; idea: {one_line(candidate.idea)}"
    values = ", ".join(f"{k}={v}" for k, v in member.program.tunable_values().items())
    bound = f", {profile.bottleneck}-bound, {profile.floor_fraction:.0%} of the floor" if profile else ""
    return (
        f"{head}: {timing.median_us:.2f} µs ({timing.source}), {timing.speedup:.2f}x eager{bound}; "
        f"idea: {one_line(candidate.idea)}; techniques: {one_line(', '.join(candidate.techniques)) or 'none named'}; "
        f"at {values or '-'}"
    )


def _descent(candidate: Candidate) -> str:
    """How it came about: `recipe`, `model, write`, `model, improve of 000-001`."""
    how = candidate.origin.kind + (f", {candidate.origin.move}" if candidate.origin.move else "")
    parents = ", ".join(short_id(parent) for parent in candidate.parents)
    return f"{how} of {parents}" if parents else how


def profile_text(evaluation: Evaluation) -> str:
    """The bottleneck and every step's numbers."""
    profile = evaluation.profile
    if profile is None:
        return "No profile: it did not pass."
    lines = [f"Bottleneck: {profile.bottleneck}. {profile.explanation}"]
    for step in profile.steps[:SHOWN_STEPS]:
        said = step.model_dump(mode="json", exclude_defaults=True, exclude={"name", "counted"})
        numbers = ", ".join(f"{k} {_number(v)}{_IDEAL.get(k, '')}" for k, v in said.items())
        lines.append(f"- {step.name} ({'counted' if step.counted else 'modelled'}): {numbers}")
    return "\n".join(lines)


_IDEAL = {
    "load_sectors_per_request": " (4 are ideal for 4-byte, 16 for 16-byte accesses a lane)",
    "store_sectors_per_request": " (the same)",
    "bank_conflicts": " (extra passes over shared memory in one launch; 0 is ideal)",
}
"""What a number is to be compared with."""


def _number(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def population_section(members: Sequence[Member], most: int = 12) -> str:
    """Candidates in the order given, each with what limits it."""
    lines = [_survivor(m) for m in members[:most]]
    return material("candidates", "\n".join(lines)) if lines else NONE


def _survivor(member: Member) -> str:
    profile, steps = member.evaluation.profile, len(member.program.steps)
    if profile is None:
        return member_line(member)
    return f"{member_line(member)}; {steps} step{'s' if steps != 1 else ''}: {one_line(profile.explanation)}"


def neighbours_section(neighbours: Sequence[Neighbour]) -> str:
    """Similar winners, slowest first, so that the best stands nearest to the task."""
    ordered = sorted(neighbours, key=lambda n: (n.innovation.speedup, n.id))
    return "\n\n".join(_neighbour(n) for n in ordered) or NONE


def _neighbour(neighbour: Neighbour) -> str:
    found = neighbour.innovation
    unchecked = ", imported and not checked on this machine" if found.provenance.origin == "import" else ""
    head = (
        f"Innovation {neighbour.id[:8]}: {found.speedup:.2f}x over eager on {found.arch} "
        f"({found.provenance.time_source}{unchecked}), {found.floor_fraction:.0%} of its floor, similarity "
        f"{neighbour.similarity:.2f}.\n"
        + material(
            "what it did",
            f"{found.problem_name}: {found.idea}\ntechniques: {', '.join(found.techniques)}\n{found.signature}",
        )
    )
    return f"{head}\n{program_text('innovation ' + neighbour.id[:8], found.program)}"


def refusal_section(
    request: RepairRequest, program: Program | None = None, scene: Scene | None = None
) -> str:
    """A verdict's diagnostics, for whoever mends the program; lines are quoted where the program is given."""
    lines = [f"Status {request.status.value}, repair {request.attempt}. {request.instruction}"]
    if scene is not None and scene.twin is not None and request.status in _RAN:
        lines.append(f"Trials begin at the reduced shapes: {input_shapes(scene.twin)}.")
    lines += [_finding(found, program) for found in request.diagnostics[:SHOWN_ERRORS]]
    if (more := len(request.diagnostics) - SHOWN_ERRORS) > 0:
        lines.append(f"... and {more} more findings")
    return "\n".join(lines)


_RAN = frozenset((Status.SANITIZER_ERROR, Status.RUNTIME_ERROR, Status.INCORRECT))
"""Verdicts on a program that ran."""


def _finding(found: Diagnostic, program: Program | None) -> str:
    """A finding with its line, which the compiler's own excerpts already hold."""
    place = f" (line {found.line})" if found.line is not None else ""
    name = f"{found.stage.value}, {'' if found.severe else 'warning '}{found.rule}{place}"
    excerpt = found.excerpt or _quoted(found.line, program)
    return material(name, f"{found.message}\n{excerpt}")


def _quoted(line: int | None, program: Program | None) -> str:
    """A line of the source as a compiler would show it."""
    text = program.source.splitlines() if program is not None else []
    if line is None or not 1 <= line <= len(text):
        return ""
    return f"{line:5} | {text[line - 1][:240]}"
