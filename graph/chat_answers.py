"""What the chat tells of runs: how far one is, what won and why, why something failed.

Reads the store and changes nothing. Not here: what was asked (graph.chat_intents).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from agents.schemas import short_id
from graph.chat_parts import ChatPart, Code, Table, Text
from graph.evidence import not_verified, verified
from graph.runner import Runner
from graph.session import find_summary
from graph.settings import Settings, settings_from_run
from graph.shortfall import REFUTED
from graph.summary import IN_REVIEW, LEFT, Summary, find_candidate, run_candidates
from graph.tables import idea_text, us_text
from memory.errors import BadInput
from memory.events import EvaluatedCandidate, Spend
from memory.records import Evaluation, Profile, Run, RunStatus, Status, Timing
from memory.store import Store
from tools.gpus import gpu_named
from tools.roofline import floor_us

_LISTED_RUNS = 20
_SHOWN_DIAGNOSTICS = 8


@dataclass(frozen=True)
class Desk:
    """What an answer is read from."""

    settings: Settings
    store: Store
    runner: Runner
    now: datetime


def tell_status(run: Run, desk: Desk) -> Iterator[ChatPart]:
    """How far a run is, what it has found and used, and what can be done next."""
    summary, kept = find_summary(run, desk.store, desk.settings), settings_from_run(run.settings)
    worker = desk.runner.worker(run.id)
    starting = worker is not None and summary.status in LEFT
    events = desk.store.events(run.id)
    candidates = desk.store.candidates(run.id)
    generation = max((c.generation for c in candidates), default=None)
    by_status = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in summary.by_status.items())
    rows = [
        ("status", "starting" if starting else _standing(summary, worker)),
        (
            "generation",
            f"{generation + 1} of at most {kept.generations}" if generation is not None else "not begun",
        ),
        ("evaluations", f"{summary.evaluations}: {by_status}" if by_status else "0"),
        ("best so far" if summary.status != RunStatus.IMPROVED.value else "winner", _best(summary)),
        ("floor (speed of light)", us_text(_floor_us(run, summary, desk.store))),
        ("language models", _spent(desk.store.spend(run.id))),
        (
            "time",
            _time(
                run,
                events[-1].at if events else run.created,
                kept.wall_s,
                desk.now,
                at_work=worker is not None,
            ),
        ),
    ]
    if hints := desk.store.hints(run.id):
        rows.append(("hints", str(len(hints))))
    if summary.export_path:
        rows.append(("exported to", summary.export_path))
    yield Table(title=f"{run.id} ({run.device})", rows=tuple(rows))
    if summary.why_not:
        yield Text(text=f"Why: {summary.why_not}.")
    if summary.status == IN_REVIEW:
        yield Text(
            text="Its winner waits for your word: say 'approve' or 'reject: why'; 'explain' tells of it."
        )
    elif summary.status in LEFT and not starting:
        said = desk.runner.last_words(run.id)
        yield Text(
            text="Nobody works on it. Say 'resume' to continue; nothing already judged is judged again."
        )
        if said:
            yield Code(text=said)


def tell_runs(desk: Desk, current: str | None) -> Iterator[ChatPart]:
    """The newest runs."""
    runs = desk.store.runs(limit=_LISTED_RUNS)
    if not runs:
        yield Text(text="There are no runs yet. Name a module: 'optimize examples/layernorm_gelu.py'.")
        return
    rows = []
    for run in runs:
        summary = find_summary(run, desk.store, desk.settings)
        speedup = f"{summary.speedup:.2f}×" if summary.status == RunStatus.IMPROVED.value else ""
        mark = " (this one)" if run.id == current else ""
        rows.append((f"{run.id}{mark}", summary.status.replace("_", " "), run.device, speedup))
    yield Table(title="runs, newest first", columns=("run", "status", "device", "speedup"), rows=tuple(rows))


def tell_winner(run: Run, desk: Desk) -> Iterator[ChatPart]:
    """The winner, or else the fastest candidate that passed so far."""
    rows = run_candidates(run, desk.store)
    winner = next((row for row in rows if row.candidate.id == run.best_candidate), None)
    passed = [row for row in rows if row.evaluation is not None and row.evaluation.timing is not None]
    if winner is None and not passed:
        summary = find_summary(run, desk.store, desk.settings)
        yield Text(
            text=f"Run {run.id} has no candidate that passed{f': {summary.why_not}' if summary.why_not else ' yet'}."
        )
        return
    if winner is None:
        winner = min(passed, key=lambda row: _timing(row).median_us)
        ended = run.status.ended
        yet = "" if ended else " yet"
        yield Text(
            text=f"Run {run.id} has no verified winner{yet}; this is the fastest that passed its trials."
        )
        if ended:
            yield from tell_why(run, desk)
    yield from _explain(winner, run, desk)


def tell_why(run: Run, desk: Desk) -> Iterator[ChatPart]:
    """Why a run has no winner."""
    summary = find_summary(run, desk.store, desk.settings)
    if summary.status == RunStatus.IMPROVED.value:
        yield Text(
            text=f"Run {run.id} did not fail: its winner runs {summary.speedup:.2f}× as fast as eager PyTorch."
        )
    elif summary.why_not:
        yield Text(text=f"Run {run.id} has no winner: {summary.why_not}.")
    elif summary.status in LEFT and (said := desk.runner.last_words(run.id)):
        yield Text(text=f"Run {run.id} was left unfinished. Its last process said:")
        yield Code(text=said)
    else:
        yield Text(text=f"Run {run.id} has not ended ({summary.status.replace('_', ' ')}).")
    failed = [
        row for row in run_candidates(run, desk.store) if row.evaluation and row.evaluation.timing is None
    ]
    if failed:
        lines = tuple(
            (short_id(r.candidate.id), *_verdict_and_reason(r.evaluation)) for r in failed if r.evaluation
        )
        yield Table(
            title="candidates that failed; name one for more",
            columns=("candidate", "verdict", "reason"),
            rows=lines[-_SHOWN_DIAGNOSTICS:],
        )


def tell_candidate(name: str, current: Run | None, desk: Desk, *, failure: bool) -> Iterator[ChatPart]:
    """One candidate: time and profile where it passed, diagnostics where it failed. Raises BadInput for no known id."""
    run = run_of(name, current, desk.store)
    row = find_candidate(run, name, desk.store)
    if row.evaluation is None:
        yield Text(
            text=f"{row.candidate.id} has not been judged yet. Its idea: {_sentence(idea_text(row.candidate))}"
        )
    elif row.evaluation.timing is not None:
        if failure:
            yield Text(text=f"{short_id(row.candidate.id)} did not fail: {_passed_but(row, run, desk)}")
        yield from _explain(row, run, desk)
    else:
        yield from _diagnose(row, row.evaluation)


def run_of(name: str, current: Run | None, store: Store) -> Run:
    """The run of a candidate's full id, or the current one for a short id. Raises BadInput where there is none."""
    if name.count("-") >= 4:
        return store.run(store.candidate(name).run_id)
    if current is None:
        raise BadInput(f"there is no run that {name} could be of; say 'list runs'")
    return current


