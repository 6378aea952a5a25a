"""Population members for tests of agents and selection."""

from __future__ import annotations

from agents.schemas import Member
from graph.evolution import Herd, World
from memory.records import (
    BaselineTime,
    Candidate,
    Diagnostic,
    Evaluation,
    Origin,
    Profile,
    Program,
    Stage,
    Status,
    StepProfile,
    Timing,
)
from tests.problems import scaled_relu_problem, scaled_relu_program

PROBLEM_HASH = scaled_relu_problem().content_hash()
EAGER = BaselineTime(name="eager", median_us=100.0, low_us=95.0, high_us=105.0)


def passed(median_us: float, *, floor_us: float = 5.0) -> tuple[Timing, Profile]:
    """Timing and profile of a candidate of this time against an eager baseline of 100 µs."""
    timing = Timing(
        source="modelled",
        device="simulator:h200",
        median_us=median_us,
        low_us=median_us * 0.95,
        high_us=median_us * 1.05,
        floor_us=floor_us,
        baselines=(EAGER,),
    )
    step = StepProfile(
        name="k", authored=True, us=median_us, limiter="dram", dram_bytes=1e6, flops=1e5, occupancy=0.9
    )
    profile = Profile(
        steps=(step,),
        bottleneck="memory",
        explanation="k takes most of it",
        floor_fraction=min(floor_us / median_us, 1.0),
        authored_share=1.0,
    )
    return timing, profile


def member(
    candidate_id: str,
    median_us: float | None = 50.0,
    *,
    status: Status = Status.PASSED,
    stage: Stage = Stage.TIMING,
    program: Program | None = None,
    generation: int = 0,
) -> Member:
    """A judged candidate: passed in `median_us`, or failed with `status` at `stage`."""
    program = program or scaled_relu_program()
    failed = status is not Status.PASSED
    timing, profile = passed(median_us) if median_us is not None and not failed else (None, None)
    evaluation = Evaluation(
        program_hash=program.content_hash(),
        problem_hash=PROBLEM_HASH,
        policy_hash="policy",
        device="simulator:h200",
        status=status,
        stage=stage,
        diagnostics=(Diagnostic(stage=stage, rule="broken", message="it broke"),) if failed else (),
        timing=timing,
        profile=profile,
    )
    candidate = Candidate(
        id=candidate_id,
        run_id="run",
        program_hash=program.content_hash(),
        generation=generation,
        origin=Origin(kind="recipe", agent="rules"),
        idea="an idea",
    )
    return Member(candidate, program, evaluation)


def at_block(block: int) -> Program:
    """The example program with another BLOCK."""
    return scaled_relu_program().with_values({"BLOCK": block})


def herd(*islands: tuple[Member, ...]) -> Herd:
    """Who may breed on islands of these members; on one empty island where none is given."""
    peopled = islands or ((),)
    return Herd(World(peopled, (0,) * len(peopled)))
