"""Tables on stdout: what a run, the archive or a verdict looks like. Each reads well from 80 columns on."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agents.schemas import short_id
from graph.lineage import LineageStep
from graph.summary import IN_REVIEW, LEFT, Summary
from memory.archive_entry import ArchiveStats, Hit, ImportReport
from memory.events import AgentEvent, EvaluatedCandidate, Spend
from memory.records import Candidate, Evaluation, Run, RunStatus, Status

WIDE = 120
"""Columns from which on the list of runs shows everything."""
_ENDED = (RunStatus.IMPROVED.value, RunStatus.NOT_IMPROVED.value)
_MODELLED = (
    "Times are modelled by the simulator, not measured: a ranking signal with an error bar. Measure on a GPU."
)
_NO_EXPORT = {
    RunStatus.IMPROVED.value: "a file that is gone; `warpsmith export` writes it again",
    RunStatus.NOT_IMPROVED.value: "nothing: the result is PyTorch itself",
    RunStatus.FAILED.value: "nothing",
}


def us_text(value: float | None) -> str:
    """A time with three significant digits or more, be it nanoseconds or seconds."""
    if value is None:
        return "none"
    return f"{_number(value)} µs"


def _number(value: float) -> str:
    if value == 0:
        return "0"
    decimals = min(max(1, 2 - math.floor(math.log10(value))), 9)
    return f"{value:,.{decimals}f}"


def summary_table(summary: Summary) -> RenderableType:
    """What a run ends with."""
    kind = "measured" if summary.measured else "modelled"
    table = Table(title=f"{summary.run} ({summary.device})", title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("status", _status_text(summary))
    table.add_row(f"baseline: eager PyTorch ({kind})", us_text(summary.baseline_us))
    table.add_row(f"best candidate ({kind})", us_text(summary.best_us))
    table.add_row("floor (speed of light)", us_text(summary.floor_us))
    table.add_row("speedup", f"{summary.speedup:.2f}× ({kind})" if summary.speedup != 1 else "1.00×")
    by_status = ", ".join(f"{count} {status}" for status, count in summary.by_status.items())
    table.add_row("evaluations", f"{summary.evaluations}: {by_status}" if by_status else "0")
    if summary.spend is not None:
        table.add_row("language models", spend_text(summary.spend))
    lines: list[RenderableType] = [table]
    if summary.why_not is not None:
        lines.append(Text(f"why: {summary.why_not}", style="bold"))
    if summary.status in LEFT:
        lines.append(_line("continue with: ", f"warpsmith resume {summary.run}"))
    if summary.status == IN_REVIEW:
        lines.append(_line("answer with: ", f"warpsmith resume {summary.run} --approve (or --reject)"))
    lines.append(_line("program: ", summary.program_path or "none"))
    lines.append(_line("exported to: ", summary.export_path or _NO_EXPORT.get(summary.status, "nothing yet")))
    if not summary.measured and summary.best_us is not None:
        lines.append(Text(_MODELLED, style="italic"))
    return Group(*lines)


def spend_text(spend: Spend) -> str:
    """What language models have used."""
    calls = f"{spend.calls} call{'s' if spend.calls != 1 else ''}, {spend.tokens:,} tokens"
    if spend.unpriced:
        return f"{calls}; ${spend.cost_usd:.4f} and the unknown cost of {spend.unpriced} of them"
    return f"{calls}, ${spend.cost_usd:.4f}"


def _line(label: str, path: str) -> Text:
    """A path in one piece, so that it can be copied; whoever prints it must not crop."""
    return Text.assemble((label, "bold"), path, no_wrap=True, overflow="ignore")


def _status_text(summary: Summary) -> str:
    if summary.status == RunStatus.NOT_IMPROVED.value:
        return "not improved: PyTorch stays"
    return summary.status.replace("_", " ")


def runs_table(summaries: Sequence[Summary], width: int) -> RenderableType:
    """One row a run; what does not fit in `width` columns is left to `show RUN`."""
    if not summaries:
        return "No runs yet. Start one: warpsmith optimize examples/layernorm_gelu.py"
    wide = width >= WIDE
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("run", overflow="fold")
    for name in ("status", "device"):
        table.add_column(name, no_wrap=True)
    for name in ("speedup", *(("baseline", "best", "evaluations") if wide else ())):
        table.add_column(name, no_wrap=True, justify="right")
    for s in summaries:
        more = (us_text(s.baseline_us), us_text(s.best_us), str(s.evaluations)) if wide else ()
        speedup = f"{s.speedup:.2f}×" if s.status in _ENDED else ""
        table.add_row(s.run, s.status.replace("_", " "), s.device, speedup, *more)
    if all(s.measured or s.best_us is None for s in summaries):
        return table
    return Group(table, Text("Times on a simulator are modelled, not measured.", style="italic"))


def candidates_table(rows: Sequence[EvaluatedCandidate]) -> RenderableType:
    """Every candidate of a run, in order."""
    table = Table(title="candidates", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("candidate", "status"):
        table.add_column(name, no_wrap=True)
    for name in ("µs", "speedup"):
        table.add_column(name, no_wrap=True, justify="right")
    table.add_column("bottleneck", no_wrap=True)
    table.add_column("idea", overflow="fold")
    for row in rows:
        evaluation = row.evaluation
        timing = evaluation.timing if evaluation else None
        profile = evaluation.profile if evaluation else None
        table.add_row(
            short_id(row.candidate.id),
            evaluation.status.value.replace("_", " ") if evaluation else "not judged",
            _number(timing.median_us) if timing else "",
            f"{timing.speedup:.2f}×" if timing else "",
            profile.bottleneck if profile else "",
            Text(idea_text(row.candidate)),
        )
    return table


def lineage_table(steps: Sequence[LineageStep], run: Run) -> RenderableType:
    """A candidate's ancestors, oldest first, and itself."""
    title = f"lineage of {short_id(steps[-1].candidate)}, oldest first"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("candidate", "from", "made by"):
        table.add_column(name, no_wrap=True)
    for name in ("µs", "gain", "speedup"):
        table.add_column(name, no_wrap=True, justify="right")
    table.add_column("idea", overflow="fold")
    for step in steps:
        table.add_row(
            short_id(step.candidate),
            ", ".join(short_id(parent) for parent in step.parents) or "PyTorch",
            step.origin.detail if step.origin.kind == "model" else step.origin.kind,
            _number(step.median_us) if step.median_us is not None else (step.status or "not judged"),
            f"{step.gain:.2f}×" if step.gain is not None else "",
            f"{step.speedup:.2f}×" if step.speedup is not None else "",
            Text(step.idea),
        )
    said = "Gain: the fastest parent's time over its own; of the first, PyTorch's."
    measured = "" if run.device.startswith("cuda") else " Times are modelled, not measured."
    return Group(table, Text(said + measured, style="italic"))


