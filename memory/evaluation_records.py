"""Candidate and Evaluation: a program in a run, and what the verifier says of it.

Invariants: timing exists if and only if the status is PASSED; measured and modelled times never mix in one record.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from memory.record import Record


class Origin(Record):
    """Who made a candidate."""

    kind: Literal["recipe", "tuner", "model", "archive", "outside"]
    agent: str
    detail: str = ""
    """Recipe names, the model's name, or the innovation's id."""
    prompt_hash: str | None = None
    move: str | None = None
    """How a model made it: write, improve, combine, port, simplify or repair; None for what rules made."""


class Candidate(Record):
    """A Program in a run."""

    LABELS: ClassVar[frozenset[str]] = frozenset({"idea"})

    id: str
    run_id: str
    program_hash: str
    generation: Annotated[int, Field(ge=0)]
    island: Annotated[int, Field(ge=0)] = 0
    """Where in the population it was born."""
    parents: tuple[str, ...] = ()
    origin: Origin
    idea: str
    """One sentence."""
    techniques: tuple[str, ...] = ()


class Status(StrEnum):
    """Verdict of the verifier; everything but PASSED is a failure and carries its reason in the diagnostics."""

    PASSED = "passed"
    SCHEMA_ERROR = "schema_error"
    LINT_ERROR = "lint_error"
    COMPILE_ERROR = "compile_error"
    SANITIZER_ERROR = "sanitizer_error"
    RUNTIME_ERROR = "runtime_error"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    INCORRECT = "incorrect"
    SUSPICIOUS = "suspicious"


class Stage(StrEnum):
    """Stages of an evaluation in order; the first failure ends it."""

    SCHEMA = "schema"
    LINT = "lint"
    COMPILE = "compile"
    SANITIZE = "sanitize"
    CORRECTNESS = "correctness"
    TIMING = "timing"


DEVICE_STAGES = (Stage.SANITIZE, Stage.CORRECTNESS, Stage.TIMING)
"""Those whose seconds are the device's."""


class Diagnostic(Record):
    """One finding about a candidate, phrased so that its author can act on it."""

    stage: Stage
    rule: str
    """Short kind, such as `out_of_bounds`, `unknown_buffer` or `wrong_values`."""
    message: str
    line: int | None = None
    excerpt: str = ""
    severe: bool = True


class TrialError(Record):
    """Error of one output in one trial, against the float64 oracle."""

    distribution: str
    output: str
    error: float | None
    """Largest |out - oracle| / max(|oracle|, scale) over the elements (see tools.correctness); None where no number can
    say it (a NaN or infinity where the oracle is finite, a wrong integer)."""
    eager_error: float
    """The same measure for eager PyTorch in the problem's own precision."""
    allowed: float
    """max(tolerance, factor * eager_error)."""


class BaselineTime(Record):
    """Time of a baseline on the same device as the candidate's."""

    name: Literal["eager", "compile", "compile_best"]
    median_us: Annotated[float, Field(gt=0)]
    low_us: Annotated[float, Field(gt=0)]
    high_us: Annotated[float, Field(gt=0)]


SAME_KERNELS_GAIN = 1.03
"""On an H200 a plan of the same library calls ran 0 to 3 % faster than eager, beyond both intervals."""


class Timing(Record):
    """Time of one forward, in µs. Modelled and measured times never mix in one record."""

    source: Literal["measured", "modelled"]
    device: str
    median_us: Annotated[float, Field(gt=0)]
    low_us: Annotated[float, Field(gt=0)]
    high_us: Annotated[float, Field(gt=0)]
    floor_us: Annotated[float, Field(ge=0)]
    baselines: tuple[BaselineTime, ...]
    rounds: int | None = None
    """Timed repetitions; None for a modelled time."""

    @property
    def eager_us(self) -> float:
        """The eager baseline's median."""
        return next(b.median_us for b in self.baselines if b.name == "eager")

    @property
    def speedup(self) -> float:
        """Eager's median over ours."""
        return self.eager_us / self.median_us

    @property
    def bar(self) -> BaselineTime:
        """The fastest of the baselines that were asked for: eager alone, unless torch.compile was to be timed too."""
        return min(self.baselines, key=lambda baseline: baseline.low_us)

    @property
    def improved(self) -> bool:
        """True where even our slow end beats the fast end of every baseline, by more than calling the same kernels in
        another way can gain."""
        return self.high_us * SAME_KERNELS_GAIN < self.bar.low_us

    @model_validator(mode="after")
    def _has_eager_and_order(self) -> Timing:
        if not any(b.name == "eager" for b in self.baselines):
            raise ValueError("a timing needs the eager baseline")
        if not self.low_us <= self.median_us <= self.high_us:
            raise ValueError(
                f"interval [{self.low_us}, {self.high_us}] does not hold the median {self.median_us}"
            )
        return self


