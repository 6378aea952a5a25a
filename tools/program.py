"""Is a Program well formed for a Problem? Structure, names, kernel signatures, launch limits, results.

Here: every check that needs no compiler and no device, with messages a model or a person can act on. Not here:
static analysis of the CUDA text (tools.lint) or whether the numbers are right (tools.correctness).
Covers: exploits that need a kernel which is never launched, writes to inputs, results of another shape or dtype.
"""

from __future__ import annotations

from collections.abc import Mapping

from memory.records import Diagnostic, Graph, Problem, Program, Stage, TensorSpec
from tools.binding import BindError, BoundKernel, BoundLibrary, BoundPlan, BoundScalar, BoundStep, bind
from tools.gpus import GpuSpec
from tools.library_ops import why_not_called, why_not_indexed
from tools.signature import Param, Signature, kernel_signatures

MAX_SOURCE_BYTES = 256 * 1024
MAX_STEPS = 20_000
"""An unrolled recurrent network launches some 12,000 operations."""
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_BLOCK = (1024, 1024, 64)
MAX_BLOCK_THREADS = 1024
RESERVED = frozenset(
    "threadIdx blockIdx blockDim gridDim warpSize int float double char bool void short long unsigned signed const "
    "if else for while do return switch case break continue struct union template typename class static extern "
    "inline true false sizeof auto NAN INFINITY min max".split()
)
_INT_TYPES = {
    "int": {"int", "int32_t", "signed int", "signed"},
    "unsigned int": {"unsigned int", "unsigned", "uint32_t"},
    "long long": {"long long", "long long int", "int64_t", "long"},
    "unsigned long long": {
        "unsigned long long",
        "unsigned long long int",
        "uint64_t",
        "size_t",
        "unsigned long",
    },
    "float": {"float"},
    "double": {"double"},
}


def validate(
    program: Program, problem: Problem, gpu: GpuSpec
) -> tuple[BoundPlan | None, tuple[Diagnostic, ...]]:
    """The bound plan, and what is wrong with it; the plan is None where it could not be bound at all."""
    complaints = [*_name_clashes(program, problem), *_size_limits(program)]
    if complaints:
        return None, tuple(complaints)
    try:
        plan = bind(program, problem)
    except BindError as error:
        return None, (_complaint("expression", str(error)),)
    signatures = kernel_signatures(program.source)
    complaints += _steps_complaints(plan, signatures, gpu)
    complaints += _unused_kernels(plan, signatures)
    complaints += _result_complaints(plan, problem.graph)
    complaints += _memory_complaints(plan, gpu)
    return plan, tuple(complaints)


def _complaint(rule: str, message: str, line: int | None = None) -> Diagnostic:
    return Diagnostic(stage=Stage.SCHEMA, rule=rule, message=message, line=line)


def _size_limits(program: Program) -> list[Diagnostic]:
    complaints: list[Diagnostic] = []
    size = len(program.source.encode())
    if size > MAX_SOURCE_BYTES:
        complaints.append(
            _complaint(
                "source_size", f"the source has {size:,} bytes; at most {MAX_SOURCE_BYTES:,} are taken"
            )
        )
    count = len(program.steps) + len(program.prepare)
    if count > MAX_STEPS or not program.steps:
        complaints.append(
            _complaint("step_count", f"the plan has {count:,} steps; 1 to {MAX_STEPS:,} are taken")
        )
    return complaints


def _name_clashes(program: Program, problem: Problem) -> list[Diagnostic]:
    """Every name means one thing; dims and tunables become macros, so they may not hide a word of CUDA C++."""
    complaints: list[Diagnostic] = []
    graph = problem.graph
    owners: dict[str, str] = dict.fromkeys(graph.inputs, "input")
    owners |= {entry.value: entry.kind for entry in graph.state}
    mine = [("dim", name) for name in program.dims]
    mine += [("tunable", tunable.name) for tunable in program.tunables]
    mine += [("buffer", buffer.name) for buffer in program.buffers]
    for kind, name in mine:
        if name in owners:
            complaints.append(_complaint("name_clash", f"{kind} {name!r} has the name of a {owners[name]}"))
        if kind != "buffer" and (name in RESERVED or name.startswith("__")):
            complaints.append(
                _complaint("reserved_name", f"{kind} {name!r} would redefine a word of CUDA C++")
            )
        owners.setdefault(name, kind)
    return complaints


# --- steps ----------------------------------------------------------------------------------------------------


