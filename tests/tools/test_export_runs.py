"""The runtime inside an exported file, on the CPU: a launcher whose kernels are Python functions on the same memory.

Covers: the plan's steps, the guards, prepared weights, results. Does not cover: compiling and launching, which
tests/gpu/test_export_on_gpu.py does.
"""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from memory.records import Buffer, KernelStep, LibraryStep, Problem, Program
from tests.tools.export_cases import (
    MIXED,
    captured,
    exported,
    imported,
    library_program,
    mixed,
    mixed_program,
    number,
    report_for,
)
from tools.export import export_module

__all__ = ["mixed"]

Kernel = Callable[..., None]


def floats(pointer: int, count: int) -> NDArray[np.float32]:
    """The float memory at an address."""
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(pointer))


def longs(pointer: int) -> NDArray[np.int64]:
    """The 64-bit integer at an address."""
    return np.ctypeslib.as_array((ctypes.c_longlong * 1).from_address(pointer))


def transpose(w: int, wt: int, n: ctypes.c_int) -> None:
    floats(wt, n.value**2)[:] = floats(w, n.value**2).reshape(n.value, -1).T.reshape(-1)


def bias_relu(h: int, bias: int, y: int, rows: ctypes.c_int, scale: ctypes.c_float) -> None:
    total = floats(h, rows.value * 32).reshape(-1, 32) + floats(bias, 32)
    floats(y, rows.value * 32)[:] = (np.maximum(total, 0) * np.float32(scale.value)).reshape(-1)


def column_sums(y: int, sums: int, rows: ctypes.c_int) -> None:
    floats(sums, 32)[:] += floats(y, rows.value * 32).reshape(-1, 32).sum(0)


def advance(count: int, following: int, by: ctypes.c_longlong) -> None:
    longs(following)[:] = longs(count) + by.value


def double(y: int) -> None:
    floats(y, 8)[:] *= 2


KERNELS: dict[str, Kernel] = {
    "transpose": transpose,
    "bias_relu": bias_relu,
    "column_sums": column_sums,
    "advance": advance,
    "double": double,
}


@dataclass
class Ran:
    """What the CPU launcher launched: entries, and (grid, block, shared bytes) of each."""

    entries: list[str] = field(default_factory=list)
    configs: list[object] = field(default_factory=list)


def on_cpu(module: ModuleType, kernels: dict[str, Kernel] | None = None) -> tuple[Any, Ran]:
    """A subclass of the export's class whose plan runs on the CPU, and the record of its launches."""
    runtime: Any = module
    ran = Ran()
    table = KERNELS if kernels is None else kernels

    class Launcher(runtime._WarpsmithLauncher):  # type: ignore[misc]
        def why_not(self, *_: object) -> str | None:
            return None

        def build(self, device: torch.device, plan: Any) -> Any:
            ready = [((g, b, s), (e, table[e])) for e, g, b, s in plan.launches]
            return runtime._WarpsmithBound(device, launch, ready)

        def stream(self, *_: object) -> tuple[object, object]:
            return "stream", None

    def launch(_: object, config: object, kernel: tuple[str, Kernel], *args: Any) -> None:
        ran.entries.append(kernel[0])
        ran.configs.append(config)
        kernel[1](*args)

    class OnCpu(runtime.ModelNew):  # type: ignore[misc]
        _warpsmith_launcher = Launcher()

    return OnCpu, ran


def pair(module: ModuleType, build: Any, *args: object) -> tuple[Any, Any]:
    """Original and optimized module with equal weights."""
    old = module.Model(*args)
    new = build(*args)
    new.load_state_dict(old.state_dict())
    return old, new


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


# --- the plan -------------------------------------------------------------------------------------------------


def test_every_kind_of_step_runs_as_the_plan_says(mixed: Problem, tmp_path: Path) -> None:
    module = exported(mixed, mixed_program(), tmp_path)
    build, ran = on_cpu(module)
    old, new = pair(module, build, 32)
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(6, 32)
            y, sums = new(x)
            assert new.warpsmith_fallback_reason is None
            torch.testing.assert_close((y, sums), old(x))
    assert int(new.count) == 3
    assert ran.entries == ["transpose", *["bias_relu", "column_sums", "advance"] * 3]
    assert ran.configs[:2] == [((16, 1, 1), (64, 1, 1), 0), ((3, 1, 1), (64, 1, 1), 0)]


