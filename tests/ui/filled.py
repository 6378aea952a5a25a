"""Runs put into a store directly, with everything that the pages of a candidate and of the agents' steps show."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from graph.session import record_run
from graph.settings import Settings, resolve_settings
from graph.summary import policy_hash
from memory.events import AgentEvent
from memory.records import Candidate, Diagnostic, Evaluation, Origin, Program, Run, Stage, Status, TrialError
from memory.store import Store
from tests.members import passed
from tests.problems import scaled_relu_problem, scaled_relu_program
from tools.problem import Captured

HOSTILE = (
    "![x](http://evil.example/a.png) [link](http://evil.example) <b>bold</b> $x$ :material/home: **strong**"
)
WRONG = scaled_relu_program().source.replace("0.0f : v", "1.0f : v")


def settings_at(home: Path) -> Settings:
    """Of a simulator's run."""
    return resolve_settings(home=home, device="simulator")


def fill(home: Path, *, idea: str = "one pass in registers") -> Run:
    """A run with a recipe, a tuned child that won, a model's child that failed and was mended, and their steps."""
    home.mkdir(parents=True, exist_ok=True)
    with closing(Store(home / "store.db")) as store:
        run = record_run(Captured(scaled_relu_problem(), None), settings_at(home), store)
        _put(store, run, "000-000", scaled_relu_program(), median_us=40.0, idea=idea)
        tuned = scaled_relu_program().with_values({"BLOCK": 64})
        _put(store, run, "001-000", tuned, median_us=20.0, parents=("000-000",), generation=1, kind="tuner")
        wrong = scaled_relu_program(WRONG)
        _put(store, run, "001-001", wrong, parents=("000-000",), generation=1, kind="model")
        mended = scaled_relu_program(WRONG.replace("1.0f : v", "0.f : v"))
        _put(
            store, run, "001-001-r1", mended, median_us=30.0, parents=("001-001",), generation=1, kind="model"
        )
        for number, event in enumerate(_events(run)):
            store.put_event(event.model_copy(update={"id": f"{run.id}-{number:04d}"}))
        return store.run(run.id)


def many(run: Run, home: Path, steps: int) -> None:
    """Further steps of rules."""
    with closing(Store(home / "store.db")) as store, store.together():
        for number in range(steps):
            store.put_event(
                _event(run, "planner", f"plan {number}", id=f"{run.id}-more-{number:05d}", generation=2)
            )


def _put(
    store: Store,
    run: Run,
    name: str,
    program: Program,
    *,
    median_us: float | None = None,
    parents: tuple[str, ...] = (),
    generation: int = 0,
    kind: str = "recipe",
    idea: str = "try something",
) -> None:
    origin = {
        "kind": kind,
        "agent": "rules" if kind != "model" else "model",
        "detail": "gpt-5" if kind == "model" else "",
    }
    store.put_program(program)
    store.put_candidate(
        Candidate(
            id=f"{run.id}-{name}",
            run_id=run.id,
            program_hash=program.content_hash(),
            generation=generation,
            parents=tuple(f"{run.id}-{parent}" for parent in parents),
            origin=Origin.model_validate(origin),
            idea=idea,
        )
    )
    timing, profile = passed(median_us) if median_us is not None else (None, None)
    failed = Diagnostic(
        stage=Stage.CORRECTNESS,
        rule="wrong_values",
        message="output relu is off by 1 at (0, 3)",
        excerpt="y[i] = 1.0f;",
    )
    store.put_evaluation(
        Evaluation(
            program_hash=program.content_hash(),
            problem_hash=run.problem_hash,
            policy_hash=policy_hash(run),
            device=run.device,
            status=Status.PASSED if timing else Status.INCORRECT,
            stage=Stage.TIMING if timing else Stage.CORRECTNESS,
            diagnostics=() if timing else (failed,),
            errors=(
                TrialError(
                    distribution="normal",
                    output="relu",
                    error=1e-7 if timing else 1.0,
                    eager_error=2e-7,
                    allowed=1e-6,
                ),
            ),
            timing=timing,
            profile=profile,
        )
    )


def _events(run: Run) -> list[AgentEvent]:
    called = {
        "agent": "model",
        "model": "gpt-5",
        "tokens_in": 1000,
        "tokens_out": 200,
        "cost_usd": 0.01,
        "latency_s": 1.5,
    }
    return [
        _event(run, "planner", "2 proposals for generation 0"),
        _event(run, "coder", "wrote recipe: one pass", candidate="000-000"),
        _event(run, "coder", "wrote tuner: BLOCK=64", candidate="001-000", generation=1),
        _event(
            run, "coder", "an answer that does not fit; asked again", candidate="001-001", generation=1, move="improve",
            prompt="# Your task\n\nWrite a kernel.", reply=HOSTILE, failure="the answer has no ```cuda block", **called,
        ),
        _event(
            run, "coder", "wrote 1 kernel with 1 tunables: wider loads", candidate="001-001", generation=1,
            prompt="again", reply="```cuda\n__global__ void k() {}\n```", **called,
        ),
        _event(run, "compiler", "repair 1: mind the sign", candidate="001-001", generation=1),
        _event(
            run, "coder", "no answer; the rules go on without it", candidate="001-002", generation=1,
            failure="gpt-5: the endpoint did not answer", **{**called, "tokens_in": None, "tokens_out": None},
        ),
        _event(run, "coder", "no program for 001-002: an idea", generation=1),
    ]  # fmt: skip


def _event(
    run: Run, role: str, decision: str, *, candidate: str | None = None, **fields: object
) -> AgentEvent:
    base: dict[str, object] = {
        "id": f"{run.id}-x",
        "run_id": run.id,
        "at": "2026-01-01T00:00:00+00:00",
        "role": role,
        "agent": "rules",
        "generation": 0,
        "candidate_id": f"{run.id}-{candidate}" if candidate else None,
        "latency_s": 0.0,
        "decision": decision,
    }
    return AgentEvent.model_validate(base | fields)
