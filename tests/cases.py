"""Cases made by hand for `tests.problems`: trials computed with NumPy, so that no child process is needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from memory.records import Problem
from tests.problems import scaled_relu_problem
from tools.arrays import Array
from tools.baselines import modelled_eager
from tools.case import Case
from tools.gpus import gpu_named
from tools.inputs import Distribution, draw_floats
from tools.policy import Policy
from tools.trial import Manifest, Trial, write_array, write_manifest

DISTRIBUTIONS = (
    Distribution.NORMAL,
    Distribution.UNIFORM,
    Distribution.ZEROS_MIXED,
    Distribution.LARGE,
    Distribution.SPECIAL,
)


def scaled_relu_case(folder: Path, problem: Problem | None = None, twin: Problem | None = None) -> Case:
    """The case of relu(x * weight): trials at the twin's shapes, the modelled eager baseline."""
    problem = problem or scaled_relu_problem()
    twin = twin or problem
    policy = Policy(distributions=DISTRIBUTIONS, deadline_s=60.0)
    trials = tuple(_trial(twin, seed, d, folder / str(seed)) for seed, d in enumerate(DISTRIBUTIONS))
    return Case(problem, twin, trials, (modelled_eager(problem.graph, gpu_named("h200")),), policy)


def _trial(problem: Problem, seed: int, distribution: Distribution, folder: Path) -> Trial:
    generator = np.random.default_rng(seed)
    values = problem.graph.values
    x = draw_floats(values["x"].shape, values["x"].dtype, distribution, generator)
    weight = generator.random(values["weight"].shape, dtype=np.float32)
    expected = np.maximum(x.astype(np.float64) * weight.astype(np.float64), 0.0)
    eager = np.maximum(x * weight, np.float32(0))
    arrays: dict[str, dict[str, Array]] = {
        "inputs": {"x": x},
        "state": {"weight": weight},
        "expected": {"relu": expected},
        "eager": {"relu": eager},
    }
    for place, members in arrays.items():
        for name, array in members.items():
            write_array(folder / place / f"{name}.npy", array)
    names: dict[str, tuple[str, ...]] = {place: tuple(members) for place, members in arrays.items()}
    write_manifest(folder, Manifest(seed=seed, distribution=distribution, **names))
    return Trial(seed, distribution, folder)
