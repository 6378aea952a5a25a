"""What people see: live progress on stderr, tables on stdout, JSON for programs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from types import TracebackType

from pydantic import BaseModel
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from graph.progress import (
    BaselineReady,
    CandidateJudged,
    GenerationClosed,
    GenerationPlanned,
    SoakProgress,
    StageStarted,
)
from graph.progress import Progress as Event
from graph.results import Summary
from memory.archive_entry import ArchiveStats, Hit
from memory.events import AgentEvent, EvaluatedCandidate
from memory.records import Candidate, Evaluation, Problem, Run, RunStatus, Status
from memory.signature import problem_signature


class Display:
    """Live progress of a run. Prints to stderr; in a terminal with a bar, otherwise one line an event."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._console = Console(stderr=True, quiet=quiet, soft_wrap=True, highlight=False)
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
        )
        self._task = self._bar.add_task("starting", total=None)
        self._live = Live(self._bar, console=self._console, refresh_per_second=8, transient=True)

    def __enter__(self) -> Display:
        if not self._quiet and self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live.is_started:
            self._live.stop()

    def announce(self, run: Run, problem: Problem) -> None:
        """Say which run this is and what was captured."""
        self._console.print(f"[bold]{run.id}[/bold] on {run.device}, agents by rules (no model configured)")
        self._console.print(f"  {problem_signature(problem)}", markup=False)

    def tell(self, event: Event) -> None:
        """Show one event."""
        if isinstance(event, StageStarted):
            self._bar.update(self._task, description=event.text, total=None)
            self._console.print(f"[dim]{event.text}[/dim]")
        elif isinstance(event, BaselineReady):
            eager = event.baselines[0]
            self._console.print(
                f"  baseline {eager.name} {eager.median_us:,.1f} µs, floor {event.floor_us:,.1f} µs; "
                f"{event.trials} trials; {event.recalled} similar innovations in the archive"
            )
        elif isinstance(event, GenerationPlanned):
            self._bar.reset(self._task, total=event.proposals, description=f"generation {event.generation}")
        elif isinstance(event, CandidateJudged):
            self._bar.advance(self._task)
            self._console.print(_judged_line(event))
        elif isinstance(event, GenerationClosed):
            self._console.print(_closed_line(event))
        elif isinstance(event, SoakProgress):
            self._bar.update(
                self._task, description="soak of the winner", total=event.total, completed=event.done
            )
            if not self._console.is_terminal:
                self._console.print(f"  soak: {event.done} of {event.total} random trials passed")


def _judged_line(event: CandidateJudged) -> Text:
    evaluation = event.evaluation
    head = Text(f"  {short_id(event.candidate.id):<10}")
    if evaluation.timing is not None:
        timing = evaluation.timing
        head.append(f"{timing.median_us:>10,.1f} µs {timing.speedup:>5.2f}×", style="green")
        head.append(f"  {evaluation.profile.bottleneck if evaluation.profile else '':<9}", style="dim")
    else:
        head.append(f"{evaluation.status.value:>19}", style="red")
        head.append(f"  {evaluation.stage.value:<9}", style="dim")
    head.append(f" {idea_text(event.candidate)}")
    if event.reused:
        head.append(" (verdict reused)", style="dim")
    if evaluation.timing is None:
        head.append(f"\n           {evaluation.diagnostics[0].message}", style="dim")
    return head


def _closed_line(event: GenerationClosed) -> Text:
    best = f"best {event.best_us:,.1f} µs" if event.best_us is not None else "nothing passed yet"
    line = Text(
        f"generation {event.generation}: {event.passed} passed, {event.failed} failed, {best}", style="bold"
    )
    if event.stop:
        line.append(f"; stopping: {event.stop}")
    return line


# --- tables ---------------------------------------------------------------------------------------------------


