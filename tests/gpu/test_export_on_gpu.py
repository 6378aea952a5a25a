"""Exports on a real GPU: `pytest -m gpu tests/gpu/test_export_on_gpu.py`.

Covers what the CPU tests cannot: NVRTC, shared memory above 48 KiB, launches on torch's streams, CUDA graphs, and
that a machine without a device, or without cuda-python, still gets results.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from memory.records import Buffer, KernelStep, Problem, Program, Tunable
from tests.tools.export_cases import (
    HALF,
    captured,
    exported,
    half_program,
    library_program,
    mixed,
    mixed_program,
    number,
    report_for,
)
from tools.export import export_module

__all__ = ["mixed"]

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]


@pytest.fixture(scope="module")
def arch() -> str:
    """This GPU's architecture as an export names it."""
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


@pytest.fixture(autouse=True)
def full_precision() -> Iterator[None]:
    """Convolutions without TF32, so that two ways to the same number agree."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32 = before


def pair(module: ModuleType, *args: object, name: str = "Model") -> tuple[Any, Any]:
    """Original and optimized module on the GPU with equal weights."""
    old = getattr(module, name)(*args).cuda()
    new = module.ModelNew(*args).cuda()
    new.load_state_dict(old.state_dict())
    return old, new


def agree(new: Any, old: Any, *args: object, rtol: float = 1e-5, atol: float = 1e-4) -> None:
    """The kernels ran, and their result is the original's."""
    with torch.no_grad():
        got = new(*args)
        reason = new.warpsmith_fallback_reason
        assert reason is None, f"the kernels did not run: {reason}"
        torch.testing.assert_close(got, old(*args), rtol=rtol, atol=atol)


@pytest.fixture
def pieces(mixed: Problem, arch: str, tmp_path: Path) -> tuple[Any, Any, torch.Tensor]:
    """MIXED's original and optimized module with an input."""
    old, new = pair(exported(mixed, mixed_program(), tmp_path, arch=arch), 32)
    return old, new, torch.randn(6, 32, device="cuda")


# --- kernels --------------------------------------------------------------------------------------------------


def test_a_library_step_prepared_weights_atomics_and_an_update(pieces: tuple[Any, Any, torch.Tensor]) -> None:
    old, new, x = pieces
    for _ in range(3):
        agree(new, old, x)
        x = torch.randn_like(x)
    assert int(new.count) == int(old.count) == 3


def test_a_replayed_export_follows_inputs_weights_and_streams(
    mixed: Problem, arch: str, tmp_path: Path
) -> None:
    program = mixed_program().model_copy(update={"replay": True})
    old, new = pair(exported(mixed, program, tmp_path, arch=arch), 32)
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []
    for call in range(4):
        x = torch.randn(6, 32, device="cuda")
        with torch.no_grad():
            kept.append((new(x)[0], old(x)[0]))
        assert new.warpsmith_fallback_reason is None
        if call == 1:
            for module in (old, new):
                with torch.no_grad():
                    module.linear.bias.mul_(2.0)
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        agree(new, old, torch.randn(6, 32, device="cuda"))
    torch.cuda.current_stream().wait_stream(side)
    agree(new, old, torch.randn(6, 32, device="cuda"))
    for mine, theirs in kept:
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-4)
    assert int(new.count) == int(old.count) == 6


NORM = """
import torch
class Model(torch.nn.Module):
    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(features) + 0.5)
        self.eps = eps
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight
def get_inputs():
    return [torch.randn(5, 24576)]
def get_init_inputs():
    return [24576]
"""

NORM_KERNEL = r"""
extern "C" __global__ void row_norm(const float* x, const float* weight, float* y, float eps) {
    extern __shared__ float row[];
    __shared__ float sums[32];
    const float* from = x + (long long)blockIdx.x * N;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += blockDim.x) { row[i] = from[i]; sum += row[i] * row[i]; }
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int w = 0; w < blockDim.x / 32; ++w) sum += sums[w];
    const float scale = rsqrtf(sum / N + eps);
    for (int i = threadIdx.x; i < N; i += blockDim.x)
        y[(long long)blockIdx.x * N + i] = row[i] * scale * weight[i];
}
"""


def test_a_row_kernel_with_96_kib_of_dynamic_shared_memory(arch: str, tmp_path: Path) -> None:
    problem = captured(NORM, tmp_path)
    program = Program(
        source=NORM_KERNEL,
        dims={"N": "x.shape[1]"},
        tunables=(Tunable(name="BLOCK", value=256, choices=(256,)),),
        buffers=(Buffer(name="y", shape=("x.shape[0]", "N"), dtype="f32"),),
        steps=(
            KernelStep(
                entry="row_norm",
                grid=("x.shape[0]", "1", "1"),
                block=("BLOCK", "1", "1"),
                shared_bytes="4 * N",
                args=("x", "weight", "y", number("float", 1e-6)),
            ),
        ),
        outputs=("y",),
    )
    old, new = pair(exported(problem, program, tmp_path, arch=arch), 24576)
    agree(new, old, torch.randn(5, 24576, device="cuda"))


