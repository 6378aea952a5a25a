"""An exported plan that is replayed as a CUDA graph, on a launcher whose graphs are Python functions.

Covers: when steps are captured again, what is copied in and out, updates. Does not cover: real capture, which
tests/gpu/test_export_on_gpu.py does.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from memory.records import Problem
from tests.tools.export_cases import exported, mixed, mixed_program
from tests.tools.test_export_runs import Ran, on_cpu, pair

__all__ = ["mixed"]

Values = dict[str, torch.Tensor]


class Replaying:
    """Adds graphs to a CPU launcher: a replay runs the steps again and leaves their results where the first were."""

    captures = 0
    replays = 0
    broken = False

    def capture(self, device: torch.device, forward: Callable[[], Values]) -> Any:  # noqa: ARG002
        if self.broken:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.captures += 1
        forward()
        made = forward()

        def replay() -> None:
            self.replays += 1
            for name, value in forward().items():
                if value is not made[name]:
                    made[name].copy_(value)

        return replay, made


@pytest.fixture
def model(mixed: Problem, tmp_path: Path) -> tuple[Any, Any, Any, Ran]:
    """The original, the replayed export, its launcher, and what ran."""
    program = mixed_program().model_copy(update={"replay": True})
    module = exported(mixed, program, tmp_path)
    build, ran = on_cpu(module)
    kind = type("Launcher", (Replaying, type(build._warpsmith_launcher)), {})
    build._warpsmith_launcher = kind()
    old, new = pair(module, build, 32)
    return old, new, build._warpsmith_launcher, ran


def same(new: Any, old: Any) -> Any:
    x = torch.randn(6, 32)
    with torch.no_grad():
        got, wanted = new(x), old(x)
    assert new.warpsmith_fallback_reason is None
    torch.testing.assert_close(got, wanted)
    return got


def test_one_capture_serves_every_call_and_each_result_is_its_callers(
    model: tuple[Any, Any, Any, Ran],
) -> None:
    old, new, launcher, _ = model
    first = same(new, old)
    kept = [tensor.clone() for tensor in first]
    for _ in range(3):
        same(new, old)
    assert (launcher.captures, launcher.replays) == (1, 4)
    assert all(torch.equal(a, b) for a, b in zip(first, kept, strict=True)), "a later call wrote to a result"
    assert int(new.count) == int(old.count) == 4


def test_weights_changed_in_place_are_seen_and_replaced_ones_are_captured_again(
    model: tuple[Any, Any, Any, Ran],
) -> None:
    old, new, launcher, _ = model
    same(new, old)
    with torch.no_grad():
        for module in (old, new):
            module.linear.bias.mul_(3.0)
    same(new, old)
    assert launcher.captures == 1, "the graph reads the bias where it lies"
    with torch.no_grad():
        for module in (old, new):
            module.linear.weight.add_(1.0)
    same(new, old)
    bias = torch.rand(32)
    for module in (old, new):
        module.linear.bias = torch.nn.Parameter(bias.clone())
    before = launcher.captures
    same(new, old)
    assert launcher.captures == before + 1


def test_a_copy_of_the_module_captures_for_itself(model: tuple[Any, Any, Any, Ran]) -> None:
    old, new, launcher, _ = model
    same(new, old)
    twin, original = copy.deepcopy(new), copy.deepcopy(old)
    same(twin, original)
    assert launcher.captures == 2


def test_a_weight_in_another_layout_is_run_step_by_step(model: tuple[Any, Any, Any, Ran]) -> None:
    old, new, launcher, _ = model
    weight = old.linear.weight.detach().t().contiguous().t()
    for module in (old, new):
        module.linear.weight = torch.nn.Parameter(weight.clone(memory_format=torch.preserve_format))
    same(new, old)
    assert launcher.captures == 0


def test_steps_that_cannot_be_captured_leave_the_original(model: tuple[Any, Any, Any, Ran]) -> None:
    old, new, launcher, _ = model
    launcher.broken = True
    x = torch.randn(6, 32)
    with torch.no_grad(), pytest.warns(RuntimeWarning, match="falling back"):
        torch.testing.assert_close(new(x), old(x))
    assert "capturing" in new.warpsmith_fallback_reason


def test_a_launcher_without_graphs_runs_the_steps(mixed: Problem, tmp_path: Path) -> None:
    module = exported(mixed, mixed_program().model_copy(update={"replay": True}), tmp_path)
    build, ran = on_cpu(module)
    old, new = pair(module, build, 32)
    same(new, old)
    assert ran.entries == ["transpose", "bias_relu", "column_sums", "advance"]
