"""Trials drawn on the device itself: at the problem's own shapes, thousands of them, with no file in between.

Here: the inputs of a seed, weights moved away from their base, and the captured graph run in float64 as the oracle.
Not here: trials that the user's own module makes (tools.reference), which come first: a graph is trusted as an oracle
only where it agrees with the module's float64 answers on every one of those (`disagreement`).
The values of a seed differ from those that tools.inputs draws on the host, and from one kind of device to another.
Covers: errors that only large shapes show, wrong weights or inputs kept from an earlier call, rare values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from memory.errors import OutOfDeviceMemory
from memory.records import DType, Graph, TensorSpec
from tools.arrays import Array, laid_out, tensor_from, torch_dtype
from tools.correctness import Comparison, Tolerance
from tools.eager_graph import operations, result_names
from tools.inputs import SPECIAL_VALUES, Distribution
from tools.tensor_compare import TensorSubject, compare_tensors, largest_error
from tools.trial import Trial, TrialData

Tensors = dict[str, torch.Tensor]
Upload = Callable[[Array, DType], torch.Tensor]
"""Brings a host array to the device; what it gives may be shared, and is only read."""

AGREEMENT = 1e-9
"""Relative error up to which two float64 evaluations of the same operations are called the same."""


@dataclass(frozen=True)
class DeviceTrial:
    """A seed and a distribution; `base` is the trial whose weights, and whose inputs' ranges, it starts from."""

    seed: int
    distribution: Distribution
    base: Trial
    move_weights: bool = False
    """Parameters are moved by up to half of themselves, so that no two trials have the same."""

    @property
    def about(self) -> str:
        """How records and messages name it."""
        return f"{self.distribution.value} at full size"


@dataclass(frozen=True)
class Answers:
    """Outputs and updated buffers of one trial, by graph name."""

    eager: Mapping[str, torch.Tensor]
    oracle: Mapping[str, torch.Tensor]
    """float64 where floating."""


class DeviceTrials:
    """Draws trials of one graph on a torch device, and judges results there."""

    def __init__(self, graph: Graph, device: torch.device, upload: Upload | None = None) -> None:
        """upload: one that keeps what it brought, since all trials start from a few sets of weights.

        Raises: BadInput for a graph with an operation that may not be called.
        """
        self._graph = graph
        self._device = device
        self._uploader = upload or self._copied
        self._eager = operations(graph, device)
        self._oracle = operations(graph, device, widen=True)
        self._names = (*graph.inputs, *(entry.value for entry in graph.state))

    def draw(self, trial: DeviceTrial, base: TrialData) -> Tensors:
        """Inputs and state by graph name, with the graph's shapes and strides. The same trial gives the same values.

        Raises: OutOfDeviceMemory.
        """
        with _fitting(self._device):
            return self._draw(trial, base)

    def _draw(self, trial: DeviceTrial, base: TrialData) -> Tensors:
        generator = torch.Generator(self._device).manual_seed(trial.seed)
        drawn: Tensors = {}
        for name in self._graph.inputs:
            spec = self._graph.values[name]
            values = _values(spec, trial.distribution, base.inputs[name], generator)
            drawn[name] = laid_out(values, spec)
        for entry in self._graph.state:
            spec = self._graph.values[entry.value]
            held = self._upload(base.state[entry.value], spec)
            moved = trial.move_weights and entry.kind == "parameter" and spec.dtype.is_floating
            drawn[entry.value] = laid_out(_moved(held, generator) if moved else held, spec)
        return drawn

    def answers(self, given: Mapping[str, torch.Tensor]) -> Answers:
        """What the oracle and eager PyTorch say. Raises: OutOfDeviceMemory."""
        with _fitting(self._device):
            eager = self._run(self._eager, given)
            return Answers(eager, self._run(self._oracle, {name: _wide(given[name]) for name in self._names}))

    def judge(
        self, answers: Answers, results: Mapping[str, torch.Tensor], about: str, rule: Tolerance
    ) -> list[Comparison]:
        """Compare results, by graph name, with the answers to the same inputs. `about` names the trial."""
        values = self._graph.values
        return [
            compare_tensors(
                mine,
                TensorSubject(name, about, answers.oracle[name], answers.eager[name], values[name].dtype),
                rule,
            )
            for name, mine in results.items()
        ]

    def disagreement(self, data: TrialData) -> str | None:
        """Why the graph cannot stand for the module, on a trial that the module made; None where it can."""
        given = {n: self._upload(data.inputs[n], self._graph.values[n]) for n in self._graph.inputs}
        given |= {
            e.value: self._upload(data.state[e.value], self._graph.values[e.value]) for e in self._graph.state
        }
        given = {name: laid_out(given[name], self._graph.values[name]) for name in self._names}
        try:
            mine = self._run(self._oracle, {name: _wide(tensor) for name, tensor in given.items()})
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, NotImplementedError) as error:
            return f"the captured graph cannot be run in float64: {str(error).splitlines()[0]}"
        for name in result_names(self._graph):
            theirs = torch.from_numpy(np.array(data.expected[name])).to(self._device)
            apart = largest_error(mine[name], theirs)
            if not apart <= AGREEMENT:
                return f"the captured graph's {name} differs from the module's in float64 by {apart:.2g}"
        return None

    def _run(self, forward: torch.fx.GraphModule, given: Mapping[str, torch.Tensor]) -> Tensors:
        with torch.no_grad():
            made: Sequence[torch.Tensor] = forward(*(given[name] for name in self._names))
        return dict(zip(result_names(self._graph), made, strict=True))

    def _upload(self, array: Array, spec: TensorSpec) -> torch.Tensor:
        return self._uploader(array, spec.dtype)

    def _copied(self, array: Array, dtype: DType) -> torch.Tensor:
        # A copy: trials are memory-mapped read-only.
        return tensor_from(np.array(array), dtype).to(self._device)