def _explain(row: EvaluatedCandidate, run: Run, desk: Desk) -> Iterator[ChatPart]:
    timing, evaluation = _timing(row), row.evaluation
    assert evaluation is not None
    lineage = desk.store.lineage(row.candidate.id)
    techniques = dict.fromkeys(t for c in (*lineage[:1], row.candidate) for t in c.techniques)
    eager = next(b for b in timing.baselines if b.name == "eager")
    pairs = [
        ("idea", idea_text(lineage[0])),
        ("techniques", ", ".join(techniques) or "none named"),
        (
            f"time ({timing.source})",
            f"{us_text(timing.median_us)}, {_interval(timing.low_us, timing.high_us)}",
        ),
        (
            f"eager PyTorch ({timing.source})",
            f"{us_text(eager.median_us)}, {_interval(eager.low_us, eager.high_us)}",
        ),
        ("speedup", f"{timing.speedup:.2f}× ({timing.source})"),
    ]
    profile = evaluation.profile
    if profile is not None:
        pairs.append(("floor", f"{us_text(timing.floor_us)}; it reaches {profile.floor_fraction:.0%} of it"))
        pairs.append(("bottleneck", f"{profile.bottleneck}: {profile.explanation}"))
    yield Table(title=row.candidate.id, rows=tuple(pairs))
    if len(lineage) > 1:
        yield Table(
            title="lineage, first ancestor first",
            columns=("candidate", "idea"),
            rows=tuple((short_id(c.id), idea_text(c)) for c in lineage),
        )
    if profile is not None and profile.steps:
        yield _steps_table(profile, timing)
    yield Text(text=f"Verified: {'; '.join(verified(row, run, desk.store))}.")
    yield Text(text=f"Not verified: {'; '.join(not_verified(row, run, desk.store))}.")


def _steps_table(profile: Profile, timing: Timing) -> Table:
    return Table(
        title=f"steps ({'counted' if any(s.counted for s in profile.steps) else timing.source})",
        columns=("step", "made by", "µs", "limited by", "occupancy", "registers"),
        rows=tuple(
            (
                step.name,
                "this program" if step.authored else "the library",
                f"{step.us:.3g}",
                step.limiter,
                f"{step.occupancy:.0%}" if step.occupancy is not None else "",
                str(step.registers) if step.registers is not None else "",
            )
            for step in profile.steps
        ),
    )


