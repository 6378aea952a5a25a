"""Plans that keep convolutions channels-last: right for every shape of network, and no conversion between them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from memory.records import KernelStep, LibraryStep, Problem, Program
from tests.tools.recipes.subjects import Captured, captured, complaints, twin_of
from tools.devices.port import Device
from tools.gpus import gpu_named
from tools.program import validate
from tools.recipes.blueprints import Blueprint, blueprints, build


class Net(nn.Module):
    """Layers, and a function of them and the input."""

    def __init__(self, function: Callable[..., object], *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.function = function

    def forward(self, x: torch.Tensor) -> object:
        """(B, C, ...) -> whatever the function gives."""
        return self.function(x, *self.layers)


NETS: dict[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {
    "alone": lambda: (nn.Conv2d(3, 8, 3), torch.randn(2, 3, 9, 7)),
    "with_epilogue": lambda: (
        Net(lambda x, c: torch.tanh(c(x)) * 0.5 + 1, nn.Conv2d(3, 40, 3)), torch.randn(2, 3, 9, 9)
    ),
    "chain": lambda: (
        Net(lambda x, a, b: b(torch.relu(a(x))), nn.Conv2d(3, 8, 3, bias=False), nn.Conv2d(8, 6, 3, 2, 1)),
        torch.randn(2, 3, 9, 9),
    ),
    "directly": lambda: (nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 1)), torch.randn(2, 3, 7, 7)),
    "residual": lambda: (
        Net(lambda x, a, b: torch.relu(b(torch.relu(a(x))) + x), *(nn.Conv2d(4, 4, 3, 1, 1) for _ in range(2))),
        torch.randn(2, 4, 6, 6),
    ),
    "batch_norm": lambda: (
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 1)).eval(),
        torch.randn(2, 3, 8, 8),
    ),
    "transposed": lambda: (
        Net(lambda x, c: torch.softmax(c(x), 1).sigmoid(), nn.ConvTranspose2d(4, 6, 3, 2)), torch.randn(2, 4, 5, 5)
    ),
    "three_dimensions": lambda: (
        Net(lambda x, c: F.avg_pool3d(torch.relu(c(x)), 2), nn.Conv3d(2, 6, 3)), torch.randn(2, 2, 6, 6, 6)
    ),
    "branches": lambda: (
        Net(lambda x, a, b: torch.cat((a(x), torch.relu(b(x))), 1), nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, 3, 1, 1)),
        torch.randn(2, 3, 6, 6),
    ),
    "both_returned_and_read": lambda: (
        Net(lambda x, a, b: (lambda y: (y, b(y)))(torch.relu(a(x))), nn.Conv2d(3, 4, 1), nn.Conv2d(4, 2, 1)),
        torch.randn(2, 3, 6, 6),
    ),
    "of_a_view": lambda: (
        Net(lambda x, c: c(x[:, 1:].transpose(2, 3)).relu(), nn.Conv2d(3, 8, 3)), torch.randn(2, 4, 6, 7)
    ),
    "then_flat": lambda: (
        Net(lambda x, c, d: d(torch.relu(c(x)).flatten(1)), nn.Conv2d(3, 4, 3), nn.Linear(64, 5)),
        torch.randn(2, 3, 6, 6),
    ),
    "given_channels_last": lambda: (
        nn.Sequential(nn.Conv2d(3, 8, 3).to(memory_format=torch.channels_last), nn.ReLU()),  # type: ignore[call-overload]
        torch.randn(2, 3, 6, 6).to(memory_format=torch.channels_last),
    ),
}  # fmt: skip


def subject(name: str) -> Captured:
    """One of the networks, captured."""
    return captured(*NETS[name]())


def last(problem: Problem, twin: Problem | None = None) -> Blueprint:
    """The plan under test."""
    (found,) = [way for way in blueprints(problem, twin) if way.channels_last]
    return found


def calls(program: Program) -> list[str]:
    """Library calls of every forward, in order."""
    return [step.op.split(".")[1] for step in program.steps if isinstance(step, LibraryStep)]


@pytest.mark.parametrize("name", NETS)
def test_the_results_are_right_and_lie_as_pytorchs_do(name: str, simulated_h200: Device) -> None:
    this = subject(name)
    assert complaints(this, build(this.problem, last(this.problem)), simulated_h200) == []


@pytest.mark.parametrize("name", NETS)
def test_it_binds_to_other_shapes(name: str) -> None:
    this = subject(name)
    twin = twin_of(this)
    if twin is None:
        pytest.skip("it runs at no smaller shapes")
    program = build(this.problem, last(this.problem, twin.problem), twin.problem)
    for problem in (this.problem, twin.problem):
        assert [d.message for d in validate(program, problem, gpu_named("h200"))[1]] == []


@pytest.mark.parametrize(
    "name", ["with_epilogue", "chain", "directly", "residual", "batch_norm", "three_dimensions"]
)
def test_nothing_is_converted_but_by_kernels_and_weights_are_once(name: str) -> None:
    program = build((problem := subject(name).problem), last(problem))
    assert set(calls(program)) <= {"convolution", "permute"}
    prepared = [s for s in program.prepare if isinstance(s, LibraryStep) and s.op == "aten.clone.default"]
    assert len(prepared) == calls(program).count("convolution")


def test_a_convolution_alone_gets_its_input_and_its_result_through_tiles() -> None:
    program = build((problem := subject("alone").problem), last(problem))
    kernels = [step.entry for step in program.steps if isinstance(step, KernelStep)]
    assert kernels == ["r0_tiled", "r1_tiled"]


def test_what_has_no_convolution_has_no_such_plan() -> None:
    problem = captured(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.randn(2, 4)).problem
    assert not any(way.channels_last for way in blueprints(problem))