@contextmanager
def _fitting(device: torch.device) -> Iterator[None]:
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise OutOfDeviceMemory(
            f"a trial with its float64 oracle does not fit the memory of {device}: {str(error).splitlines()[0]}"
        ) from error


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _moved(held: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Each value moved by up to half of itself, zeros by up to 0.5, as tools.oracle does between trials."""
    noise = torch.rand(held.shape, generator=generator, device=held.device, dtype=torch.float32) - 0.5
    return torch.where(held == 0, noise, held * (1 + noise)).to(held.dtype)


def _values(
    spec: TensorSpec, distribution: Distribution, author: Array, generator: torch.Generator
) -> torch.Tensor:
    """Values of the spec's shape, one along broadcast dimensions; `author` holds the base trial's own."""
    shape = tuple(1 if stride == 0 else size for size, stride in zip(spec.shape, spec.strides, strict=True))
    if not spec.dtype.is_floating:
        return _integers(shape, spec.dtype, author, generator)
    if distribution is Distribution.AUTHOR:
        return _picked(shape, tensor_from(np.array(author), spec.dtype), generator)
    return draw_on_device(shape, spec.dtype, distribution, generator)


def _integers(
    shape: tuple[int, ...], dtype: DType, author: Array, generator: torch.Generator
) -> torch.Tensor:
    """Within the author's own range, so that indices and labels stay valid."""
    bounds = (int(author.min()), int(author.max())) if author.size and dtype is not DType.BOOL else (0, 1)
    return torch.randint(
        bounds[0], bounds[1] + 1, shape, generator=generator, device=generator.device, dtype=torch.int64
    ).to(torch_dtype(dtype))


def _picked(shape: tuple[int, ...], pool: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Elements picked at random, with replacement."""
    flat = pool.reshape(-1).to(generator.device)
    if not flat.numel():
        return torch.zeros(shape, dtype=pool.dtype, device=generator.device)
    where = torch.randint(0, flat.numel(), shape, generator=generator, device=generator.device)
    return flat[where]


def draw_on_device(
    shape: tuple[int, ...], dtype: DType, distribution: Distribution, generator: torch.Generator
) -> torch.Tensor:
    """Floating values of a distribution of tools.inputs, on the generator's device.

    Raises: ValueError for AUTHOR, which is no formula.
    """
    if distribution is Distribution.AUTHOR:
        raise ValueError("the author's inputs come from a trial of the module, not from a generator")
    working = torch.float64 if dtype is DType.F64 else torch.float32
    place = {"generator": generator, "device": generator.device}

    def normal(size: tuple[int, ...]) -> torch.Tensor:
        return torch.randn(size, dtype=working, **place)  # type: ignore[call-overload, no-any-return]

    def chance(probability: float) -> torch.Tensor:
        return torch.rand(shape, dtype=torch.float32, **place) < probability  # type: ignore[call-overload, no-any-return]

    if distribution is Distribution.CONSTANT_ROWS and shape:
        values = normal((*shape[:-1], 1)).expand(shape).contiguous()
    elif distribution is Distribution.UNIFORM:
        values = torch.rand(shape, dtype=working, **place) * 2 - 1  # type: ignore[call-overload]
    else:
        values = normal(shape)
    if distribution is Distribution.LARGE:
        values *= 10 if dtype is DType.F16 else 100
        values[chance(1 / 64)] *= 10
        if dtype is not DType.F16:
            values[chance(1 / 4096)] *= 10
    elif distribution is Distribution.TINY:
        values *= 1e-4
    elif distribution is Distribution.ZEROS_MIXED:
        values[chance(0.5)] = 0
    elif distribution is Distribution.SORTED and shape:
        values = values.sort(dim=-1).values
    elif distribution is Distribution.SPECIAL and values.numel():
        count = max(1, values.numel() // 4096)
        for special in SPECIAL_VALUES:
            where = torch.randint(0, values.numel(), (count,), **place)  # type: ignore[call-overload]
            values.view(-1)[where] = special
    return values.to(torch_dtype(dtype))
