"""What people see of a run at work, on stderr; and JSON for programs. Not here: tables on stdout (graph.tables)."""

from __future__ import annotations

import dataclasses
import json
from types import TracebackType

from pydantic import BaseModel
from rich.console import Console
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from agents.schemas import short_id
from graph.estimate import estimate
from graph.progress import (
    BaselineReady,
    CandidateJudged,
    GenerationClosed,
    GenerationPlanned,
    SoakProgress,
    StageStarted,
)
from graph.progress import Progress as Event
from graph.settings import Settings
from graph.tables import idea_text, us_text
from memory.records import Problem, Run
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

    def announce(self, run: Run, problem: Problem, settings: Settings) -> None:
        """Say which run this is, who plays the agents, what that may cost, and what was captured."""
        self._console.print(f"[bold]{run.id}[/bold] on {run.device}, {agents_text(settings)}")
        self._console.print(f"  {problem_signature(problem)}", markup=False)
        if settings.endpoint is not None:
            expected = estimate(settings, settings.endpoint).sentence(settings.price_list)
            self._console.print(f"  {expected}", markup=False)

    def tell(self, event: Event) -> None:
        """Show one event."""
        if isinstance(event, StageStarted):
            self._bar.update(self._task, description=event.text, total=None)
            self._console.print(f"[dim]{event.text}[/dim]")
        elif isinstance(event, BaselineReady):
            eager = event.baselines[0]
            self._console.print(
                f"  baseline {eager.name} {us_text(eager.median_us)}, floor {us_text(event.floor_us)}; "
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


def agents_text(settings: Settings) -> str:
    """Who plays the agents."""
    if settings.endpoint is None:
        return f"agents by rules ({settings.why_rules})"
    where = settings.endpoint.base_url or "OpenAI"
    return f"agents by {', '.join(settings.endpoint.model_names())} at {where}, beside rules"


def _judged_line(event: CandidateJudged) -> Text:
    evaluation = event.evaluation
    head = Text(f"  {short_id(event.candidate.id):<10}")
    if evaluation.timing is not None:
        timing = evaluation.timing
        head.append(f"{us_text(timing.median_us):>13} {timing.speedup:>5.2f}×", style="green")
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
    best = f"best {us_text(event.best_us)}" if event.best_us is not None else "nothing passed yet"
    line = Text(
        f"generation {event.generation}: {event.passed} passed, {event.failed} failed, {best}", style="bold"
    )
    if event.stop:
        line.append(f"; stopping: {event.stop}")
    return line


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
