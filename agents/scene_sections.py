"""What the sections of a prompt say of its scene: the problem, the floor, the GPU, what was learnt. Pure text.

Not here: programs and verdicts (agents.program_sections), which prompt has which section (the files in agents/prompts),
nor its budget (agents.prompting).
Invariant: whatever a user, a model, a compiler or a kernel wrote is given as material.
"""

from __future__ import annotations

from collections.abc import Callable

from agents.prompting import NONE, material, one_line
from agents.schemas import Notes, Scene, short_id
from memory.records import Argument, DType, Node, Problem, TensorSpec
from memory.signature import problem_signature
from tools.gpus import GpuSpec
from tools.roofline import floor_of

SHOWN_NODES = 120


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
    told = ("Tensors:", *tensors, "ATen operations, in order:", *shown)
    parts = [
        f"{problem_signature(problem)}.",
        material("the captured graph", "\n".join(told)),  # with the module's own strings among the arguments
        material("the module's source", problem.target.source),
    ]
    parts.append(
        f"Allowed error against the module in float64: the larger of {scene.relative_tolerance:g} relative and "
        f"{scene.eager_factor:g} times eager PyTorch's own."
    )
    if scene.twin is not None:
        parts.insert(2, f"Verified at reduced shapes too ({input_shapes(scene.twin)}): sizes must be dims.")
    return "\n\n".join(parts)


def input_shapes(problem: Problem) -> str:
    """`x [33, 40], y [40]`."""
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


def failures_section(notes: Notes) -> str:
    """What failed before, and why."""
    lines = [
        f"- {short_id(f.candidate_id)}, {f.status.value}: {one_line(f.why)} (idea: {one_line(f.idea)})"
        for f in notes.failures
    ]
    return material("failures", "\n".join(lines)) if lines else NONE


def lessons_section(notes: Notes) -> str:
    """What the critic learnt."""
    return (
        material("lessons", "\n".join(f"- {one_line(text)}" for text in notes.lessons))
        if notes.lessons
        else NONE
    )


def hints_section(notes: Notes) -> str:
    """What the operator suggests: ideas to weigh, not orders."""
    if not notes.hints:
        return "None."
    return "Ideas to weigh, newest last:\n" + material(
        "hints", "\n".join(f"- {one_line(h)}" for h in notes.hints)
    )


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