def _steps_complaints(plan: BoundPlan, signatures: Mapping[str, Signature], gpu: GpuSpec) -> list[Diagnostic]:
    complaints: list[Diagnostic] = []
    state = set(plan.given) - set(plan.inputs)
    zeroed = {name for name, buffer in plan.buffers.items() if buffer.zero}
    prepared: set[str] = set()
    for phase, steps in (("prepare", plan.prepare), ("steps", plan.steps)):
        readable = zeroed | prepared | (state if phase == "prepare" else set(plan.given))
        for index, step in enumerate(steps):
            place = f"{phase}[{index}]"
            outcome = _check_step(step, place, plan, signatures, gpu)
            complaints += outcome.complaints
            for name in outcome.reads:
                if name not in readable and name not in outcome.writes:
                    complaints.append(_unreadable(name, place, plan, phase))
            if phase == "prepare":
                prepared |= outcome.writes
            for name in sorted(outcome.writes & prepared) if phase == "steps" else ():
                message = f"{place} overwrites {name!r}, which prepare filled once for every call"
                complaints.append(_complaint("prepared_buffer_written", message))
            readable |= outcome.writes
    return complaints


class _StepCheck:
    """Findings about one step and the tensors it touches."""

    def __init__(self) -> None:
        self.complaints: list[Diagnostic] = []
        self.reads: list[str] = []
        self.writes: set[str] = set()

    def complain(self, rule: str, message: str, line: int | None = None) -> None:
        self.complaints.append(_complaint(rule, message, line))


def _check_step(
    step: BoundStep, place: str, plan: BoundPlan, signatures: Mapping[str, Signature], gpu: GpuSpec
) -> _StepCheck:
    check = _StepCheck()
    if isinstance(step, BoundLibrary):
        _check_library(step, place, plan, check)
    else:
        _check_geometry(step, place, gpu, check)
        signature = signatures.get(step.entry)
        if signature is None:
            known = ", ".join(sorted(signatures)) or "none"
            check.complain(
                "unknown_kernel", f"{place}: no kernel {step.entry!r} in the source; kernels: {known}"
            )
        else:
            _check_arguments(step, place, plan, signature, check)
    return check


def _check_library(step: BoundLibrary, place: str, plan: BoundPlan, check: _StepCheck) -> None:
    reason = why_not_called(step.op, step.args, step.kwargs)
    if reason:
        check.complain("library_op", f"{place}: {step.op!r} may not be called: {reason}")
    check.reads = step.reads
    for name in step.reads:
        if name not in plan.given and name not in plan.buffers:
            check.complain("unknown_buffer", _unknown(name, place, plan))
    if not check.complaints:
        reason = why_not_indexed(step.op, [plan.spec(name).dtype for name in step.reads])
        if reason:
            check.complain("library_op", f"{place}: {step.op!r} may not be called: {reason}")
    for output in step.outputs:
        if output is None:
            continue
        if output in plan.given:
            check.complain(
                "input_written", f"{place} writes {output!r}, which is an input or state; use a buffer"
            )
        elif output not in plan.buffers:
            check.complain("unknown_buffer", _unknown(output, place, plan))
        check.writes.add(output)


def _check_geometry(step: BoundKernel, place: str, gpu: GpuSpec, check: _StepCheck) -> None:
    for axis, size, limit in zip("xyz", step.grid, MAX_GRID, strict=True):
        if not 1 <= size <= limit:
            check.complain(
                "grid_range", f"{place} ({step.entry}): grid.{axis} is {size}; 1 to {limit} are allowed"
            )
    for axis, size, limit in zip("xyz", step.block, MAX_BLOCK, strict=True):
        if not 1 <= size <= limit:
            check.complain(
                "block_range", f"{place} ({step.entry}): block.{axis} is {size}; 1 to {limit} are allowed"
            )
    threads = step.block[0] * step.block[1] * step.block[2]
    if threads > MAX_BLOCK_THREADS:
        check.complain(
            "block_range", f"{place} ({step.entry}): {threads} threads a block; at most {MAX_BLOCK_THREADS}"
        )
    if not 0 <= step.shared_bytes <= gpu.smem_per_block_bytes:
        check.complain(
            "shared_memory",
            f"{place} ({step.entry}): {step.shared_bytes:,} bytes of dynamic shared memory; {gpu.name} has "
            f"{gpu.smem_per_block_bytes:,} a block",
        )


def _check_arguments(
    step: BoundKernel, place: str, plan: BoundPlan, signature: Signature, check: _StepCheck
) -> None:
    wanted = ", ".join(p.name for p in signature.params)
    if len(step.args) != len(signature.params):
        check.complain(
            "argument_count",
            f"{place}: {step.entry} takes {len(signature.params)} arguments ({wanted}) and is given {len(step.args)}",
            signature.line,
        )
        return
    for argument, param in zip(step.args, signature.params, strict=True):
        if isinstance(argument, BoundScalar):
            _check_scalar(argument, param, f"{place} ({step.entry})", check)
        else:
            _check_pointer(argument, param, f"{place} ({step.entry})", plan, check)


def _check_scalar(argument: BoundScalar, param: Param, place: str, check: _StepCheck) -> None:
    if param.pointer:
        check.complain(
            "argument_kind", f"{place}: {param.name} is a pointer and is given the number {argument.value}"
        )
    elif param.ctype not in _INT_TYPES[argument.ctype]:
        check.complain(
            "argument_kind", f"{place}: {param.name} is {param.ctype!r} and is given a {argument.ctype!r}"
        )
    elif argument.ctype == "int" and not -(2**31) <= argument.value < 2**31:
        message = f"{place}: {param.name} is given {argument.value}, which an int cannot hold; use long long"
        check.complain("argument_range", message)


