"""Guard zones, poison and uploads, on a torch device that every machine has."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from memory.records import DType, TensorSpec
from tests.problems import scaled_relu_problem, scaled_relu_program
from tools.arrays import Array
from tools.binding import BoundPlan, bind
from tools.devices.cuda_memory import GUARD_BYTES, CudaMemory, UploadCache, storage_of, to_host

CPU = torch.device("cpu")
PLAN: BoundPlan = bind(scaled_relu_program(), scaled_relu_problem())


def given() -> dict[str, Array]:
    generator = np.random.default_rng(0)
    return {
        n: generator.standard_normal(s.shape, dtype=np.float32).astype(np.float32)
        for n, s in PLAN.given.items()
    }


@pytest.fixture
def filled() -> tuple[CudaMemory, dict[str, torch.Tensor]]:
    arrays, cache = given(), UploadCache(CPU, 1 << 20)
    uploads = {name: cache.get(arrays[name], spec) for name, spec in PLAN.given.items()}
    memory = CudaMemory(PLAN, ["y"], CPU)
    memory.fill(uploads, 0xFF)
    return memory, uploads


Filled = tuple[CudaMemory, dict[str, torch.Tensor]]


def test_inputs_arrive_and_buffers_are_poisoned(filled: Filled) -> None:
    tensors = filled[0].tensors()
    assert np.array_equal(to_host(tensors["x"]), given()["x"])
    assert torch.isnan(tensors["y"]).all()
    assert filled[0].breached(0xFF) == [] and filled[0].changed(filled[1]) == []


@pytest.mark.parametrize("offset", [-1, 33 * 40, 33 * 40 + 1000])
def test_a_write_outside_a_tensor_is_counted(filled: Filled, offset: int) -> None:
    y = filled[0].tensors()["y"]
    start = y.storage_offset() + offset
    y.as_strided((1,), (1,), start).fill_(1.0)
    (clause,) = filled[0].breached(0xFF)
    assert clause == f"4 bytes {'before' if offset < 0 else 'after'} 'y'"


def test_a_changed_input_is_named(filled: Filled) -> None:
    filled[0].tensors()["weight"][0] += 1
    assert filled[0].changed(filled[1]) == ["weight"]


def test_an_input_that_holds_nan_is_not_changed_by_being_left_alone() -> None:
    arrays, cache = given(), UploadCache(CPU, 1 << 20)
    arrays["x"][0, 0] = np.float32("nan")
    uploads = {name: cache.get(arrays[name], spec) for name, spec in PLAN.given.items()}
    memory = CudaMemory(PLAN, ["y"], CPU)
    memory.fill(uploads, 0xFF)
    assert memory.changed(uploads) == []


@pytest.mark.parametrize(
    "spec",
    [
        TensorSpec(shape=(3, 4), dtype=DType.F32, strides=(1, 3)),
        TensorSpec(shape=(3, 4), dtype=DType.F32, strides=(0, 1)),
        TensorSpec(shape=(3, 4), dtype=DType.F32, strides=(10, 2)),
        TensorSpec.dense((0, 4), DType.F32),
        TensorSpec.dense((), DType.F32),
    ],
)
def test_strides_survive_the_upload(spec: TensorSpec) -> None:
    rows = np.broadcast_to(np.arange(4, dtype=np.float32), (3, 4))
    array: Array = rows[: spec.shape[0]] if spec.shape else np.full((), 7, np.float32)
    tensor = storage_of(spec, UploadCache(CPU, 1 << 20).get(array, spec), CPU)
    assert tuple(tensor.stride()) == spec.strides and tuple(tensor.shape) == spec.shape
    assert np.array_equal(tensor.numpy(), array)


def test_uploads_are_kept_by_array_and_bounded() -> None:
    spec = TensorSpec.dense((256,), DType.F32)
    arrays = [np.full(256, i, np.float32) for i in range(4)]
    cache = UploadCache(CPU, 2 * spec.bytes)
    first = cache.get(arrays[0], spec)
    assert cache.get(arrays[0], spec) is first
    for array in arrays[1:]:
        cache.get(array, spec)
    assert cache.get(arrays[0], spec) is not first


def test_every_tensor_is_aligned_as_a_vector_load_needs() -> None:
    memory = CudaMemory(PLAN, ["y"], CPU)
    assert all((t.storage_offset() * 4 - GUARD_BYTES) % 512 == 0 for t in memory.tensors().values())