NORM = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.shift = torch.arange(4.0).reshape(4, 1, 1)
    def forward(self, x, slope, mode="none"):
        x = self.norm(self.conv(x)) + self.shift
        x = torch.nn.functional.gelu(x * slope, approximate=mode).clamp(min=-float("inf"))
        parts = torch.split(x.to(torch.float64).contiguous(memory_format=torch.channels_last), 2, dim=1)
        return [torch.cat(parts, 1).float(), x.amax((2, 3))]
def get_inputs():
    return [torch.rand(2, 3, 8, 8), 0.5]
"""


def test_library_steps_carry_every_kind_of_argument(tmp_path: Path) -> None:
    problem = captured(NORM, tmp_path)
    module = exported(problem, library_program(problem), tmp_path)
    build, _ = on_cpu(module)
    old, new = pair(module, build)
    x = torch.rand(2, 3, 8, 8)
    for _ in range(2):
        with torch.no_grad():
            wanted, got = old(x, 0.5), new(x, 0.5)
        assert new.warpsmith_fallback_reason is None
        assert isinstance(got, list)
        torch.testing.assert_close(got, wanted)
        torch.testing.assert_close(dict(new.named_buffers()), dict(old.named_buffers()))
    assert int(new.norm.num_batches_tracked) == 2


def test_arguments_that_are_no_tensors_must_be_the_captured_ones(tmp_path: Path) -> None:
    problem = captured(NORM, tmp_path)
    build, _ = on_cpu(exported(problem, library_program(problem), tmp_path))
    model = build()
    x = torch.rand(2, 3, 8, 8)
    with torch.no_grad():
        state = torch.get_rng_state()
        model(x, slope=0.5)
        assert model.warpsmith_fallback_reason is None
        assert torch.equal(state, torch.get_rng_state())
        for arguments, word in (
            ((x, 0.25), "argument 1"),
            ((x, 0.5, "tanh"), "argument 2"),
            ((x, 1), "argument 1"),
        ):
            model(*arguments)
            assert word in str(model.warpsmith_fallback_reason)
    with pytest.raises(TypeError):
        model()


def test_arguments_given_on_the_command_line_are_known_without_get_inputs(tmp_path: Path) -> None:
    problem = captured(NORM.replace("get_inputs", "unused"), tmp_path, inputs="f32[2,3,8,8],0.5")
    build, _ = on_cpu(exported(problem, library_program(problem), tmp_path))
    model = build()
    with torch.no_grad():
        model(torch.rand(2, 3, 8, 8), 0.5)
        assert model.warpsmith_fallback_reason is None
        model(torch.rand(2, 3, 8, 8), 2.0)
        assert "argument 1" in str(model.warpsmith_fallback_reason)


def test_plain_tensor_attributes_and_literals_reach_the_plan(tmp_path: Path) -> None:
    source = MIXED.replace(
        "y = torch.relu", "x = x * torch.tensor([[3.0], [4.0]]).sum()\n        y = torch.relu"
    )
    problem = captured(source, tmp_path)
    name = next(entry.value for entry in problem.graph.state if entry.kind == "constant")
    values = {name: torch.tensor([[3.0], [4.0]]).numpy().tobytes()}
    module = exported(problem, library_program(problem), tmp_path, constants=values)
    build, _ = on_cpu(module)
    old, new = pair(module, build, 32)
    x = torch.randn(6, 32)
    with torch.no_grad():
        torch.testing.assert_close(new(x), old(x))
    assert new.warpsmith_fallback_reason is None


# --- results and inputs ---------------------------------------------------------------------------------------

DOUBLE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.reshape(8) * 2
def get_inputs():
    return [torch.rand(2, 4)]
"""


def test_a_kernel_that_writes_in_place_cannot_reach_the_input_through_a_view(tmp_path: Path) -> None:
    problem = captured(DOUBLE, tmp_path)
    program = Program(
        source='extern "C" __global__ void double_all(float* y) { y[threadIdx.x] *= 2; }',
        buffers=(Buffer(name="flat", shape=("8",), dtype="f32"), Buffer(name="y", shape=("8",), dtype="f32")),
        steps=(
            LibraryStep(op="aten.view.default", args=("x", (8,)), outputs=("flat",)),
            LibraryStep(op="aten.view.default", args=("flat", (8,)), outputs=("y",)),
            KernelStep(entry="double_all", grid=("1", "1", "1"), block=("8", "1", "1"), args=("y",)),
        ),
        outputs=("y",),
    )
    build, _ = on_cpu(exported(problem, program, tmp_path), {"double_all": double})
    x = torch.rand(2, 4)
    before = x.clone()
    model = build()
    with torch.no_grad():
        y = model(x)
    assert model.warpsmith_fallback_reason is None
    assert torch.equal(x, before) and torch.equal(y, before.reshape(8) * 2)