def _diagnose(row: EvaluatedCandidate, evaluation: Evaluation) -> Iterator[ChatPart]:
    verdict = evaluation.status.value.replace("_", " ")
    yield Text(
        text=f"{row.candidate.id}: {verdict}, in the stage '{evaluation.stage.value}'. Its idea was: "
        f"{_sentence(idea_text(row.candidate))}"
    )
    for d in evaluation.diagnostics[:_SHOWN_DIAGNOSTICS]:
        yield Text(text=f"{d.rule}{f', line {d.line}' if d.line is not None else ''}: {d.message}")
        if d.excerpt:
            yield Code(text=d.excerpt)
    if (left := len(evaluation.diagnostics) - _SHOWN_DIAGNOSTICS) > 0:
        yield Text(text=f"… and {left} more findings.")
    if evaluation.errors:
        yield Table(
            title="errors by distribution of the inputs",
            columns=("distribution", "output", "error", "eager's own", "allowed"),
            rows=tuple(
                (
                    e.distribution,
                    e.output,
                    "not a number" if e.error is None else f"{e.error:.3g}",
                    f"{e.eager_error:.3g}",
                    f"{e.allowed:.3g}",
                )
                for e in evaluation.errors
            ),
        )


def _passed_but(row: EvaluatedCandidate, run: Run, desk: Desk) -> str:
    timing = _timing(row)
    refuted = [
        e.decision
        for e in desk.store.events(run.id)
        if e.candidate_id == row.candidate.id and e.decision.startswith(REFUTED)
    ]
    if refuted:
        return f"it passed its trials, and was {refuted[-1]}."
    if timing.speedup < 1:
        return f"it passed, and is slower than PyTorch ({timing.speedup:.2f}×)."
    return f"it passed, at {timing.speedup:.2f}× of eager PyTorch."


def _standing(summary: Summary, worker: int | None) -> str:
    text = summary.status.replace("_", " ")
    if summary.status == RunStatus.NOT_IMPROVED.value:
        return "not improved: PyTorch stays"
    return f"{text} (process {worker})" if worker is not None else text


def _best(summary: Summary) -> str:
    if summary.best_us is None or summary.baseline_us is None:
        return "nothing has passed yet"
    kind = "measured" if summary.measured else "modelled"
    speedup = summary.baseline_us / summary.best_us
    return f"{us_text(summary.best_us)}, {speedup:.2f}× of eager PyTorch's {us_text(summary.baseline_us)} ({kind})"


def _floor_us(run: Run, summary: Summary, store: Store) -> float | None:
    """The floor, known before anything has been timed where the GPU is simulated."""
    kind, _, gpu = run.device.partition(":")
    if summary.floor_us is not None or kind != "simulator":
        return summary.floor_us
    problem = store.problem(run.problem_hash)
    return floor_us(problem.work, problem.dtype, gpu_named(gpu))


def _spent(spend: Spend) -> str:
    if not spend.calls:
        return "none asked: agents by rules"
    unpriced = f", {spend.unpriced} without a known price" if spend.unpriced else ""
    return f"{spend.calls} calls, {spend.tokens:,} tokens, {spend.cost_usd:.4f} USD{unpriced}"


def _time(run: Run, last: str, wall_s: float, now: datetime, *, at_work: bool) -> str:
    begun, latest = datetime.fromisoformat(run.created), datetime.fromisoformat(last)
    head = f"started {begun:%H:%M:%S} UTC, {(now - begun).total_seconds():.0f} s ago" if at_work else (
        f"started {begun:%Y-%m-%d %H:%M:%S} UTC, last heard of {max((latest - begun).total_seconds(), 0):.0f} s later"
    )  # fmt: skip
    return f"{head}; searches for at most {wall_s:g} s"


def _verdict_and_reason(evaluation: Evaluation) -> tuple[str, str]:
    reason = evaluation.diagnostics[0].message if evaluation.diagnostics else ""
    return evaluation.status.value.replace("_", " "), reason.splitlines()[0][:160] if reason else ""


def _timing(row: EvaluatedCandidate) -> Timing:
    assert (
        row.evaluation is not None
        and row.evaluation.status is Status.PASSED
        and row.evaluation.timing is not None
    )
    return row.evaluation.timing


def _interval(low: float, high: float) -> str:
    return f"between {us_text(low)} and {us_text(high)}" if low < high else "no spread"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
