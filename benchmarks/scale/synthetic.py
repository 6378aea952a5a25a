"""A pool that answers at once with made-up verdicts, for measuring everything around it.

The times in them are invented: a smooth function of a program's tunables with a little of its hash, so that a search
has slopes to follow, and one program in twelve fails. Nothing of it is ever a result.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from math import cos

from memory.errors import WarpsmithError
from memory.records import (
    Diagnostic,
    Evaluation,
    Profile,
    Program,
    Stage,
    Status,
    StepProfile,
    Timing,
    TrialError,
)
from tools.devices.port import Baselines
from tools.worker import BaselineJob, EvaluationJob

FAIL_EVERY = 12
"""One program in so many fails, by its hash."""
FLOOR_SHARE = 0.1
"""Invented floor, as a share of eager's time; no program comes near it, so no search stops there."""
STEPS = 5


class SyntheticPool:
    """Answers without a device. Counts what it was asked, so that a second asking shows."""

    def __init__(self, device: str, fails: Callable[[EvaluationJob], bool] | None = None) -> None:
        """device: the run's, under whose name its verdicts are looked for. fails: which programs do."""
        self._device = device
        self._fails = fails or _one_in_many
        self._lock = threading.Lock()
        self.asked: Counter[str] = Counter()
        """Program hash -> evaluations asked for, soaks not counted."""

    @property
    def callers(self) -> int:
        """See EvaluationPool."""
        return 2

    def warm(self) -> None:
        """See EvaluationPool."""

    def measure_baselines(self, job: BaselineJob) -> Baselines:  # noqa: ARG002
        """See EvaluationPool. A simulator's baselines are modelled, so nobody asks."""
        raise WarpsmithError("no baselines can be measured without a device")

    def evaluate(self, job: EvaluationJob) -> Evaluation | None:
        """See EvaluationPool."""
        if job.kind == "soak":
            return None
        digest = job.program.content_hash()
        with self._lock:
            self.asked[digest] += 1
        case = job.case
        eager = case.baselines[0]
        common = {
            "program_hash": digest,
            "problem_hash": case.problem_hash,
            "policy_hash": case.policy_hash,
            "device": self._device,
            "errors": tuple(
                TrialError(
                    distribution=t.distribution.value, output="y", error=1e-7, eager_error=1e-7, allowed=1e-6
                )
                for t in case.trials
            ),
            "seconds": {stage.value: 0.0 for stage in Stage},
        }
        if self._fails(job):
            why = Diagnostic(
                stage=Stage.CORRECTNESS, rule="wrong_values", message="y[3] is 2, not 1 (made up)"
            )
            return Evaluation(**common, status=Status.INCORRECT, stage=Stage.CORRECTNESS, diagnostics=(why,))
        median = eager.median_us * _share_of_eager(job.program, digest)
        timing = Timing(
            source="modelled", device="synthetic", median_us=median, low_us=median * 0.99, high_us=median * 1.01,
            floor_us=eager.median_us * FLOOR_SHARE, baselines=case.baselines,
        )  # fmt: skip
        return Evaluation(
            **common, status=Status.PASSED, stage=Stage.TIMING, timing=timing, profile=_profile(timing)
        )


def _one_in_many(job: EvaluationJob) -> bool:
    return int(job.program.content_hash()[:8], 16) % FAIL_EVERY == 0


def _share_of_eager(program: Program, digest: str) -> float:
    """From 0.3 to 1.3: each tunable has a best choice of its own, and a hundredth is noise."""
    off = 0.0
    for index, tunable in enumerate(program.tunables):
        choices = sorted(tunable.choices)
        at = choices.index(tunable.value) / max(len(choices) - 1, 1)
        off += (1 + cos(3.1 * at + index)) / 2
    return 0.3 + 0.99 * off / max(len(program.tunables), 1) + int(digest[8:16], 16) / 2**32 * 0.01


def _profile(timing: Timing) -> Profile:
    """As long as that of a real program with a few steps."""
    step = StepProfile(
        name="step", authored=True, us=timing.median_us / STEPS, limiter="dram", dram_bytes=16384.0, flops=65536.0,
        occupancy=0.75, registers=32, shared_bytes=0, spill_bytes=0, load_sectors_per_request=4.0, bank_conflicts=0.0,
    )  # fmt: skip
    share = timing.floor_us / timing.median_us
    return Profile(
        steps=(step,) * STEPS,
        bottleneck="memory",
        explanation="made up",
        floor_fraction=share,
        authored_share=1.0,
    )