def events_table(events: Sequence[AgentEvent]) -> RenderableType:
    """What the agents decided, in order."""
    table = Table(title="decisions", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("gen.", no_wrap=True, justify="right")
    for name in ("role", "candidate"):
        table.add_column(name, no_wrap=True)
    table.add_column("decision", overflow="fold")
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
                f"  {us_text(timing.median_us)} ({timing.source}), eager {us_text(timing.eager_us)}, "
                f"floor {us_text(timing.floor_us)}, {timing.speedup:.2f}×"
            )
        )
    if evaluation.profile is not None:
        lines.append(Text(f"  {evaluation.profile.bottleneck}: {evaluation.profile.explanation}"))
    return Group(*lines)


def hits_table(hits: Sequence[Hit]) -> RenderableType:
    """Innovations found, most similar first."""
    if not hits:
        return "Nothing found. The archive fills as runs end with a verified winner."
    lines: list[RenderableType] = []
    for hit in hits:
        i = hit.innovation
        where = f"{i.dtype.value}, {i.arch}, {i.floor_fraction:.0%} of floor"
        imported = ", imported" if i.provenance.origin == "import" else ""
        refuted = ", refuted since" if i.verification == "refuted" else ""
        times = f"{i.speedup:.2f}× ({i.provenance.time_source}{imported}{refuted})"
        lines.append(
            Text.assemble(f"{hit.similarity:.2f}  ", (i.problem_name, "bold"), f"  {times}; {where}")
        )
        lines.append(Padding(Text(i.idea, style="dim"), (0, 0, 0, 6)))
    return Group(Text("likeness, problem, speedup", style="italic"), *lines)


def import_table(report: ImportReport) -> RenderableType:
    """What became of a file's records."""
    counts = report.counts
    return (
        f"{counts.added} added, {counts.replaced} replaced, {counts.kept} known already, "
        f"{len(report.refused)} refused. Imported figures are another machine's."
    )


def archive_table(stats: ArchiveStats) -> RenderableType:
    """Counts of the archive."""
    table = Table(
        title=f"{stats.total} innovation{'s' * (stats.total != 1)}", title_justify="left", show_header=False
    )
    for name in ("by_operation", "by_dtype", "by_arch", "by_time_source", "by_verification", "by_origin"):
        counter = getattr(stats, name)
        table.add_row(
            name.removeprefix("by_").replace("_", " "),
            ", ".join(f"{k} {n}" for k, n in counter.most_common(12)),
        )
    return table
