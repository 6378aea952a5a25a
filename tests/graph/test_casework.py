"""Who makes which trials: the user's module, or the GPU itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from graph.casework import HEAVY_BYTES, Bench, drawn_trials, module_kinds
from graph.soak import MODULE_TRIALS, module_trials
from memory.records import Problem
from tests.problems import scaled_relu_problem
from tools.devices.build import DeviceSpec
from tools.footprint import traffic_bytes
from tools.inputs import Distribution
from tools.policy import DEFAULT_DISTRIBUTIONS, Policy
from tools.trial import Trial

GPU = DeviceSpec("cuda", "NVIDIA H200")
LIGHT, HEAVY = scaled_relu_problem(), scaled_relu_problem(1, 1 << 26)
"""HEAVY: 256 MiB of weights beside an input and an output of the same size."""


def bench(problem: Problem, twin: Problem | None = None, device: DeviceSpec = GPU) -> Bench:
    return Bench(problem, twin or problem, Policy(), device, Path("/nowhere"), 60.0, lambda i, _: i)


def made_by_the_module(judged: Bench) -> tuple[Trial, ...]:
    return tuple(Trial(i, kind, Path(f"/nowhere/{i}")) for i, kind in enumerate(module_kinds(judged)))


def test_light_trials_are_the_modules_own() -> None:
    assert module_kinds(bench(LIGHT)) == DEFAULT_DISTRIBUTIONS
    assert drawn_trials(bench(LIGHT), made_by_the_module(bench(LIGHT))) == ()


def test_of_heavy_trials_the_module_makes_two_and_the_gpu_draws_every_other_kind() -> None:
    judged = bench(HEAVY)
    assert traffic_bytes(HEAVY) >= HEAVY_BYTES
    assert module_kinds(judged) == (Distribution.AUTHOR, Distribution.NORMAL)
    drawn = drawn_trials(judged, made_by_the_module(judged))
    assert {t.distribution for t in drawn} | set(module_kinds(judged)) == set(DEFAULT_DISTRIBUTIONS)
    assert all(t.move_weights for t in drawn if t.distribution not in module_kinds(judged))
    assert {t.base.distribution for t in drawn} == set(module_kinds(judged))


def test_a_problem_with_a_light_twin_is_drawn_at_its_own_shapes_besides() -> None:
    judged = bench(HEAVY, LIGHT)
    assert module_kinds(judged) == DEFAULT_DISTRIBUTIONS
    assert len(drawn_trials(judged, made_by_the_module(judged))) == 3


def test_where_the_gpu_may_not_draw_the_module_makes_everything() -> None:
    for judged in (replace(bench(HEAVY), draws=False), bench(HEAVY, device=DeviceSpec("simulator", "h200"))):
        assert module_kinds(judged) == DEFAULT_DISTRIBUTIONS
    untrusted = replace(bench(HEAVY), draws=False)
    assert drawn_trials(untrusted, made_by_the_module(untrusted)) == ()


def test_a_soak_asks_the_module_for_fewer_trials_the_larger_they_are() -> None:
    assert module_trials(1 << 20) == MODULE_TRIALS
    assert module_trials(1 << 29) == 4
    assert module_trials(1 << 40) == 1