class StepProfile(Record):
    """Where the time of one step goes."""

    name: str
    """Kernel entry or ATen operation."""
    authored: bool
    """True for a kernel of the Program, False for a library call."""
    us: float
    limiter: str
    """Term that dominates: dram, l2, compute, latency, launch, shared, atomics."""
    dram_bytes: float
    flops: float
    occupancy: float | None = None
    """Theoretical, 0 to 1."""
    registers: int | None = None
    shared_bytes: int | None = None
    spill_bytes: int | None = None
    load_sectors_per_request: float | None = None
    """Ideal: 4 for 4-byte, 16 for 16-byte accesses per lane."""
    bank_conflicts: float | None = None
    counted: bool = False
    """True where hardware counters gave bytes, FLOPs and limiter; else they are modelled, or estimated from shapes."""
    achieved_occupancy: float | None = None
    """Counted, 0 to 1."""
    dram_gbps: float | None = None
    """Counted bytes over the profiler's own time of the kernel, from cold caches; 10^9 bytes a second."""
    dram_fraction: float | None = None
    """DRAM bytes over time, of the bandwidth that a copy reaches, 0 to 1."""
    compute_fraction: float | None = None
    """The busiest of FP32, FP64 and tensor-core arithmetic, of its rate, 0 to 1."""
    tensor_fraction: float | None = None
    """Share of time in which tensor cores worked."""
    l1_hit_rate: float | None = None
    l2_hit_rate: float | None = None
    store_sectors_per_request: float | None = None
    stall: str | None = None
    """What warps wait for most, in Nsight Compute's word, such as `long_scoreboard`."""
    stall_share: float | None = None
    """Share of the warps' resident time that it takes, 0 to 1."""
    instruction_mix: dict[str, float] = {}
    """Share of each kind among the operations of threads: fp32, fp64, fp16, integer, memory, control and others."""
    roofline_fraction: float | None = None
    """The larger of dram_fraction and compute_fraction; of a plan's only kernel also its floor over its time."""

    ROOFLINE_TARGET: ClassVar[float] = 0.8
    """Of the roofline: what a winner's kernels should reach."""

    @property
    def meets_target(self) -> bool | None:
        """Whether the kernel reaches the target; None where its share of the roofline is not known."""
        return None if self.roofline_fraction is None else self.roofline_fraction >= self.ROOFLINE_TARGET


class Profile(Record):
    """The profiler's summary of a passed candidate."""

    steps: tuple[StepProfile, ...]
    bottleneck: Literal["memory", "compute", "latency", "launch", "occupancy", "library"]
    explanation: str
    """One sentence with the numbers."""
    floor_fraction: float
    """Floor over time, 0 to 1."""
    authored_share: float
    """Share of device time in the Program's own kernels, 0 to 1."""
    counters_absent: str | None = None
    """Why there are no hardware counters in it; None where there are, or where nobody asked for them."""

    @property
    def meets_target(self) -> bool | None:
        """Whether every kernel of the Program reaches the roofline's target; None where one's share is not known."""
        verdicts = [step.meets_target for step in self.steps if step.authored]
        if not verdicts or None in verdicts:
            return None
        return all(verdicts)


class Evaluation(Record):
    """What the verifier says of a program on a problem and device."""

    LABELS: ClassVar[frozenset[str]] = frozenset({"seconds"})

    program_hash: str
    problem_hash: str
    policy_hash: str
    device: str
    status: Status
    stage: Stage
    """The last stage entered."""
    diagnostics: tuple[Diagnostic, ...] = ()
    errors: tuple[TrialError, ...] = ()
    timing: Timing | None = None
    profile: Profile | None = None
    seconds: dict[str, float] = {}
    """Wall time by stage."""

    @property
    def device_s(self) -> float:
        """Seconds that the verdict took on the device."""
        return sum(self.seconds.get(stage.value, 0.0) for stage in DEVICE_STAGES)

    @model_validator(mode="after")
    def _timing_iff_passed(self) -> Evaluation:
        if (self.timing is not None) != (self.status is Status.PASSED):
            raise ValueError(
                f"timing exists if and only if the status is passed, and it is {self.status.value}"
            )
        if self.status is not Status.PASSED and not self.diagnostics:
            raise ValueError(f"an evaluation that is {self.status.value} must say why")
        return self
