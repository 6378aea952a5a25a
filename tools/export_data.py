"""A bound plan as the JSON that an exported file carries; tools.export_steps is its reader.

Here: everything that can be decided once: which buffers a step makes and gives back, which results need memory of
their own, what prepare must keep. Not here: text around it (tools.export).
Invariant: one step on one line, so that the plan of a small program can be read.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping, Sequence

from memory.errors import BadInput
from memory.records import Argument, Problem, SpecialArgument, StateEntry, TensorSpec
from tools.binding import BoundKernel, BoundLibrary, BoundPlan, BoundStep
from tools.export_text import UserSource
from tools.signature import kernel_signatures
from tools.target import TensorInput, parse_inputs

MAX_CONSTANT_BYTES = 1 << 20
"""Tensor literals of forward that may travel in a file, together."""
_LITERAL = re.compile(r"(?:lifted_tensor_|_tensor_constant)\d+$")
_DEVICE_LETTERS = re.compile(r"sm_(\d+)(\d)[af]?$")

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def plan_json(plan: BoundPlan, problem: Problem, arch: str, constants: Mapping[str, bytes]) -> str:
    """The plan as JSON text. Raises BadInput where a constant that it reads cannot travel."""
    flow = _Flow(plan)
    graph = problem.graph
    state = [entry for entry in graph.state if entry.kind != "constant" or entry.value in flow.used]
    match = _DEVICE_LETTERS.match(arch)
    if match is None:
        raise BadInput(f"architecture {arch!r} is not one like sm_90a")
    head: dict[str, Json] = {
        "arch": arch,
        "capability": [int(match[1]), int(match[2])],
        "training": problem.training,
        "atomics": "atomic" in plan.source,
        "replay": plan.replay,
        "structure": problem.output_structure,
        "inputs": [{"name": n, **_spec(graph.values[n])} for n in graph.inputs],
        "arguments": _arguments(problem),
        "outputs": [
            [n, n in plan.given and n != o] for n, o in zip(plan.outputs, graph.outputs, strict=True)
        ],
        "updates": dict(plan.updates),
        "kept": list[Json](flow.kept),
        "prepare_reads": list[Json](flow.prepare_reads),
    }
    listed: dict[str, Sequence[Json] | dict[str, Json]] = {
        "state": [_state(entry, graph.values[entry.value]) for entry in state],
        "constants": _constants(state, graph.values, constants),
        "buffers": {n: _buffer(plan, n) for n in plan.buffers},
        "prepare": flow.prepare,
        "steps": flow.steps,
    }
    lines = [f"{_dumps(k)}: {_dumps(v)}" for k, v in head.items()]
    lines += [f"{_dumps(k)}: {_listed(v)}" for k, v in listed.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _dumps(value: Json) -> str:
    return json.dumps(value, allow_nan=False)


def _listed(value: Sequence[Json] | dict[str, Json]) -> str:
    """A list or object with each item on its own line."""
    if not value:
        return "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, dict):
        return "{\n" + ",\n".join(f"  {_dumps(k)}: {_dumps(v)}" for k, v in value.items()) + "\n}"
    return "[\n" + ",\n".join(f"  {_dumps(item)}" for item in value) + "\n]"


def _spec(spec: TensorSpec) -> dict[str, Json]:
    return {"dtype": spec.dtype.value, "shape": list(spec.shape), "strides": list(spec.strides)}


def _state(entry: StateEntry, spec: TensorSpec) -> Json:
    return {"name": entry.value, "target": entry.target, "kind": entry.kind, **_spec(spec)}


def _buffer(plan: BoundPlan, name: str) -> Json:
    buffer = plan.buffers[name]
    shape: list[Json] = list(buffer.spec.shape)
    return {
        "dtype": buffer.spec.dtype.value,
        "shape": shape,
        "zero": buffer.zero,
        "contiguous": buffer.contiguous,
    }


def _arguments(problem: Problem) -> list[Json] | None:
    """Forward's captured arguments; None where only the file's get_inputs can tell them."""
    target = problem.target
    if target.inputs is not None:
        items = parse_inputs(target.inputs)
        return [{"tensor": True} if isinstance(i, TensorInput) else {"value": i} for i in items]
    count = len(problem.graph.inputs)
    return [{"tensor": True}] * count if UserSource(target).takes_exactly(count) else None


def _constants(
    state: Sequence[StateEntry], specs: Mapping[str, TensorSpec], given: Mapping[str, bytes]
) -> dict[str, Json]:
    """Tensor literals by value name, compressed; plain tensor attributes stay with the module."""
    packed: dict[str, Json] = {}
    total = 0
    for entry in state:
        if entry.kind != "constant" or not _LITERAL.match(entry.target):
            continue
        raw = given.get(entry.value)
        wanted = specs[entry.value].elements * specs[entry.value].dtype.bytes
        if raw is None or len(raw) != wanted:
            found = "not known" if raw is None else f"{len(raw)} bytes"
            raise BadInput(
                f"forward makes the tensor {entry.target!r} ({wanted} bytes) from numbers in its code and its content"
                f" is {found}; register it as a buffer in the constructor to export this module"
            )
        total += len(raw)
        if total > MAX_CONSTANT_BYTES:
            raise BadInput(
                f"the tensors that forward makes from numbers in its code exceed {MAX_CONSTANT_BYTES:,} bytes;"
                " register them as buffers in the constructor to export this module"
            )
        packed[entry.value] = base64.b64encode(zlib.compress(raw, 9)).decode()
    return packed


class _Flow:
    """When each buffer of a plan is made, last used, and written."""

    def __init__(self, plan: BoundPlan) -> None:
        self._plan = plan
        self._signatures = kernel_signatures(plan.source)
        everything = (*plan.prepare, *plan.steps)
        self.used = {name for step in everything for name in _names(step)}
        self.used |= {*plan.results, *plan.updates}
        in_steps = {name for step in plan.steps for name in _names(step)} | set(plan.results)
        in_prepare = list(dict.fromkeys(name for step in plan.prepare for name in _names(step)))
        self.kept = [n for n in in_prepare if n in plan.buffers and n in in_steps]
        self.prepare_reads = [n for n in in_prepare if n in plan.given]
        self._written_later = self._later_writes(everything)
        self._sources: dict[str, set[str]] = {}
        self._position = 0
        self.prepare = self._encode(plan.prepare, set(self.kept), set())
        self.steps = self._encode(plan.steps, {*self.kept, *plan.results}, set(self.kept))

    def _later_writes(self, steps: Sequence[BoundStep]) -> list[set[str]]:
        """Per step, the buffers that kernels after it write."""
        later: list[set[str]] = [set()]
        for step in reversed(steps[1:]):
            later.append(later[-1] | (self._writes(step) if isinstance(step, BoundKernel) else set()))
        return later[::-1]

    def _writes(self, step: BoundKernel) -> set[str]:
        signature = self._signatures.get(step.entry)
        params = signature.params if signature and len(signature.params) == len(step.args) else None
        return {
            a
            for i, a in enumerate(step.args)
            if isinstance(a, str) and not (params is not None and params[i].const)
        }

    def _encode(self, steps: Sequence[BoundStep], stay: set[str], there: set[str]) -> list[Json]:
        """Steps as JSON. `stay`: buffers to keep to the end; `there`: buffers that exist before."""
        last = {name: i for i, step in enumerate(steps) for name in _names(step)}
        encoded: list[Json] = []
        for i, step in enumerate(steps):
            buffers = [n for n in _names(step) if n in self._plan.buffers]
            drop: list[Json] = [n for n in buffers if last[n] == i and n not in stay]
            if isinstance(step, BoundKernel):
                make: list[Json] = [n for n in buffers if n not in there]
                encoded.append(_kernel(step, make, drop))
            else:
                # Only zeroed buffers can be read before anything wrote them.
                make = [n for n in step.reads if n in self._plan.buffers and n not in there]
                encoded.append({**_library(step, self._own(step)), "make": make, "drop": drop})
            there |= set(buffers)
            self._position += 1
        return encoded

    def _own(self, step: BoundLibrary) -> list[Json]:
        """The arguments whose memory this operation's results may not share, because a kernel writes one later."""
        reads = list(dict.fromkeys(step.reads))
        sources = set(reads).union(*(self._sources.get(name, set()) for name in reads))
        outputs = {name for name in step.outputs if name is not None}
        for name in outputs:
            self._sources[name] = sources
        return list[Json](reads) if (sources | outputs) & self._written_later[self._position] else []


def _names(step: BoundStep) -> list[str]:
    """Tensors a step touches, each once."""
    if isinstance(step, BoundKernel):
        return list(dict.fromkeys(a for a in step.args if isinstance(a, str)))
    return list(dict.fromkeys([*step.reads, *(o for o in step.outputs if o is not None)]))


def _kernel(step: BoundKernel, make: list[Json], drop: list[Json]) -> Json:
    args: list[Json] = [a if isinstance(a, str) else [a.ctype, a.value] for a in step.args]
    return {
        "kernel": step.entry,
        "grid": list(step.grid),
        "block": list(step.block),
        "shared": step.shared_bytes,
        "args": args,
        "make": make,
        "drop": drop,
    }


def _library(step: BoundLibrary, own: list[Json]) -> dict[str, Json]:
    return {
        "op": step.op,
        "args": [_argument(a) for a in step.args],
        "kwargs": {key: _argument(a) for key, a in step.kwargs.items()},
        "outputs": list(step.outputs),
        "own": own,
    }


def _argument(argument: Argument) -> Json:
    if isinstance(argument, tuple):
        return [_argument(item) for item in argument]
    if isinstance(argument, SpecialArgument):
        return argument.model_dump(mode="json", exclude_none=True)
    return argument
