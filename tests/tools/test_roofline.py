"""Floors and modelled library times: units, monotony, and the shape of the timeline."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.records import DType, Graph, Node, TensorSpec, Work
from tools.devices.cuda_race import LEAD_US
from tools.gpus import GPUS, gpu_for_arch, gpu_named
from tools.roofline import (
    EVENT_US,
    HOST_LEAD_US,
    StepTime,
    demand,
    eager_times,
    floor_us,
    library_flops,
    library_time,
    timeline_us,
)
from tools.work import Call

H200 = gpu_named("h200")
ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT / "benchmarks" / "suite"


def spec(*shape: int, dtype: DType = DType.F32) -> TensorSpec:
    return TensorSpec.dense(shape, dtype)


def test_a_copy_of_eight_and_a_half_gigabytes_takes_two_milliseconds_at_least() -> None:
    assert floor_us(Work(flops=0, min_bytes=8_600_000_000), DType.F32, H200) == pytest.approx(2000)


def test_a_large_matrix_product_is_bound_by_compute() -> None:
    work = Work(flops=2 * 8192**3, min_bytes=3 * 8192**2 * 4)
    assert floor_us(work, DType.F32, H200) == pytest.approx(2 * 8192**3 / 400e6)


def test_matrix_products_count_two_operations_for_each_multiply_add() -> None:
    assert library_flops("aten.mm.default", [spec(4, 5), spec(5, 6)], [spec(4, 6)]) == 2 * 4 * 5 * 6
    addmm = library_flops("aten.addmm.default", [spec(6), spec(4, 5), spec(5, 6)], [spec(4, 6)])
    assert addmm == 2 * 4 * 5 * 6


def test_a_convolution_counts_its_taps() -> None:
    reads = [spec(2, 3, 8, 8), spec(16, 3, 3, 3)]
    assert library_flops("aten.convolution.default", reads, [spec(2, 16, 6, 6)]) == 2 * 2 * 16 * 36 * 27


def test_a_view_costs_no_device_time() -> None:
    square = spec(4096, 4096)
    call = Call("aten.permute.default", ("x", (1, 0)), {}, ("x",), (square,), (square,))
    assert library_time(call, H200).device_us == 0


def test_short_operations_are_bound_by_the_host() -> None:
    assert timeline_us([StepTime(1.0, 10.0)] * 100) == pytest.approx(1000 - HOST_LEAD_US + 1 + EVENT_US)


def test_the_hosts_lead_is_the_one_that_races_on_a_gpu_give() -> None:
    assert HOST_LEAD_US == LEAD_US


def chain(length: int, *shape: int) -> Graph:
    """`length` activations in a row."""
    names = ["x", *(f"y{i}" for i in range(length))]
    nodes = tuple(
        Node(name=after, op="aten.relu.default", args=(before,), outputs=(after,))
        for before, after in pairwise(names)
    )
    return Graph(values=dict.fromkeys(names, spec(*shape)), inputs=("x",), nodes=nodes, outputs=(names[-1],))


def test_many_short_operations_are_called_host_bound_and_long_ones_are_not() -> None:
    short, long = (demand(eager_times(chain(30, *shape), H200)) for shape in ((64, 64), (8192, 8192)))
    assert short.host_bound and short.host_us == pytest.approx(30 * H200.host_torch_us)
    assert not long.host_bound and long.device_us > long.host_us
    assert not demand(eager_times(chain(3, 64, 64), H200)).host_bound


def test_a_single_launch_pays_for_its_own_issue_once_the_lead_is_spent() -> None:
    lead = StepTime(0.0, HOST_LEAD_US)
    launch = StepTime(1.6, H200.host_launch_us)
    assert timeline_us([lead, launch]) == pytest.approx(H200.host_launch_us + 1.6 + EVENT_US)


def recurrent(op: str, gates: int) -> Graph:
    """Problems 36 and 39 of KernelBench level 3 without their heads: 6 layers of 256 features, 512 steps, 10 rows."""
    weights = {f"w{layer}": spec(gates * 256, 128 if layer == 0 else 256) for layer in range(6)}
    weights |= {f"r{layer}": spec(gates * 256, 256) for layer in range(6)}
    values = {"x": spec(512, 10, 128), "h": spec(6, 10, 256), "y": spec(512, 10, 256), **weights}
    args = ("x", "h", tuple(weights), False, 6, 0.0, False, False, False)
    return Graph(
        values=values,
        inputs=("x", "h", *weights),
        nodes=(Node(name="y", op=f"aten.{op}.input", args=args, outputs=("y",)),),
        outputs=("y",),
    )


@pytest.mark.parametrize(("op", "gates", "measured_us"), [("gru", 3, 98_886), ("lstm", 4, 60_179)])
def test_recurrent_layers_take_about_as_long_as_measured_on_an_h200(
    op: str, gates: int, measured_us: float
) -> None:
    (time,) = eager_times(recurrent(op, gates), H200)
    assert measured_us / 1.2 < time.device_us < measured_us * 1.2


def test_writing_into_a_part_of_its_own_tensor_costs_eager_no_copy_of_the_whole() -> None:
    big, row = spec(4096, 4096), spec(4096)
    values = {"x": big, "own": big, "part": row, "filled": row, "y": big}
    nodes = (
        Node(name="own", op="aten.relu.default", args=("x",), outputs=("own",)),
        Node(name="part", op="aten.select.int", args=("own", 0, 0), outputs=("part",)),
        Node(name="filled", op="aten.fill.Scalar", args=("part", 1.0), outputs=("filled",)),
        Node(name="y", op="aten.select_scatter.default", args=("own", "filled", 0, 0), outputs=("y",)),
    )
    times = eager_times(Graph(values=values, inputs=("x",), nodes=nodes, outputs=("y",)), H200)
    assert times[3] == StepTime(0.0, 0.0)
    assert times[2].device_us < 2 * H200.launch_us < times[0].device_us


def test_a_gathered_table_counts_for_the_rows_that_are_taken() -> None:
    table, index, rows = spec(1_000_000, 64), TensorSpec.dense((10,), DType.I64), spec(10, 64)
    call = Call("aten.embedding.default", ("w", "i"), {}, ("w", "i"), (table, index), (rows,))
    assert library_time(call, H200).device_us < 1.01 * H200.launch_us


def test_eager_is_never_modelled_below_the_floor_on_every_fifth_problem_of_the_suite() -> None:
    files = sorted(str(path) for path in SUITE.rglob("*.py"))[::5]
    assert len(files) >= 40
    command = [sys.executable, "-W", "ignore", "-m", "tests.tools.suite_times", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=280)
    for line in done.stdout.splitlines():
        found = json.loads(line)
        # Not even where launches are free, so that no small size hides a wrong count.
        assert found["work_us"] >= found["floor_us"] > 0, found
        assert found["eager_us"] == pytest.approx(found["library_us"]), found
    assert len(done.stdout.splitlines()) == len(files)


def test_long_operations_hide_the_host() -> None:
    assert timeline_us([StepTime(1000.0, 10.0)] * 3) == pytest.approx(3000 + EVENT_US)


@given(st.lists(st.tuples(st.floats(0, 1e4), st.floats(0, 100)), min_size=1, max_size=20))
def test_a_timeline_is_at_least_the_device_work_and_at_most_everything_in_turn(
    steps: list[tuple[float, float]],
) -> None:
    times = [StepTime(device, host) for device, host in steps]
    total = timeline_us(times)
    assert total >= sum(t.device_us for t in times) - 1e-6
    assert total <= EVENT_US + sum(t.device_us + t.host_us for t in times) + 1e-6


@pytest.mark.parametrize("name", GPUS)
def test_every_gpu_is_found_by_its_architecture(name: str) -> None:
    assert gpu_named(name.upper()).name == name
    assert gpu_for_arch(GPUS[name].arch).arch == GPUS[name].arch
