"""The verifier's order of stages, the reduced twin, and what a verdict records."""

from __future__ import annotations

from pathlib import Path

from memory.records import Buffer, DType, LibraryStep, Stage, Status
from tests.cases import scaled_relu_case
from tests.problems import KERNEL, scaled_relu_problem, scaled_relu_program, scaled_relu_step
from tools.devices.port import Device
from tools.evaluation import check_trials, evaluate


def test_the_first_failing_stage_ends_the_evaluation(simulated_h200: Device, tmp_path: Path) -> None:
    case = scaled_relu_case(tmp_path)
    broken = {
        Stage.SCHEMA: scaled_relu_program(steps=(scaled_relu_step(args=("x",)),)),
        Stage.LINT: scaled_relu_program('#include "x.h"\n' + KERNEL),
        Stage.COMPILE: scaled_relu_program(KERNEL.replace("float v", "flaot v")),
        Stage.SANITIZE: scaled_relu_program(KERNEL.replace("i < ROWS * COLS", "i <= ROWS * COLS")),
        Stage.CORRECTNESS: scaled_relu_program(KERNEL.replace("0.0f", "1.0f")),
    }
    for stage, program in broken.items():
        evaluation = evaluate(program, case, simulated_h200)
        assert evaluation.stage is stage, evaluation.diagnostics
        assert evaluation.timing is None
        reached = list(evaluation.seconds)
        assert Stage.TIMING.value not in reached


def test_an_out_of_bounds_access_names_kernel_buffer_index_and_line(
    simulated_h200: Device, tmp_path: Path
) -> None:
    program = scaled_relu_program(KERNEL.replace("i < ROWS * COLS", "i <= ROWS * COLS"))
    evaluation = evaluate(program, scaled_relu_case(tmp_path), simulated_h200)
    finding = evaluation.diagnostics[0]
    assert finding.rule == "out_of_bounds"
    assert finding.line == 5
    for word in ("scaled_relu", "x[1320]"):
        assert word in finding.message


def test_a_large_problem_is_verified_at_its_twin_and_timed_at_its_own_shapes(
    simulated_h200: Device, tmp_path: Path
) -> None:
    large, twin = scaled_relu_problem(16384, 4096), scaled_relu_problem(16, 4096)
    evaluation = evaluate(scaled_relu_program(), scaled_relu_case(tmp_path, large, twin), simulated_h200)
    assert evaluation.status is Status.PASSED, evaluation.diagnostics
    assert evaluation.timing is not None
    assert evaluation.timing.median_us > 100
    assert evaluation.timing.floor_us < evaluation.timing.median_us
    assert evaluation.problem_hash == large.content_hash()


def test_a_program_that_hard_codes_a_size_fails_at_the_twin(simulated_h200: Device, tmp_path: Path) -> None:
    large, twin = scaled_relu_problem(1024, 64), scaled_relu_problem(8, 64)
    # Counts down from the last element of the large problem.
    fixed = scaled_relu_program(KERNEL.replace("int i =", "int i = 65535 -"))
    evaluation = evaluate(fixed, scaled_relu_case(tmp_path, large, twin), simulated_h200)
    assert evaluation.status is Status.INCORRECT


def test_a_plan_of_library_calls_alone_passes_and_is_not_improved(
    simulated_h200: Device, tmp_path: Path
) -> None:
    buffers = tuple(Buffer(name=n, shape=("ROWS", "COLS"), dtype=DType.F32) for n in ("t", "y"))
    steps = (
        LibraryStep(op="aten.mul.Tensor", args=("x", "weight"), outputs=("t",)),
        LibraryStep(op="aten.relu.default", args=("t",), outputs=("y",)),
    )
    program = scaled_relu_program("", buffers=buffers, steps=steps, tunables=())
    evaluation = evaluate(program, scaled_relu_case(tmp_path), simulated_h200)
    assert evaluation.status is Status.PASSED, evaluation.diagnostics
    assert evaluation.timing is not None
    assert not evaluation.timing.improved
    assert evaluation.profile is not None
    assert evaluation.profile.authored_share == 0.0


def test_a_library_call_that_refuses_its_arguments_is_the_candidates_failure(
    simulated_h200: Device, tmp_path: Path
) -> None:
    steps = (LibraryStep(op="aten.mm.default", args=("x", "weight"), outputs=("y",)),)
    evaluation = evaluate(
        scaled_relu_program("", steps=steps, tunables=()), scaled_relu_case(tmp_path), simulated_h200
    )
    assert evaluation.status is Status.RUNTIME_ERROR
    assert "aten.mm.default" in evaluation.diagnostics[0].message


def test_a_fused_kernel_is_modelled_as_faster_than_two_library_calls(
    simulated_h200: Device, tmp_path: Path
) -> None:
    problem = scaled_relu_problem(4096, 4096)
    case = scaled_relu_case(tmp_path, problem, scaled_relu_problem(8, 4096))
    evaluation = evaluate(scaled_relu_program(), case, simulated_h200)
    assert evaluation.timing is not None
    assert 1.2 < evaluation.timing.speedup < 4


def test_a_soak_is_silent_where_every_trial_passes(simulated_h200: Device, tmp_path: Path) -> None:
    case = scaled_relu_case(tmp_path)
    assert check_trials(scaled_relu_program(), case, simulated_h200) is None
    wrong = check_trials(scaled_relu_program(KERNEL.replace("0.0f", "0.1f")), case, simulated_h200)
    assert wrong is not None
    assert wrong.status is Status.INCORRECT