def test_a_returned_prepared_weight_belongs_to_the_caller(tmp_path: Path) -> None:
    source = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(4))
    def forward(self, x):
        return x + 1, self.w * 2
def get_inputs():
    return [torch.rand(4)]
"""
    problem = captured(source, tmp_path)
    program = Program(
        source="",
        buffers=(Buffer(name="y", shape=("4",), dtype="f32"), Buffer(name="w2", shape=("4",), dtype="f32")),
        prepare=(LibraryStep(op="aten.mul.Tensor", args=("w", 2), outputs=("w2",)),),
        steps=(LibraryStep(op="aten.add.Tensor", args=("x", 1), outputs=("y",)),),
        outputs=("y", "w2"),
    )
    build, _ = on_cpu(exported(problem, program, tmp_path))
    model = build()
    with torch.no_grad():
        model(torch.rand(4))[1].zero_()
        assert model(torch.rand(4))[1].tolist() == [2, 2, 2, 2]
    assert model.warpsmith_fallback_reason is None


@pytest.mark.parametrize("kind", ["transposed", "unaligned", "expanded"])
def test_inputs_laid_out_otherwise_are_copied(kind: str, mixed: Problem, tmp_path: Path) -> None:
    module = exported(mixed, mixed_program(), tmp_path)
    build, _ = on_cpu(module)
    old, new = pair(module, build, 32)
    x = {
        "transposed": torch.randn(32, 6).t(),
        "unaligned": torch.randn(6 * 32 + 1)[1:].view(6, 32),
        "expanded": torch.randn(1, 32).expand(6, 32),
    }[kind]
    with torch.no_grad():
        torch.testing.assert_close(new(x), old(x))
    assert new.warpsmith_fallback_reason is None


# --- prepared weights -----------------------------------------------------------------------------------------


def in_place(model: Any) -> None:
    model.linear.weight.mul_(3)


def optimizer_step(model: Any) -> None:
    model.linear.weight.grad = torch.ones_like(model.linear.weight)
    torch.optim.SGD(model.parameters(), lr=0.5).step()


def load(model: Any) -> None:
    model.load_state_dict({name: value + 1 for name, value in model.state_dict().items()})


def assign(model: Any) -> None:
    model.load_state_dict({k: v + 1 for k, v in model.state_dict().items()}, assign=True)


def new_parameter(model: Any) -> None:
    model.linear.weight = torch.nn.Parameter(torch.randn(32, 32))


def new_data(model: Any) -> None:
    model.linear.weight.data = torch.randn(32, 32)


def there_and_back(model: Any) -> None:
    model.half().float()


def inner_there_and_back(model: Any) -> None:
    model.linear.half().float()


def data_and_forget(model: Any) -> None:
    model.linear.weight.data.mul_(3)
    model.warpsmith_forget()


@pytest.mark.parametrize(
    "change",
    [
        in_place,
        optimizer_step,
        load,
        assign,
        new_parameter,
        new_data,
        there_and_back,
        inner_there_and_back,
        data_and_forget,
    ],
)
def test_changed_weights_are_prepared_again(
    change: Callable[[Any], None], mixed: Problem, tmp_path: Path
) -> None:
    module = exported(mixed, mixed_program(), tmp_path)
    build, ran = on_cpu(module)
    model = build(32)
    x = torch.randn(6, 32)
    with torch.no_grad():
        model(x)
        change(model)
        got = model(x)
        assert model.warpsmith_fallback_reason is None
        model(x)
        torch.testing.assert_close(got, module.Model.forward(model, x))
    assert ran.entries.count("transpose") == 2


def test_a_copy_prepares_its_own_weights(mixed: Problem, tmp_path: Path) -> None:
    build, ran = on_cpu(exported(mixed, mixed_program(), tmp_path))
    model = build(32)
    x = torch.randn(6, 32)
    with torch.no_grad():
        first = model(x)
        twin = copy.deepcopy(model)
        twin.linear.weight.zero_()
        twin.linear.bias.fill_(1)
        assert torch.equal(twin(x)[0], torch.full((6, 32), 2.0))
        assert twin.warpsmith_fallback_reason is None
        assert torch.equal(model(x)[0], first[0])
    assert ran.entries.count("transpose") == 2


def test_weights_made_in_inference_mode_are_prepared_at_every_call(mixed: Problem, tmp_path: Path) -> None:
    build, ran = on_cpu(exported(mixed, mixed_program(), tmp_path))
    with torch.inference_mode():
        model = build(32)
        x = torch.randn(6, 32)
        model(x)
        model.linear.weight.zero_()
        model.linear.bias.fill_(1)
        assert torch.equal(model(x)[0], torch.full((6, 32), 2.0))
        assert model.warpsmith_fallback_reason is None
    assert ran.entries.count("transpose") == 2


# --- guards ---------------------------------------------------------------------------------------------------


def hook(model: Any) -> None:
    model.linear.register_forward_hook(lambda *_: None)


def replace_inside(model: Any) -> None:
    model.linear = torch.nn.Linear(32, 32)


def evaluate(model: Any) -> None:
    model.eval()


def evaluate_inside(model: Any) -> None:
    model.linear.eval()


def parametrize(model: Any) -> None:
    torch.nn.utils.parametrize.register_parametrization(model.linear, "weight", torch.nn.Identity())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (hook, "a Linear inside has hooks"),
        (replace_inside, "modules inside were replaced"),
        (evaluate, "made for training mode"),
        (evaluate_inside, "a Linear inside is in another mode"),
        (parametrize, "the module has no parameter linear.weight"),
        (torch.nn.Module.half, "f32"),
    ],
)
def test_a_changed_module_falls_back(
    change: Callable[[Any], None], reason: str, mixed: Problem, tmp_path: Path
) -> None:
    module = exported(mixed, mixed_program(), tmp_path)
    build, ran = on_cpu(module)
    model = build(32)
    change(model)
    x = torch.randn(6, 32).to(next(model.parameters()).dtype)
    with torch.no_grad():
        torch.testing.assert_close(model(x), module.Model.forward(model, x))
    assert reason.replace("f32", "torch.float16") in model.warpsmith_fallback_reason
    assert not ran.entries


class Mine(torch.Tensor):
    """A tensor subclass, which may mean anything by its operations."""


def test_other_inputs_fall_back_with_the_reason(mixed: Problem, tmp_path: Path) -> None:
    module = exported(mixed, mixed_program(), tmp_path)
    build, ran = on_cpu(module)
    model = build(32)
    x = torch.randn(6, 32)
    with torch.no_grad():
        for given, reason in (
            (torch.randn(7, 32), "x has shape [7, 32], not [6, 32]"),
            (torch.randn(2, 3, 32), "x has shape [2, 3, 32], not [6, 32]"),
        ):
            model(given)
            assert model.warpsmith_fallback_reason == reason
        with pytest.raises(RuntimeError):
            model(x.double())
        assert model.warpsmith_fallback_reason == "x is torch.float64, not torch.float32"
        model(x.as_subclass(Mine))
        assert "x is a Mine" in model.warpsmith_fallback_reason
        torch.func.vmap(lambda row: torch.func.functional_call(model, {}, (row,)))(x[None])
        assert "no memory of its own" in model.warpsmith_fallback_reason
    assert not ran.entries


def test_a_wanted_gradient_falls_back(mixed: Problem, tmp_path: Path) -> None:
    build, ran = on_cpu(exported(mixed, mixed_program(), tmp_path))
    model = build(32)
    model(torch.randn(6, 32))[0].sum().backward()
    assert "no backward" in model.warpsmith_fallback_reason
    model.requires_grad_(False)
    model(torch.randn(6, 32, requires_grad=True))[0].sum().backward()
    assert "no backward" in model.warpsmith_fallback_reason
    assert not ran.entries
    model(torch.randn(6, 32))
    assert model.warpsmith_fallback_reason is None


def test_autocast_and_deterministic_mode_fall_back(mixed: Problem, tmp_path: Path) -> None:
    build, ran = on_cpu(exported(mixed, mixed_program(), tmp_path))
    model = build(32)
    x = torch.randn(6, 32)
    with torch.no_grad():
        torch.use_deterministic_algorithms(True)
        try:
            model(x)
        finally:
            torch.use_deterministic_algorithms(False)
        assert "deterministic" in model.warpsmith_fallback_reason
        torch.set_autocast_enabled("cuda", True)
        try:
            model(x)
        finally:
            torch.set_autocast_enabled("cuda", False)
        assert "autocast" in model.warpsmith_fallback_reason
    assert not ran.entries


@pytest.mark.parametrize(
    ("arguments", "runs"), [((32,), True), ((32, 2.0), True), ((32, 3.0), False), ((32, 2), False)]
)
def test_other_constructor_arguments_fall_back(
    arguments: tuple[float, ...], runs: bool, mixed: Problem, tmp_path: Path
) -> None:
    module = exported(mixed, mixed_program(), tmp_path)
    build, _ = on_cpu(module)
    model = build(*arguments)
    x = torch.randn(6, 32)
    with torch.no_grad():
        torch.testing.assert_close(model(x), module.Model.forward(model, x))
    assert (model.warpsmith_fallback_reason is None) is runs
    if not runs:
        assert "constructed with other arguments than the verified [32]" in model.warpsmith_fallback_reason


def test_a_failing_step_gives_the_device_up_with_one_warning(mixed: Problem, tmp_path: Path) -> None:
    def broken(*_: object) -> None:
        raise ValueError("no such luck")

    module = exported(mixed, mixed_program(), tmp_path)
    build, _ = on_cpu(module, {**KERNELS, "column_sums": broken})
    model = build(32)
    x = torch.randn(6, 32)
    with torch.no_grad():
        with pytest.warns(RuntimeWarning, match="falling back to the original PyTorch module: a step failed"):
            y, _ = model(x)
        model(x)
        assert int(model.count) == 2
        torch.testing.assert_close(y, module.Model.forward(model, x)[0])
    assert "no such luck" in model.warpsmith_fallback_reason


def test_a_kernel_that_cannot_be_built_gives_the_device_up_with_one_warning(
    mixed: Problem, tmp_path: Path
) -> None:
    build, _ = on_cpu(exported(mixed, mixed_program(), tmp_path), {})
    model = build(32)
    with torch.no_grad():
        with pytest.warns(RuntimeWarning, match="cannot be built for cpu"):
            model(torch.randn(6, 32))
        model(torch.randn(6, 32))
    assert "cannot be built" in model.warpsmith_fallback_reason


def test_compiled_modules_trace_the_original(mixed: Problem, tmp_path: Path) -> None:
    module = exported(mixed, mixed_program(), tmp_path)
    build, ran = on_cpu(module)
    model = build(32)
    with torch.no_grad():
        compiled: Any = torch.compile(model, backend="eager", fullgraph=True)
        y, _ = compiled(torch.randn(6, 32))
    assert y.shape == (6, 32) and not ran.entries


def test_shallow_copies_fall_back(mixed: Problem, tmp_path: Path) -> None:
    build, ran = on_cpu(exported(mixed, mixed_program(), tmp_path))
    twin = copy.copy(build(32))
    with torch.no_grad():
        twin(torch.randn(6, 32))
    assert "shallow copy" in twin.warpsmith_fallback_reason and not ran.entries


def test_a_shadowed_builtin_does_not_change_the_runtime(mixed: Problem, tmp_path: Path) -> None:
    source = MIXED + "\nlen = all = zip = type = isinstance = dict = list = tuple = str = getattr = None\n"
    target = mixed.target.model_copy(update={"source": source})
    problem = mixed.model_copy(update={"target": target})
    text = export_module(problem, mixed_program(), report_for(problem))
    build, _ = on_cpu(imported(text, tmp_path))
    model = build(32)
    with torch.no_grad():
        model(torch.randn(6, 32))
    assert model.warpsmith_fallback_reason is None


def test_scalars_have_the_declared_types(mixed: Problem, tmp_path: Path) -> None:
    seen: list[object] = []
    program = mixed_program()
    first = program.steps[-1]
    assert isinstance(first, KernelStep)
    kinds = {
        "int": ctypes.c_int,
        "unsigned int": ctypes.c_uint,
        "long long": ctypes.c_longlong,
        "unsigned long long": ctypes.c_ulonglong,
        "float": ctypes.c_float,
        "double": ctypes.c_double,
    }
    extra = tuple(number(k, 2.5 if k in ("float", "double") else "N + 1") for k in kinds)
    changed = first.model_copy(update={"args": (*first.args, *extra)})
    program = program.model_copy(update={"steps": (*program.steps[:-1], changed)})

    def look(count: int, following: int, by: ctypes.c_longlong, *rest: object) -> None:
        seen.extend(rest)
        advance(count, following, by)

    build, _ = on_cpu(exported(mixed, program, tmp_path), {**KERNELS, "advance": look})
    with torch.no_grad():
        build(32)(torch.randn(6, 32))
    assert [type(value) for value in seen] == list(kinds.values())
    assert [value.value for value in seen] == [33, 33, 33, 33, 2.5, 2.5]  # type: ignore[attr-defined]
