"""Small records made by hand, for tests that must know what is in them."""

from __future__ import annotations

from typing import Literal

from memory.events import AgentEvent
from memory.records import (
    Argument,
    BaselineTime,
    Candidate,
    Diagnostic,
    DType,
    Evaluation,
    Graph,
    Innovation,
    KernelStep,
    Node,
    Origin,
    Problem,
    Program,
    Provenance,
    Run,
    Stage,
    Status,
    Target,
    TensorSpec,
    Timing,
    Work,
)
from memory.signature import problem_operations, problem_signature

POLICY = "policy"
DEVICE = "simulator:h200"


def problem(op: str = "aten.relu.default", shape: tuple[int, ...] = (16, 1024), *rest: Argument) -> Problem:
    """One operation on one fp32 tensor; `rest` are the operation's further arguments."""
    spec = TensorSpec.dense(shape, DType.F32)
    node = Node(name="y", op=op, args=("x", *rest), outputs=("y",))
    return Problem(
        name="made",
        target=Target(path="/made.py", source="class M: ...", class_name="M"),
        training=False,
        output_structure="tensor",
        graph=Graph(values={"x": spec, "y": spec}, inputs=("x",), nodes=(node,), outputs=("y",)),
        work=Work(flops=spec.elements, min_bytes=2 * spec.bytes),
    )


def program(source: str = 'extern "C" __global__ void k(float* x) {}', block: str = "256") -> Program:
    """One kernel over `x`."""
    step = KernelStep(entry="k", grid=("1", "1", "1"), block=(block, "1", "1"), args=("x",))
    return Program(source=source, steps=(step,), outputs=("y",))


def run(run_id: str = "run-1", problem_hash: str = "", created: str = "2026-01-01T00:00:00Z") -> Run:
    """A run on DEVICE."""
    return Run(
        id=run_id,
        problem_hash=problem_hash or problem().content_hash(),
        device=DEVICE,
        settings={"generations": "4"},
        seed=7,
        created=created,
    )


def candidate(
    candidate_id: str,
    program_hash: str,
    *,
    run_id: str = "run-1",
    generation: int = 0,
    parents: tuple[str, ...] = (),
) -> Candidate:
    """A candidate made by a recipe."""
    return Candidate(
        id=candidate_id,
        run_id=run_id,
        program_hash=program_hash,
        generation=generation,
        parents=parents,
        origin=Origin(kind="recipe", agent="coder"),
        idea="one warp a row",
    )


def baseline(name: Literal["eager", "compile", "compile_best"], median_us: float) -> BaselineTime:
    """A baseline's time with an interval of 1 % either way."""
    return BaselineTime(name=name, median_us=median_us, low_us=median_us * 0.99, high_us=median_us * 1.01)


def timing(median_us: float) -> Timing:
    """A modelled time beside an eager time of 100 µs."""
    eager = baseline("eager", 100.0)
    return Timing(
        source="modelled",
        device=DEVICE,
        median_us=median_us,
        low_us=median_us,
        high_us=median_us,
        floor_us=1.0,
        baselines=(eager,),
    )


def evaluation(
    program_hash: str,
    *,
    median_us: float | None = None,
    status: Status = Status.INCORRECT,
    policy: str = POLICY,
) -> Evaluation:
    """PASSED with a time where one is given, else a failure."""
    why = Diagnostic(stage=Stage.CORRECTNESS, rule="wrong_values", message="output 0 is off")
    return Evaluation(
        program_hash=program_hash,
        problem_hash=problem().content_hash(),
        policy_hash=policy,
        device=DEVICE,
        status=status if median_us is None else Status.PASSED,
        stage=Stage.CORRECTNESS if median_us is None else Stage.TIMING,
        diagnostics=(why,) if median_us is None else (),
        timing=timing(median_us) if median_us is not None else None,
    )


def event(event_id: str, *, tokens: int | None = None, run_id: str = "run-1") -> AgentEvent:
    """A coder's event: by a model where tokens are given, else by rules."""
    return AgentEvent(
        id=event_id,
        run_id=run_id,
        at="2026-01-01T00:00:00Z",
        role="coder",
        agent="rules" if tokens is None else "model",
        model=None if tokens is None else "m",
        generation=0,
        tokens_in=tokens,
        tokens_out=tokens,
        cost_usd=None if tokens is None else 0.25,
        latency_s=0.5,
        decision="tile the rows",
    )


def innovation(
    of: Problem, *, best_us: float = 10.0, arch: str = "sm_90a", idea: str = "fused", source: str = "kernel"
) -> Innovation:
    """A modelled winner for a problem, verified by trials."""
    return Innovation(
        problem_hash=of.content_hash(),
        problem_name=of.name,
        signature=problem_signature(of),
        operations=problem_operations(of),
        dtype=of.dtype,
        arch=arch,
        program=program(source),
        idea=idea,
        techniques=("vectorized loads",),
        best_us=best_us,
        speedup=100.0 / best_us,
        floor_fraction=0.5,
        verification="trials",
        provenance=Provenance(
            run_id="run-1",
            device=DEVICE,
            time_source="modelled",
            created="2026-01-01T00:00:00Z",
            versions={"torch": "2"},
            trials=20,
        ),
    )