def summary_table(summary: Summary) -> RenderableType:
    """The table a run ends with."""
    kind = "measured" if summary.measured else "modelled"
    table = Table(title=f"{summary.run} ({summary.device})", title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("status", _status_text(summary.status))
    table.add_row(f"baseline: eager PyTorch ({kind})", _us(summary.baseline_us))
    table.add_row(f"best candidate ({kind})", _us(summary.best_us))
    table.add_row("floor (speed of light)", _us(summary.floor_us))
    table.add_row("speedup", f"{summary.speedup:.2f}× ({kind})")
    by_status = ", ".join(f"{count} {status}" for status, count in summary.by_status.items())
    table.add_row("evaluations", f"{summary.evaluations}: {by_status}" if by_status else "0")
    table.add_row("program", summary.program_path or "none")
    table.add_row("exported to", summary.export_path or "none: the result is PyTorch itself")
    if summary.measured:
        return table
    note = "Times are modelled by the simulator, not measured: a ranking signal with an error bar. Measure on a GPU."
    return Group(table, Text(note, style="italic"))


def _status_text(status: str) -> str:
    if status == RunStatus.NOT_IMPROVED.value:
        return "not improved: nothing better than PyTorch was found"
    return status


def _us(value: float | None) -> str:
    return f"{value:,.1f} µs" if value is not None else "none"


def runs_table(summaries: Sequence[Summary]) -> RenderableType:
    """One row a run."""
    if not summaries:
        return "No runs yet. Start one: warpsmith optimize examples/layernorm_gelu.py"
    table = Table("status", "device", "baseline", "best", "speedup", "evaluations")
    table.add_column("run", no_wrap=True, overflow="fold")
    for s in summaries:
        kind = "" if s.measured or s.best_us is None else " modelled"
        table.add_row(
            s.status,
            s.device,
            _us(s.baseline_us),
            _us(s.best_us),
            f"{s.speedup:.2f}×{kind}",
            str(s.evaluations),
            s.run,
        )
    return table


def candidates_table(rows: Sequence[EvaluatedCandidate]) -> RenderableType:
    """Every candidate of a run, in order."""
    table = Table(
        "candidate", "status", "µs", "speedup", "bottleneck", "idea", title="candidates", title_justify="left"
    )
    for row in rows:
        evaluation = row.evaluation
        timing = evaluation.timing if evaluation else None
        profile = evaluation.profile if evaluation else None
        table.add_row(
            short_id(row.candidate.id),
            evaluation.status.value if evaluation else "not judged",
            f"{timing.median_us:,.1f}" if timing else "",
            f"{timing.speedup:.2f}×" if timing else "",
            profile.bottleneck if profile else "",
            Text(idea_text(row.candidate)),
        )
    return table


def events_table(events: Sequence[AgentEvent]) -> RenderableType:
    """What the agents decided, in order."""
    table = Table("generation", "role", "candidate", "decision", title="decisions", title_justify="left")
    for event in events:
        candidate = short_id(event.candidate_id) if event.candidate_id else ""
        table.add_row(
            str(event.generation), event.role, candidate, Text(event.decision.replace(f"{event.run_id}-", ""))
        )
    return table


def idea_text(candidate: Candidate) -> str:
    """The idea, with the run's own id left out and a recalled innovation called so."""
    text = candidate.idea.replace(f"{candidate.run_id}-", "")
    return f"recalled: {text}" if candidate.origin.kind == "archive" else text


def short_id(candidate_id: str) -> str:
    """A candidate's id without its run's."""
    parts = candidate_id.split("-")
    keep = 3 if parts[-1].startswith("r") else 2
    return "-".join(parts[-keep:])


def verdict_table(evaluation: Evaluation) -> RenderableType:
    """A verdict with its diagnostics."""
    style = "green" if evaluation.status is Status.PASSED else "red"
    lines: list[RenderableType] = [
        Text(f"{evaluation.status.value} (stage: {evaluation.stage.value})", style=style)
    ]
    for d in evaluation.diagnostics:
        where = f" line {d.line}" if d.line is not None else ""
        lines.append(Text(f"  {d.rule}{where}: {d.message}"))
        if d.excerpt:
            lines.append(Text(d.excerpt, style="dim"))
    for e in evaluation.errors:
        error = "not a number" if e.error is None else f"{e.error:.3g}"
        lines.append(
            Text(f"  {e.distribution:<14} {e.output}: error {error}, allowed {e.allowed:.3g}", style="dim")
        )
    if evaluation.timing is not None:
        timing = evaluation.timing
        lines.append(
            Text(
                f"  {timing.median_us:,.1f} µs ({timing.source}), eager {timing.eager_us:,.1f} µs, "
                f"floor {timing.floor_us:,.1f} µs, {timing.speedup:.2f}×"
            )
        )
    if evaluation.profile is not None:
        lines.append(Text(f"  {evaluation.profile.bottleneck}: {evaluation.profile.explanation}"))
    return Group(*lines)


def hits_table(hits: Sequence[Hit]) -> RenderableType:
    """Innovations found, most similar first."""
    if not hits:
        return "Nothing found. The archive fills as runs end with a verified winner."
    table = Table("similarity", "problem", "speedup", "of floor", "dtype", "arch", "idea")
    for hit in hits:
        i = hit.innovation
        kind = i.provenance.time_source
        table.add_row(
            f"{hit.similarity:.2f}", i.problem_name, f"{i.speedup:.2f}× {kind}", f"{i.floor_fraction:.0%}",
            i.dtype.value, i.arch, i.idea,
        )  # fmt: skip
    return table


def archive_table(stats: ArchiveStats) -> RenderableType:
    """Counts of the archive."""
    table = Table(title=f"{stats.total} innovations", title_justify="left", show_header=False)
    for name in ("by_operation", "by_dtype", "by_arch", "by_time_source", "by_verification"):
        counter = getattr(stats, name)
        table.add_row(
            name.removeprefix("by_").replace("_", " "),
            ", ".join(f"{k} {n}" for k, n in counter.most_common(12)),
        )
    return table


def to_json(record: object) -> str:
    """One JSON document of a record, a dataclass or a list of them."""
    return json.dumps(_plain(record), indent=1, ensure_ascii=False)


def _plain(record: object) -> object:
    if isinstance(record, BaseModel):
        return record.model_dump(mode="json")
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {f.name: _plain(getattr(record, f.name)) for f in dataclasses.fields(record)}
    if isinstance(record, list | tuple):
        return [_plain(item) for item in record]
    if isinstance(record, dict):
        return {str(key): _plain(value) for key, value in record.items()}
    return record
