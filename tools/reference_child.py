"""What a reference's child process does: one trial's inputs, weights, oracle and eager results, as files.

Here: the order of a trial and its files. Not here: inputs (tools.trial_inputs), weights and float64 (tools.oracle).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from memory.errors import BadInput
from memory.records import Graph, Problem, StateEntry
from tools.arrays import array_from, dtype_of
from tools.child_loop import Progress
from tools.graph_export import export
from tools.oracle import Weights, run, run_double, to_double
from tools.reference_records import ReferenceRequest, StartRequest, TrialRequest
from tools.trial import Manifest, write_array, write_manifest
from tools.trial_inputs import TrialInputs
from tools.user_module import UserModule, load


def make(progress: Progress) -> ReferenceHandler:
    """The handler that tools.child_loop asks for."""
    return ReferenceHandler(progress)


class ReferenceHandler:
    """Answers a StartRequest, then TrialRequests."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._bench: _Bench | None = None

    def handle(self, request: bytes) -> bytes:
        """Start, or write one trial's files."""
        wanted = ReferenceRequest.validate_json(request)
        if isinstance(wanted, StartRequest):
            user = load(wanted.target, self._progress)
            device = torch.device(wanted.device)
            weights = Weights(user, wanted.problem.training, device)
            self._bench = _Bench(user, wanted.problem, weights, TrialInputs(user, wanted.problem), device)
            return b""
        if self._bench is None:
            raise RuntimeError("a trial was asked for before the start")
        self._bench.trial(wanted)
        return b""


@dataclass(frozen=True)
class _Bench:
    user: UserModule
    problem: Problem
    weights: Weights
    inputs: TrialInputs
    device: torch.device

    def trial(self, wanted: TrialRequest) -> None:
        """Build, draw, run twice and write; the manifest last."""
        root, graph = Path(wanted.directory), self.problem.graph
        module = self.weights.build(wanted.seed)
        drawn = self.inputs.draw(wanted.seed, wanted.distribution)
        arguments = [v.to(self.device) if isinstance(v, torch.Tensor) else v for v in drawn]
        tensors = [v for v in arguments if isinstance(v, torch.Tensor)]
        inputs = dict(zip(graph.inputs, tensors, strict=True))
        state = self._state(module, arguments)
        self._write(root / "inputs", inputs)
        self._write(root / "state", state)
        twin = to_double(module)
        eager = self._named(self._eager(module, arguments), module)
        self._check(eager)
        self._write(root / "eager", eager)
        expected = self._named(run_double(self.user, twin, arguments), twin)
        self._check_shapes(expected, "in float64")
        self._write(root / "expected", {n: _widest(v) for n, v in expected.items()})
        names = (tuple(inputs), tuple(state), tuple(expected), tuple(eager))
        manifest = Manifest(
            seed=wanted.seed,
            distribution=wanted.distribution,
            inputs=names[0],
            state=names[1],
            expected=names[2],
            eager=names[3],
        )
        write_manifest(root, manifest)

    def _eager(self, module: nn.Module, arguments: Sequence[object]) -> list[torch.Tensor]:
        """Forward in the module's own precision, with its inputs checked unmodified."""
        tensors = [value for value in arguments if isinstance(value, torch.Tensor)]
        before = [tensor._version for tensor in tensors]
        outputs = run(self.user, module, arguments)
        for name, tensor, version in zip(self.problem.graph.inputs, tensors, before, strict=True):
            if tensor._version != version:
                raise BadInput(
                    f"{self.user.target.path}: forward changes its input {name!r} in place; copy it first"
                )
        return outputs

    def _state(self, module: nn.Module, arguments: Sequence[object]) -> dict[str, torch.Tensor]:
        entries = self.problem.graph.state
        named = _tensors_of(module)
        missing = [e for e in entries if e.target not in named]
        if missing:
            named |= self._literals(module, arguments, missing)
        return {entry.value: named[entry.target] for entry in entries}

    def _literals(
        self, module: nn.Module, arguments: Sequence[object], missing: Sequence[StateEntry]
    ) -> dict[str, torch.Tensor]:
        """Tensors written out in forward's own code: only an export gives them names."""
        with torch.no_grad():
            constants = export(self.user, module, arguments).constants
        absent = [entry.target for entry in missing if entry.target not in constants]
        if absent:
            raise BadInput(
                f"{self.user.target.path}: the value of {absent[0]!r} cannot be found in the module again"
            )
        return constants

    def _named(self, outputs: Sequence[torch.Tensor], module: nn.Module) -> dict[str, torch.Tensor]:
        """Outputs and updated buffers by their Graph names."""
        graph = self.problem.graph
        if len(outputs) != len(graph.outputs):
            raise BadInput(
                f"{self.user.target.path}: forward returned {len(outputs)} tensors, not the {len(graph.outputs)} of"
                " its capture; what it returns must not change from call to call"
            )
        named = dict(zip(graph.outputs, outputs, strict=True))
        held = _tensors_of(module)
        targets = {entry.value: entry.target for entry in graph.state}
        return named | {after: held[targets[before]] for before, after in graph.updates.items()}

    def _check(self, eager: dict[str, torch.Tensor]) -> None:
        self._check_shapes(eager, "")
        for name, tensor in eager.items():
            wanted = self.problem.graph.values[name].dtype
            if dtype_of(tensor.dtype) is not wanted:
                raise BadInput(
                    f"{self.user.target.path}: {name} is {tensor.dtype}, and {wanted.value} when captured"
                )

    def _check_shapes(self, found: dict[str, torch.Tensor], how: str) -> None:
        graph: Graph = self.problem.graph
        for name, tensor in found.items():
            if tuple(tensor.shape) != graph.values[name].shape:
                raise BadInput(
                    f"{self.user.target.path}: {name} has shape {tuple(tensor.shape)} {how}, and"
                    f" {graph.values[name].shape} when captured; it must not depend on values or on the dtype"
                )

    def _write(self, folder: Path, tensors: dict[str, torch.Tensor]) -> None:
        self.user.progress(f"writing {folder}")
        for name, tensor in tensors.items():
            write_array(folder / f"{name}.npy", array_from(tensor.detach().cpu().contiguous()))


def _tensors_of(module: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters, buffers and plain tensor attributes by their path in the module."""
    found: dict[str, torch.Tensor] = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        path = f"{prefix}." if prefix else ""
        attributes = [vars(part), part._parameters, part._buffers]
        for members in attributes:
            found |= {f"{path}{n}": v for n, v in members.items() if isinstance(v, torch.Tensor)}
    return found


def _widest(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor
