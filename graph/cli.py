"""The command line: parses, calls, prints. Results go to stdout, progress and messages to stderr.

Exit codes: 0 improved or passed; 3 nothing better than PyTorch, a winner that waits for review, or a program that did
not pass; 2 bad input; 4 the disk is full and the run paused; 1 our fault or the machine's; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from graph import cli_app, cli_chat, cli_report, cli_review
from graph import doctor as doctoring
from graph.bench import as_lines, run_bench, write_report
from graph.bench_records import BenchResults
from graph.bench_report import render_summary
from graph.build import open_pool, open_store, require_archive
from graph.cli_archive import archive_app
from graph.cli_options import (
    ArchiveUrl,
    BaselinesOption,
    DeviceBudget,
    DeviceOption,
    Gpu,
    Home,
    Init,
    Inputs,
    Json,
    MaxCost,
    MaxTokens,
    Models,
    Pool,
    Quiet,
    RayAddress,
    SeedWith,
    Target,
    above_zero,
)
from graph.display import Display, to_json
from graph.entry import EXIT_INTERRUPTED
from graph.folders import require_writable
from graph.interrupts import interruptible
from graph.judging import judge_file
from graph.lineage import lineage as lineage_of
from graph.printing import EXIT_NOT_IMPROVED, conclude, continue_with, print_result
from graph.session import (
    continue_run,
    export_again,
    find_run,
    find_summary,
    give_hint,
    resume_run,
    resumed_settings,
    start_run,
)
from graph.settings import resolve_settings
from graph.summary import detailed, run_candidates
from graph.tables import (
    candidates_table,
    events_table,
    lineage_table,
    runs_table,
    summary_table,
    verdict_table,
)
from memory.errors import DiskFull, WarpsmithError
from memory.records import Status
from tools.problem import parse_target

app = typer.Typer(
    name="warpsmith",
    help="Turn PyTorch modules into verified, faster CUDA kernels.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(archive_app, name="archive")
cli_app.register(app)
cli_chat.register(app)
cli_report.register(app)
cli_review.register(app)


@app.command(
    epilog="Examples:\n\n  warpsmith optimize examples/layernorm_gelu.py\n\n"
    '  warpsmith optimize net.py:Block --inputs "f32[64,512]" --init "[512]" --gpu a100 --json\n\n'
    "  OPENAI_API_KEY=... warpsmith optimize net.py --models gpt-5:0.6,o4-mini:0.4 --max-cost 2"
)
def optimize(
    target: Target,
    inputs: Inputs = None,
    init: Init = None,
    device: DeviceOption = None,
    gpu: Gpu = None,
    baselines: BaselinesOption = None,
    generations: Annotated[int | None, typer.Option(min=1, help="generations at most [default: 5]")] = None,
    population: Annotated[
        int | None, typer.Option(min=1, max=1000, help="candidates per generation [default: 8]")
    ] = None,
    islands: Annotated[
        int | None,
        typer.Option(
            min=1, max=64, help="parts of the population that evolve apart [default: one for every 25]"
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            min=1, help="stop after so many generations without a gain [default: a fifth of all, 2 at least]"
        ),
    ] = None,
    max_evaluations: Annotated[int | None, typer.Option(min=1, help="candidates to judge at most")] = None,
    wall_s: Annotated[
        float | None,
        typer.Option("--budget-s", callback=above_zero, help="seconds of searching at most [default: 900]"),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(callback=above_zero, help="relative error that always passes [default: 1e-6]"),
    ] = None,
    soak_trials: Annotated[
        int | None,
        typer.Option(
            "--soak", min=0, help="further random trials for the winner [default: 100, on a GPU 1000]"
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=256, help="evaluations at once [default: one per core, at most 8]"),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="same seed, same programs [default: 0]")] = None,
    seed_with: SeedWith = None,
    models: Models = None,
    max_cost_usd: MaxCost = None,
    max_tokens: MaxTokens = None,
    device_budget_s: DeviceBudget = None,
    export_dir: Annotated[
        Path | None, typer.Option("--out", help="folder of the exported winner [default: warpsmith-out]")
    ] = None,
    review: Annotated[
        bool | None, typer.Option("--review/--no-review", help="wait for approval before archiving")
    ] = None,
    review_above: Annotated[
        float | None, typer.Option(min=1, help="with --review: only for at least this speedup [default: 1]")
    ] = None,
    pool: Pool = None,
    ray_address: RayAddress = None,
    archive_url: ArchiveUrl = None,
    home: Home = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search for CUDA kernels that beat PyTorch on a module.

    Exit code 0: improved; 3: PyTorch stays, or the winner waits for review. `--json` says in `why_not` why it stays.
    """
    settings = resolve_settings(
        device=device, baselines=baselines, gpu=gpu, generations=generations, population=population, wall_s=wall_s,
        relative_tolerance=tolerance, soak_trials=soak_trials, workers=workers, seed=seed, export_dir=export_dir,
        review=review, review_above=review_above, patience=patience, islands=islands,
        max_evaluations=max_evaluations, models=models, max_cost_usd=max_cost_usd, max_tokens=max_tokens,
        device_budget_s=device_budget_s, pool=pool, ray_address=ray_address, archive_url=archive_url, home=home,
        seeds=",".join(seed_with) if seed_with else None,
    )  # fmt: skip
    parsed = parse_target(target, inputs=inputs, init=init)
    require_writable(settings.export_dir)
    with (
        interruptible("no run was begun") as interrupt,
        open_store(settings) as store,
        open_pool(settings) as pooled,
        Display(quiet=quiet or as_json) as display,
    ):
        require_archive(settings)
        run = start_run(parsed, settings, store, display.tell)
        interrupt.remedy = continue_with(run.id)
        display.announce(run, store.problem(run.problem_hash), settings)
        outcome = continue_run(run, store, settings, display.tell, pool=pooled)
    conclude(outcome, as_json=as_json)