def test_a_half_kernel_finds_its_header(arch: str, tmp_path: Path) -> None:
    problem = captured(HALF, tmp_path, "Scaled")
    old, new = pair(exported(problem, half_program(), tmp_path, arch=arch), name="Scaled")
    agree(new, old, torch.randn(9, 64, device="cuda").half(), rtol=0, atol=0)


BATCH = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3)
        self.norm = torch.nn.BatchNorm2d(8)
    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))
def get_inputs():
    return [torch.rand(4, 3, 16, 16)]
"""


def test_batch_norm_statistics_are_written_back(arch: str, tmp_path: Path) -> None:
    problem = captured(BATCH, tmp_path)
    old, new = pair(exported(problem, library_program(problem), tmp_path, arch=arch))
    for _ in range(2):
        agree(new, old, torch.rand(4, 3, 16, 16, device="cuda"), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(dict(new.named_buffers()), dict(old.named_buffers()), rtol=1e-4, atol=1e-5)
    assert int(new.norm.num_batches_tracked) == 2


def test_an_input_that_is_not_aligned_is_copied(arch: str, tmp_path: Path) -> None:
    problem = captured(HALF, tmp_path, "Scaled")
    old, new = pair(exported(problem, half_program(), tmp_path, arch=arch), name="Scaled")
    flat = torch.randn(9 * 64 + 1, device="cuda").half()
    agree(new, old, flat[1:].view(9, 64), rtol=0, atol=0)


# --- fallback -------------------------------------------------------------------------------------------------


def test_what_the_kernels_were_not_made_for_falls_back(pieces: tuple[Any, Any, torch.Tensor]) -> None:
    old, new, x = pieces
    with torch.no_grad():
        for given, word in ((torch.randn(7, 32, device="cuda"), "shape"), (x, None)):
            torch.testing.assert_close(new(given), old(given))
            assert (word or "None") in str(new.warpsmith_fallback_reason)
        with torch.autocast("cuda"):
            new(x)
        assert "autocast" in new.warpsmith_fallback_reason
    new(x)[0].sum().backward()
    assert "no backward" in new.warpsmith_fallback_reason and new.linear.weight.grad is not None
    with torch.no_grad():
        new.cpu()(x.cpu())
        assert "no CUDA device" in new.warpsmith_fallback_reason
        agree(new.cuda(), old, x)


def test_another_architecture_falls_back(mixed: Problem, tmp_path: Path) -> None:
    new = exported(mixed, mixed_program(), tmp_path, arch="sm_75").ModelNew(32).cuda()
    with torch.no_grad():
        new(torch.randn(6, 32, device="cuda"))
    assert "made for sm_75" in new.warpsmith_fallback_reason


def test_a_source_that_does_not_compile_falls_back_with_one_warning(
    mixed: Problem, arch: str, tmp_path: Path
) -> None:
    program = mixed_program()
    broken = program.model_copy(update={"source": program.source.replace("fmaxf(", "fmaxff(")})
    old, new = pair(exported(mixed, broken, tmp_path, arch=arch), 32)
    x = torch.randn(6, 32, device="cuda")
    with torch.no_grad():
        with pytest.warns(RuntimeWarning, match="cannot be built"):
            got = new(x)
        torch.testing.assert_close(got, old(x))
        new(x)
    assert "fmaxff" in new.warpsmith_fallback_reason


@pytest.mark.parametrize("missing", ["the device", "cuda-python"])
def test_a_machine_without_it_still_gets_results(
    missing: str, mixed: Problem, arch: str, tmp_path: Path
) -> None:
    (tmp_path / "winner.py").write_text(export_module(mixed, mixed_program(), report_for(mixed, arch=arch)))
    code = (
        "import sys, warnings, torch\n"
        f"if {missing!r} == 'cuda-python': sys.modules['cuda'] = None\n"
        "import winner\n"
        "device = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
        "model = winner.ModelNew(32).to(device)\n"
        "with warnings.catch_warnings(record=True) as said, torch.no_grad():\n"
        "    warnings.simplefilter('always')\n"
        "    for _ in range(2): y, _ = model(torch.randn(6, 32, device=device))\n"
        "print(device, tuple(y.shape), sum('falling back' in str(w.message) for w in said))\n"
        "print(model.warpsmith_fallback_reason)"
    )
    environment = dict(os.environ)
    if missing == "the device":
        environment["CUDA_VISIBLE_DEVICES"] = ""
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        env=environment,
    )
    assert found.returncode == 0, found.stderr
    wanted = "cpu (6, 32) 0" if missing == "the device" else "cuda (6, 32) 1"
    assert found.stdout.startswith(wanted), found.stdout


def a_stream() -> Any:
    """A stream beside the current one."""
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]


def stall() -> None:
    """Keep the current stream busy for about 0.1 s."""
    torch.cuda._sleep(200_000_000)  # type: ignore[no-untyped-call]


# --- weights, streams, graphs ---------------------------------------------------------------------------------


def test_changed_weights_are_prepared_again(pieces: tuple[Any, Any, torch.Tensor]) -> None:
    old, new, x = pieces
    agree(new, old, x)
    with torch.no_grad():
        for model in (old, new):
            model.linear.weight.mul_(2)
    agree(new, old, x)
    state = {
        name: value + 1 if value.is_floating_point() else value for name, value in old.state_dict().items()
    }
    for model in (old, new):
        model.load_state_dict(state)
    agree(new, old, x)
    for model in (old, new):
        model.half().float()
    agree(new, old, x)


def test_launches_go_to_the_current_stream(pieces: tuple[Any, Any, torch.Tensor]) -> None:
    old, new, x = pieces
    agree(new, old, x)
    later = torch.randn_like(x)
    stream = a_stream()
    torch.cuda.synchronize()
    with torch.no_grad(), torch.cuda.stream(stream):
        stall()
        x.copy_(later)
        got = new(x)
    assert new.warpsmith_fallback_reason is None
    stream.synchronize()
    with torch.no_grad():
        torch.testing.assert_close(got, old(later))


def test_weights_prepared_on_one_stream_serve_another(pieces: tuple[Any, Any, torch.Tensor]) -> None:
    old, new, x = pieces
    first, second = a_stream(), a_stream()
    torch.cuda.synchronize()
    with torch.no_grad():
        with torch.cuda.stream(first):
            stall()
            new(x)
        with torch.cuda.stream(second):
            got = new(x)
        torch.cuda.synchronize()
        torch.testing.assert_close(got, old(x))


def test_a_cuda_graph_replays_the_kernels(pieces: tuple[Any, Any, torch.Tensor]) -> None:
    old, new, x = pieces
    agree(new, old, x)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        with torch.cuda.graph(graph):
            got = new(x)
        assert new.warpsmith_fallback_reason is None
        x.copy_(torch.randn_like(x))
        graph.replay()
        torch.testing.assert_close(got, old(x))


def test_a_capture_before_the_first_call_falls_back(mixed: Problem, arch: str, tmp_path: Path) -> None:
    old, new = pair(exported(mixed, mixed_program(), tmp_path, arch=arch), 32)
    x = torch.randn(6, 32, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        old(x)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            got = new(x)
        assert "graph is being captured" in new.warpsmith_fallback_reason
        graph.replay()
        torch.testing.assert_close(got, old(x))
    agree(new, old, x)


def test_another_device_than_the_current_one_is_served(mixed: Problem, arch: str, tmp_path: Path) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    module = exported(mixed, mixed_program(), tmp_path, arch=arch)
    old, new = module.Model(32).to("cuda:1"), module.ModelNew(32).to("cuda:1")
    new.load_state_dict(old.state_dict())
    agree(new, old, torch.randn(6, 32, device="cuda:1"))


def test_a_call_costs_little_host_time(pieces: tuple[Any, Any, torch.Tensor]) -> None:
    _, new, x = pieces
    rounds = 300
    with torch.no_grad():
        for _ in range(20):
            new(x)
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(rounds):
            new(x)
        spent_us = (time.perf_counter() - started) / rounds * 1e6
        torch.cuda.synchronize()
    print(f"host time of a call with 3 kernels and 1 library step: {spent_us:.1f} us")  # noqa: T201
    assert new.warpsmith_fallback_reason is None
    assert spent_us < 300


def test_the_file_needs_nothing_of_this_project(mixed: Problem, arch: str, tmp_path: Path) -> None:
    (tmp_path / "winner.py").write_text(export_module(mixed, mixed_program(), report_for(mixed, arch=arch)))
    code = (
        "import sys\n"
        "for name in ('memory', 'tools', 'pydantic', 'tree_sitter'): sys.modules[name] = None\n"
        "import torch, winner\n"
        "model = winner.ModelNew(32).cuda()\n"
        "with torch.no_grad(): model(torch.randn(6, 32, device='cuda'))\n"
        "print(model.warpsmith_fallback_reason)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=200
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == "None", found.stdout


def test_the_original_stays_usable_beside_it(mixed: Problem, arch: str, tmp_path: Path) -> None:
    module = exported(mixed, mixed_program(), tmp_path, arch=arch)
    old, new = pair(module, 32)
    assert isinstance(new, module.Model)
    compiled: Any = torch.compile(new, backend="eager")
    x = torch.randn(6, 32, device="cuda")
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), old(x))
