"""What a library step runs: composite operations taken apart, views with their strides."""

from __future__ import annotations

import pytest

from memory.records import Argument, DType, TensorSpec
from tools.binding import BoundLibrary
from tools.devices.dispatched import dispatched
from tools.gpus import gpu_named
from tools.roofline import library_time

H200 = gpu_named("h200")


def spec(*shape: int) -> TensorSpec:
    return TensorSpec.dense(shape, DType.F32)


def step(op: str, *args: Argument, outputs: tuple[str, ...] = ("y",)) -> BoundLibrary:
    return BoundLibrary(op, args, {}, outputs)


def device_us(of: BoundLibrary, specs: dict[str, TensorSpec]) -> float:
    return sum(library_time(call, H200).device_us for call in dispatched(of, specs).calls)


@pytest.mark.parametrize(
    ("composite", "plain"),
    [
        (step("aten.softmax.int", "x", -1), step("aten._softmax.default", "x", -1, False)),
        (step("aten.matmul.default", "x", "w"), step("aten.mm.default", "x", "w")),
        (
            step("aten.conv2d.default", "image", "taps"),
            step("aten.convolution.default", "image", "taps", None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1),
        ),
        (
            step("aten.layer_norm.default", "x", (4096,)),
            step("aten.native_layer_norm.default", "x", (4096,), None, None, 1e-5),
        ),
    ],
)
def test_a_composite_operation_costs_what_it_dispatches(composite: BoundLibrary, plain: BoundLibrary) -> None:
    specs = {"x": spec(4096, 4096), "w": spec(4096, 4096), "image": spec(8, 16, 64, 64)}
    specs |= {"taps": spec(32, 16, 3, 3), "y": spec(4096, 4096)}
    if "conv" in plain.op:
        specs["y"] = spec(8, 32, 62, 62)
    assert device_us(composite, specs) == pytest.approx(device_us(plain, specs), rel=0.01)


def test_a_view_keeps_the_strides_that_later_steps_read_through() -> None:
    specs = {"row": spec(1, 4096), "y": spec(4096, 4096)}
    (wide,) = dispatched(step("aten.expand.default", "row", (4096, 4096)), specs).results
    assert wide is not None and wide.bytes == 4 * 4096


def test_a_reshape_that_must_copy_counts_the_copy() -> None:
    turned = TensorSpec(shape=(64, 32), dtype=DType.F32, strides=(1, 64))
    specs = {"x": turned, "y": spec(2048)}
    calls = dispatched(step("aten.reshape.default", "x", (2048,)), specs).calls
    assert [call.short for call in calls if not call.is_view] == ["clone"]


def test_attention_and_recurrent_layers_stay_whole_as_in_a_graph() -> None:
    specs = {"q": spec(2, 4, 8, 16), "y": spec(2, 4, 8, 16)}
    (call,) = dispatched(step("aten.scaled_dot_product_attention.default", "q", "q", "q"), specs).calls
    assert call.short == "scaled_dot_product_attention"