@app.command(epilog="Example:\n\n  warpsmith resume layernorm_gelu-2026 --budget-s 1800")
def resume(
    run: Annotated[str, typer.Argument(help="run id or its beginning")],
    wall_s: Annotated[
        float | None,
        typer.Option("--budget-s", callback=above_zero, help="a new limit of searching, in seconds"),
    ] = None,
    generations: Annotated[int | None, typer.Option(min=1, help="a new limit of generations")] = None,
    approve: Annotated[
        bool | None, typer.Option("--approve/--reject", help="answer a run that waits for review")
    ] = None,
    note: Annotated[str, typer.Option(help="why, for the record")] = "",
    pool: Pool = None,
    ray_address: RayAddress = None,
    archive_url: ArchiveUrl = None,
    home: Home = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Continue a run that was stopped, killed or paused by a full disk; nothing evaluated is evaluated again."""
    settings = resolve_settings(home=home)
    answer = None if approve is None else {"verdict": "approved" if approve else "rejected", "note": note}
    with open_store(settings) as store:
        found = find_run(run, store)
        with interruptible(continue_with(found.id)), Display(quiet=quiet or as_json) as display:
            if not found.status.ended:
                display.announce(found, store.problem(found.problem_hash), resumed_settings(found, settings))
            outcome = resume_run(
                found, store, settings, display.tell, answer=answer, wall_s=wall_s, generations=generations,
                pool=pool, ray_address=ray_address, archive_url=archive_url,
            )  # fmt: skip
    conclude(outcome, as_json=as_json)


@app.command(epilog='Example:\n\n  warpsmith hint layernorm_gelu-2026 "keep the row in registers"')
def hint(
    run: Annotated[str, typer.Argument(help="run id or its beginning")],
    text: Annotated[str, typer.Argument(help="an idea for the language models, in words")],
    home: Home = None,
) -> None:
    """Give a run's language models an idea; they see it from the next generation on."""
    settings = resolve_settings(home=home)
    with open_store(settings) as store:
        typer.echo(give_hint(find_run(run, store), text, store))


@app.command(
    epilog="Examples:\n\n  warpsmith show\n\n  warpsmith show layernorm_gelu-2026 --json\n\n"
    "  warpsmith show layernorm_gelu-2026 --lineage"
)
def show(
    run: Annotated[str | None, typer.Argument(help="run id or its beginning; without it, all runs")] = None,
    lineage: Annotated[
        bool, typer.Option("--lineage", help="the winner's ancestors, with each step's idea and gain")
    ] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """List runs, or show one: its outcome, candidates, agents' decisions.

    A run is running, in review, interrupted or paused (`warpsmith resume` continues it), improved, not improved or
    failed.

    `--json` gives a list of outcomes, newest first. Of one run it gives the outcome, with `why_not`: why the run has no
    winner, `candidates`: id, origin, idea, generation, parents, status, speedup, median_us, program_hash, and
    `decisions`: the agents' events; both in order. With `--lineage` it gives a list of the winner's ancestors, oldest
    first: candidate, parents, generation, origin, idea, status, median_us, speedup and gain, which is the time of its
    fastest parent (of PyTorch, for the first) over its own.
    """
    settings = resolve_settings(home=home)
    with open_store(settings) as store:
        if run is None:
            summaries = [find_summary(r, store, settings) for r in store.runs()]
            print_result(runs_table(summaries, Console().width), summaries, as_json=as_json)
            return
        found = find_run(run, store)
        if lineage:
            steps = lineage_of(found, store)
            print_result(lineage_table(steps, found), steps, as_json=as_json)
            return
        summary = find_summary(found, store, settings)
        if as_json:
            typer.echo(to_json(detailed(summary, found, store)))
            return
        print_result(summary_table(summary), summary, as_json=False)
        print_result(candidates_table(run_candidates(found, store)), None, as_json=False)
        print_result(events_table(store.events(found.id)), None, as_json=False)


@app.command(epilog="Example:\n\n  warpsmith verify program.json --problem examples/layernorm_gelu.py --json")
def verify(
    program: Annotated[Path, typer.Argument(help="a Program as JSON")],
    problem: Annotated[str, typer.Option(help="the module it must equal, as for `optimize`")],
    inputs: Inputs = None,
    init: Init = None,
    device: DeviceOption = None,
    gpu: Gpu = None,
    tolerance: Annotated[
        float | None, typer.Option(callback=above_zero, help="relative error that always passes")
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Judge a program from outside. Exit code 0 only where it PASSED."""
    settings = resolve_settings(device=device, gpu=gpu, relative_tolerance=tolerance, home=home)
    target = parse_target(problem, inputs=inputs, init=init)
    evaluation = judge_file(program, target, settings)
    print_result(verdict_table(evaluation), evaluation, as_json=as_json)
    if evaluation.status is not Status.PASSED:
        raise typer.Exit(EXIT_NOT_IMPROVED)


@app.command(epilog="Example:\n\n  warpsmith export layernorm_gelu-2026 --out kernels/")
def export(
    run: Annotated[str, typer.Argument(help="run id or its beginning")],
    export_dir: Annotated[Path | None, typer.Option("--out", help="folder to write to")] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Write a run's winner again as one Python file with `class ModelNew`."""
    settings = resolve_settings(home=home, export_dir=export_dir)
    require_writable(settings.export_dir)
    with open_store(settings) as store:
        summary = export_again(find_run(run, store), store, settings)
    print_result(f"exported to {summary.export_path}", summary, as_json=as_json)


@app.command(
    epilog="Examples:\n\n  warpsmith bench benchmarks/suite --out results.json\n\n"
    "  warpsmith bench problems/ --out results.json --only 'level1/*' --limit 5"
)
def bench(
    folder: Annotated[Path, typer.Argument(help="folder of files in the KernelBench form")],
    out: Annotated[Path, typer.Option(help="results; finished problems in it are not repeated")] = Path(
        "results.json"
    ),
    only: Annotated[list[str] | None, typer.Option(help="names, parts or patterns; may be repeated")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="at most so many problems")] = None,
    device: DeviceOption = None,
    gpu: Gpu = None,
    baselines: BaselinesOption = None,
    generations: Annotated[int | None, typer.Option(min=1, help="generations at most, per problem")] = None,
    population: Annotated[int | None, typer.Option(min=1, max=1000, help="candidates per generation")] = None,
    pool: Pool = None,
    ray_address: RayAddress = None,
    archive_url: ArchiveUrl = None,
    home: Home = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Optimize a folder of problems, resumably; write the results and a report beside them.

    Exit code 1 where a problem failed through the machine's fault: the same command tries it again.
    """
    settings = resolve_settings(
        device=device, gpu=gpu, baselines=baselines, generations=generations, population=population, pool=pool,
        ray_address=ray_address, archive_url=archive_url, home=home,
    )  # fmt: skip
    require_writable(settings.export_dir, "run from another folder or set WARPSMITH_EXPORT_DIR")
    require_writable(out.parent)
    with (
        interruptible("the same command continues"),
        open_store(settings) as store,
        Display(quiet=quiet or as_json) as display,
    ):
        results = run_bench(
            folder, out, settings, store, as_lines(display.tell), only=only or (), limit=limit
        )
    text, plot = write_report(results, out)
    print_result(
        f"{render_summary(results)}\nresults {out}, report {text}, plot {plot}", results, as_json=as_json
    )
    if failed := failed_by_machine(results):
        typer.echo(
            f"{len(failed)} failed by the machine's fault ({', '.join(failed)}); run it again", err=True
        )
        raise typer.Exit(1)


def failed_by_machine(results: BenchResults) -> list[str]:
    """Names of the problems that the next benchmark tries again."""
    return [entry.name for entry in results.entries if entry.fault == "machine"]


@app.command()
def doctor(home: Home = None, as_json: Json = False) -> None:
    """Say what this machine has, what that allows, and what to install; exit code 1 where a need is unmet."""
    settings = resolve_settings(home=home)
    checks = doctoring.examine(settings)
    print_result(doctoring.table(checks), checks, as_json=as_json)
    if any(check.needed and not check.found for check in checks):
        raise typer.Exit(1)


def main() -> None:
    """Entry of the `warpsmith` command: our own exceptions become one clear message and an exit code."""
    try:
        app()
    except DiskFull as full:
        # Not through typer: stderr may be a file on that disk, and what is left in a buffer would change the exit code.
        with suppress(OSError):
            os.write(2, f"warpsmith: {full}\n".encode())
        sys.exit(full.exit_code)
    except WarpsmithError as error:
        typer.echo(f"warpsmith: {error}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("warpsmith: interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
