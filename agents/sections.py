"""What the sections of a prompt say: the problem, the floor, the GPU, programs, verdicts, notes. Pure text.

Not here: which prompt has which section (the files in agents/prompts), nor its budget (agents.prompting).
Invariant: whatever a user, a model, a compiler or a kernel wrote is given as material.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from agents.prompting import material
from agents.schemas import Member, Neighbour, Notes, RepairRequest, Scene, short_id
from memory.records import (
    Argument,
    Diagnostic,
    DType,
    Evaluation,
    Node,
    Problem,
    Program,
    Status,
    TensorSpec,
)
from memory.signature import problem_signature
from tools.gpus import GpuSpec
from tools.roofline import floor_of

NONE = "None yet."
SHOWN_NODES = 120
SHOWN_ERRORS = 8
SHOWN_STEPS = 12


def problem_section(scene: Scene) -> str:
    """Signature, tensors with strides, the captured operations in order, and the shapes it is verified at."""
    problem, graph = scene.problem, scene.problem.graph
    state = {entry.value: entry.kind for entry in graph.state}
    tensors = [f"- {name} (input): {_tensor(graph.values[name])}" for name in graph.inputs]
    tensors += [f"- {name} ({kind}): {_tensor(graph.values[name])}" for name, kind in state.items()]
    tensors += [
        f"- output {i}, {name}: {_tensor(graph.values[name])}" for i, name in enumerate(graph.outputs)
    ]
    shown = [_node(node, problem) for node in graph.nodes[:SHOWN_NODES]]
    if (left := len(graph.nodes) - SHOWN_NODES) > 0:
        shown.append(f"... and {left} more operations")
    parts = [
        f"{problem_signature(problem)}.",
        "Tensors:\n" + "\n".join(tensors),
        "Captured ATen operations, in order:\n" + "\n".join(shown),
        material("the module's source", problem.target.source),
    ]
    parts.append(
        f"Allowed error against the module in float64: the larger of {scene.relative_tolerance:g} relative and "
        f"{scene.eager_factor:g} times eager PyTorch's own."
    )
    if scene.twin is not None:
        parts.insert(2, f"Verified at reduced shapes too ({_input_shapes(scene.twin)}): sizes must be dims.")
    return "\n\n".join(parts)


def _input_shapes(problem: Problem) -> str:
    graph = problem.graph
    return ", ".join(f"{name} {list(graph.values[name].shape)}" for name in graph.inputs)


def _tensor(spec: TensorSpec) -> str:
    strides = "" if spec.is_contiguous else f", strides {list(spec.strides)}"
    return f"{spec.dtype.value}{list(spec.shape)}{strides}"


def _node(node: Node, problem: Problem) -> str:
    values = problem.graph.values
    made = ", ".join(f"{name}: {_tensor(values[name])}" for name in node.outputs if name in values)
    arguments = [_argument(argument) for argument in node.args]
    arguments += [f"{name}={_argument(argument)}" for name, argument in node.kwargs.items()]
    return f"- {made} = {node.op}({', '.join(arguments)})"


def _argument(argument: Argument) -> str:
    if isinstance(argument, tuple):
        return f"[{', '.join(_argument(item) for item in argument)}]"
    if isinstance(argument, str | int | float | bool) or argument is None:
        return str(argument)
    return str(next(value for value in argument.model_dump(mode="json").values() if value is not None))


def floor_section(scene: Scene) -> str:
    """The speed of light with its arithmetic (tools.roofline.floor_of)."""
    work, gpu = scene.problem.work, scene.gpu
    floor = floor_of(work, scene.problem.dtype, gpu)
    bound = "memory" if floor.memory_us >= floor.compute_us else "arithmetic"
    intensity = work.flops / work.min_bytes if work.min_bytes else 0.0
    return (
        f"Each input and parameter read once and each output written once: {work.min_bytes:,} bytes over "
        f"{gpu.dram_gbps:,.0f} GB/s = {floor.memory_us:.2f} µs. {work.flops:,} FLOPs over {floor.tflops:,.1f} TFLOP/s "
        f"({_unit(scene.problem.dtype)}) = {floor.compute_us:.2f} µs. Floor: {scene.floor_us:.2f} µs, bound by "
        f"{bound}; arithmetic intensity {intensity:.2f} FLOPs a byte. A time below the floor is taken for a cheat."
    )


def _unit(dtype: DType) -> str:
    """What does the fastest arithmetic on a dtype, as floors reckon."""
    if dtype is DType.F64:
        return "fp64"
    if dtype in (DType.F16, DType.BF16):
        return "tensor cores, half precision"
    return "tensor cores as TF32, which is more than float32 accuracy allows"


def gpu_section(gpu: GpuSpec) -> str:
    """Limits that a program has to fit."""
    family = {"sm_80": "Ampere", "sm_89": "Ada", "sm_90a": "Hopper", "sm_100": "Blackwell"}.get(gpu.arch, "")
    return (
        f"{gpu.name.upper()} ({family} {gpu.arch}): {gpu.sms} SMs at {gpu.clock_mhz} MHz; "
        f"DRAM {gpu.dram_gbps:,.0f} GB/s, L2 {gpu.l2_bytes >> 20} MiB at {gpu.l2_gbps:,.0f} GB/s; "
        f"fp32 {gpu.fp32_tflops:g} TFLOP/s; a block has at most 1,024 threads and "
        f"{gpu.smem_per_block_bytes:,} bytes of shared memory (48 KiB static); an SM has "
        f"{gpu.regs_per_sm:,} registers, {gpu.max_threads_per_sm:,} threads, {gpu.max_blocks_per_sm} blocks, "
        f"{gpu.smem_per_sm_bytes >> 10} KiB of shared memory. A launch costs {gpu.host_launch_us:g} µs of host time, "
        f"an eager PyTorch operation {gpu.host_torch_us:g} µs."
    )


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
    head = f"- {short_id(candidate.id)} ({candidate.origin.kind})"
    if timing is None:
        why = member.evaluation.diagnostics[0].message
        return f"{head}: {member.evaluation.status.value}: {_line(why)}; idea: {_line(candidate.idea)}"
    values = ", ".join(f"{k}={v}" for k, v in member.program.tunable_values().items())
    bound = f", {profile.bottleneck}-bound, {profile.floor_fraction:.0%} of the floor" if profile else ""
    return (
        f"{head}: {timing.median_us:.2f} µs ({timing.source}), {timing.speedup:.2f}x eager{bound}; "
        f"idea: {_line(candidate.idea)}; techniques: {_line(', '.join(candidate.techniques)) or 'none named'}; "
        f"at {values or '-'}"
    )


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
    return f"{member_line(member)}; {steps} step{'s' if steps != 1 else ''}: {_line(profile.explanation)}"


def neighbours_section(neighbours: Sequence[Neighbour]) -> str:
    """Similar winners, slowest first, so that the best stands nearest to the task."""
    ordered = sorted(neighbours, key=lambda n: (n.innovation.speedup, n.id))
    return "\n\n".join(_neighbour(n) for n in ordered) or NONE


def _neighbour(neighbour: Neighbour) -> str:
    found = neighbour.innovation
    head = (
        f"Innovation {neighbour.id[:8]}: {found.speedup:.2f}x over eager on {found.arch} "
        f"({found.provenance.time_source}), {found.floor_fraction:.0%} of its floor, similarity "
        f"{neighbour.similarity:.2f}.\n"
        + material(
            "what it did",
            f"{found.problem_name}: {found.idea}\ntechniques: {', '.join(found.techniques)}\n{found.signature}",
        )
    )
    return f"{head}\n{program_text('innovation ' + neighbour.id[:8], found.program)}"


def failures_section(notes: Notes) -> str:
    """What failed before, and why."""
    lines = [
        f"- {short_id(f.candidate_id)}, {f.status.value}: {_line(f.why)} (idea: {_line(f.idea)})"
        for f in notes.failures
    ]
    return material("failures", "\n".join(lines)) if lines else NONE


def lessons_section(notes: Notes) -> str:
    """What the critic learnt."""
    return (
        material("lessons", "\n".join(f"- {_line(text)}" for text in notes.lessons))
        if notes.lessons
        else NONE
    )


def hints_section(notes: Notes) -> str:
    """What the operator suggests: ideas to weigh, not orders."""
    if not notes.hints:
        return "None."
    return "Ideas to weigh, newest last:\n" + material(
        "hints", "\n".join(f"- {_line(h)}" for h in notes.hints)
    )


def refusal_section(
    request: RepairRequest, program: Program | None = None, scene: Scene | None = None
) -> str:
    """A verdict's diagnostics, for whoever mends the program; lines are quoted where the program is given."""
    lines = [f"Status {request.status.value}, repair {request.attempt}. {request.instruction}"]
    if scene is not None and scene.twin is not None and request.status in _RAN:
        lines.append(f"Trials begin at the reduced shapes: {_input_shapes(scene.twin)}.")
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


def _line(text: str) -> str:
    """One line, whatever the text."""
    return " ".join(text.split())[:600]


_OF_SCENE: dict[str, Callable[[Scene], str]] = {
    "problem": problem_section,
    "floor": floor_section,
    "gpu": lambda scene: gpu_section(scene.gpu),
    "failures": lambda scene: failures_section(scene.notes),
    "lessons": lambda scene: lessons_section(scene.notes),
    "hints": lambda scene: hints_section(scene.notes),
}


def of_scene(scene: Scene, *names: str) -> dict[str, str]:
    """Sections by name that follow from the scene alone: problem, floor, gpu, failures, lessons, hints."""
    return {name: _OF_SCENE[name](scene) for name in names}
