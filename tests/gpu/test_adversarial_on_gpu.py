"""The programs named for their lies, on a GPU: each must fail there too, and its honest twin must pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from memory.records import Evaluation, Program, Status
from tests.adversarial.test_lying_programs import HONEST, LIES
from tests.cases import scaled_relu_case
from tools.case import Case
from tools.devices.build import DeviceSpec, cuda_spec
from tools.policy import Policy
from tools.pool import LocalPool
from tools.worker import EvaluationJob, WorkerSpec

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]

HARMLESS_HERE = {"asks_for_fifty_gigabytes"}
"""No lie on a GPU that has them."""
BY_THE_SIMULATOR = {"races_through_shared_memory"}
"""A race that changes no result on this hardware: a winner is examined on the simulator, which sees it."""


@pytest.fixture(scope="module")
def pool(cache_dir: Path) -> Iterator[LocalPool]:
    """One worker that owns the GPU, and a spare."""
    with LocalPool(WorkerSpec(cuda_spec(), cache_dir), 1, spares=1, compilers=4) as opened:
        yield opened.warm()


@pytest.fixture(scope="module")
def simulator(cache_dir: Path) -> Iterator[LocalPool]:
    """A simulated GPU beside the real one."""
    spec = DeviceSpec("simulator", "h200", timeout_s=10.0)
    with LocalPool(WorkerSpec(spec, cache_dir), 1) as opened:
        yield opened


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """relu(x * weight), with a short deadline for what never ends."""
    made = scaled_relu_case(tmp_path)
    return replace(made, policy=Policy.model_validate({**made.policy.model_dump(), "deadline_s": 6.0}))


def patient(case: Case) -> Case:
    """The same with time for the simulator's first compile."""
    return replace(case, policy=Policy.model_validate({**case.policy.model_dump(), "deadline_s": 90.0}))


def verdict(pool: LocalPool, program: Program, case: Case) -> Evaluation:
    found = pool.evaluate(EvaluationJob(program, case))
    assert found is not None
    return found


@pytest.mark.parametrize("lie", sorted(set(LIES) - HARMLESS_HERE))
def test_a_lie_is_caught(lie: str, pool: LocalPool, simulator: LocalPool, case: Case) -> None:
    program, _ = LIES[lie]
    evaluation = verdict(pool, program, case)
    if lie in BY_THE_SIMULATOR and evaluation.status is Status.PASSED:
        examined = simulator.evaluate(EvaluationJob(program, patient(case), kind="sanitize"))
        assert examined is not None and examined.status is Status.SANITIZER_ERROR
        return
    assert evaluation.status is not Status.PASSED, evaluation.diagnostics
    assert evaluation.timing is None and evaluation.diagnostics[0].message


@pytest.mark.parametrize("twin", HONEST)
def test_an_honest_twin_passes(twin: str, pool: LocalPool, simulator: LocalPool, case: Case) -> None:
    evaluation = verdict(pool, HONEST[twin], case)
    assert evaluation.status is Status.PASSED, evaluation.diagnostics
    assert evaluation.timing is not None and evaluation.timing.source == "measured"
    assert simulator.evaluate(EvaluationJob(HONEST[twin], patient(case), kind="sanitize")) is None