def _check_pointer(name: str, param: Param, place: str, plan: BoundPlan, check: _StepCheck) -> None:
    if name not in plan.given and name not in plan.buffers:
        check.complain("unknown_buffer", _unknown(name, place, plan))
        return
    if not param.pointer:
        check.complain(
            "argument_kind",
            f"{place}: {param.name} is {param.ctype!r}, no pointer, and is given tensor {name!r}",
        )
        return
    spec = plan.spec(name)
    if param.dtype is not None and param.dtype != spec.dtype:
        message = f"{place}: {param.name} points to {param.dtype} and tensor {name!r} holds {spec.dtype}"
        check.complain("dtype_mismatch", message, param.line)
    if name in plan.buffers and not plan.buffers[name].contiguous:
        message = f"{place}: {name!r} has layout 'any' and may be a view; declare it contiguous to give it to a kernel"
        check.complain("layout", message)
    if param.const:
        check.reads.append(name)
        return
    if name in plan.given:
        message = f"{place}: {param.name} is not const and is given {name!r}, which no kernel may write"
        check.complain("input_written", message, param.line)
    check.writes.add(name)


def _unknown(name: str, place: str, plan: BoundPlan) -> str:
    return f"{place}: no tensor {name!r}; inputs and state: {', '.join(plan.given)}; buffers: {', '.join(plan.buffers)}"


def _unreadable(name: str, place: str, plan: BoundPlan, phase: str) -> Diagnostic:
    if name in plan.inputs and phase == "prepare":
        return _complaint("prepare_reads_input", f"{place} reads input {name!r}; prepare may read state only")
    return _complaint("read_before_write", f"{place} reads {name!r} before any step writes it")


# --- results --------------------------------------------------------------------------------------------------


def _unused_kernels(plan: BoundPlan, signatures: Mapping[str, Signature]) -> list[Diagnostic]:
    unused = sorted(set(signatures) - set(plan.entries))
    return [
        _complaint(
            "unused_kernel",
            f"kernel {name!r} is never launched; launch it or remove it",
            signatures[name].line,
        )
        for name in unused
    ]


def _result_complaints(plan: BoundPlan, graph: Graph) -> list[Diagnostic]:
    complaints: list[Diagnostic] = []
    if len(plan.outputs) != len(graph.outputs):
        message = f"the plan returns {len(plan.outputs)} outputs and the module {len(graph.outputs)}"
        return [_complaint("output_count", message)]
    pairs = list(zip(plan.outputs, graph.outputs, strict=True))
    if set(plan.updates) != set(graph.updates):
        wanted_updates, mine_updates = sorted(graph.updates) or "nothing", sorted(plan.updates) or "nothing"
        message = f"the module updates {wanted_updates} and the plan {mine_updates}"
        complaints.append(_complaint("updates", message))
    pairs += [(plan.updates[n], graph.updates[n]) for n in plan.updates if n in graph.updates]
    touched = {name for step in (*plan.prepare, *plan.steps) for name in _touched(step)} | set(plan.given)
    for mine, wanted in pairs:
        if mine not in plan.given and mine not in plan.buffers:
            complaints.append(_complaint("unknown_buffer", _unknown(mine, "outputs", plan)))
        elif mine not in touched:
            complaints.append(_complaint("output_unwritten", f"no step writes output {mine!r}"))
        else:
            complaints += _spec_complaints(mine, plan.spec(mine), graph.values[wanted])
    return complaints


def _touched(step: BoundStep) -> set[str]:
    if isinstance(step, BoundLibrary):
        return {name for name in step.outputs if name is not None}
    return {argument for argument in step.args if isinstance(argument, str)}


def _spec_complaints(name: str, mine: TensorSpec, wanted: TensorSpec) -> list[Diagnostic]:
    complaints: list[Diagnostic] = []
    if mine.shape != wanted.shape:
        message = f"output {name!r} has shape {list(mine.shape)} and the module returns {list(wanted.shape)}"
        complaints.append(_complaint("output_shape", message))
    if mine.dtype != wanted.dtype:
        message = f"output {name!r} is {mine.dtype} and the module returns {wanted.dtype}"
        complaints.append(_complaint("output_dtype", message))
    return complaints


def _memory_complaints(plan: BoundPlan, gpu: GpuSpec) -> list[Diagnostic]:
    total = sum(b.spec.bytes for b in plan.buffers.values()) + sum(s.bytes for s in plan.given.values())
    if total <= gpu.memory_bytes:
        return []
    message = (
        f"the plan's tensors take {total / 1e9:.1f} GB and {gpu.name} has {gpu.memory_bytes / 1e9:.0f} GB"
    )
    return [_complaint("memory", message)]
