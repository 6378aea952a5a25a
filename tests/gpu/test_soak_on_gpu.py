"""A soak of a problem with gigabytes of weights, on real hardware: `pytest -m gpu tests/gpu`."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from agents.schemas import Member
from graph.build import open_context, open_store
from graph.session import start_run
from graph.settings import Settings, resolve_settings
from graph.soak import soak
from memory.records import Candidate, Origin, Status
from tools.problem import parse_target
from tools.recipes.blueprints import blueprints, build
from tools.worker import EvaluationJob

MLP = Path(__file__).resolve().parents[2] / "benchmarks" / "suite" / "level3" / "001_mlp.py"
"""671 M weights."""
TRIALS = 200
LIMIT_S = 120.0

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]


def test_gigabytes_of_weights_are_judged_and_soaked_within_two_minutes(
    tmp_path: Path, note: Callable[[str], None]
) -> None:
    settings: Settings = resolve_settings(
        home=tmp_path / "home", export_dir=tmp_path / "out", soak_trials=TRIALS, device="cuda"
    )
    laps = [time.perf_counter()]
    with open_store(settings) as store:
        run = start_run(parse_target(str(MLP)), settings, store, lambda _: None)
        with open_context(run, store, settings, warm=True) as context:
            program = build(context.problem, blueprints(context.problem)[0])
            case = context.case
            laps.append(time.perf_counter())
            evaluation = context.pool.evaluate(EvaluationJob(program, case))
            assert evaluation is not None and evaluation.status is Status.PASSED, evaluation
            laps.append(time.perf_counter())
            origin = Origin(kind="outside", agent="test")
            candidate = Candidate(
                id=context.candidate_id("0"), run_id=run.id, program_hash=program.content_hash(),
                parents=(), generation=0, origin=origin, idea="fused activations",
            )  # fmt: skip
            told: list[tuple[int, float]] = []
            outcome = soak(
                Member(candidate, program, evaluation),
                context,
                lambda done: told.append((done, time.perf_counter())),
            )
            laps.append(time.perf_counter())
    capture_s, evaluate_s, soak_s = (after - before for before, after in itertools.pairwise(laps))
    each_ms = (told[-1][1] - told[0][1]) / (told[-1][0] - told[0][0]) * 1e3
    note(
        f"capture and baselines {capture_s:.1f} s, one candidate {evaluate_s:.1f} s, soak of {outcome.trials} trials "
        f"{soak_s:.1f} s, {each_ms:.0f} ms a drawn trial"
    )
    assert outcome.failure is None and outcome.trials == TRIALS
    assert laps[-1] - laps[0] < LIMIT_S
