"""A run's report: what was found, on what, how fast, what was verified and what was not, and how to use it. Pure.

Not here: reading the store (graph.report_facts), the two forms (graph.report_blocks). Invariants: a modelled time is
never called measured; losses are told as plainly as wins.
"""

from __future__ import annotations

from collections.abc import Iterator

from agents.schemas import short_id
from graph.report_blocks import Block, Grid, Heading, Items, Listing, Paragraph, Plot, to_html, to_markdown
from graph.report_facts import ReportFacts
from graph.report_plots import search_plot, times_plot
from graph.summary import IN_REVIEW, LEFT
from graph.tables import us_text
from memory.evaluation_records import SAME_KERNELS_GAIN
from memory.records import BaselineTime, RunStatus, Timing

_BASELINES = {
    "eager": "eager PyTorch",
    "compile": "torch.compile (default)",
    "compile_best": "torch.compile (best mode)",
}
_ALWAYS_UNVERIFIED = (
    "inputs unlike the distributions above",
    "weights written through `.data` after the first call: call warpsmith_forget() then",
)
_MAX_STEPS = 40
_SETTINGS = (
    "gpu", "baselines", "relative_tolerance", "eager_factor", "population", "generations", "islands", "wall_s",
    "soak_trials", "verify_elements", "models", "review",
)  # fmt: skip
"""Settings that a reader of the result needs."""


_SNIPPET = """\
import torch
from fast import ModelNew

model = ModelNew(...).to("cuda")  # the arguments it was verified with: {init}
with torch.no_grad():
    out = model(...)  # inputs of these shapes, on the GPU: {inputs}
print(model.warpsmith_fallback_reason)  # None where the kernels ran"""


def report_markdown(facts: ReportFacts) -> str:
    """The report as Markdown."""
    return to_markdown(list(_blocks(facts)))


def report_html(facts: ReportFacts) -> str:
    """The report as one HTML file with plots, which asks nothing of any host."""
    return to_html(list(_blocks(facts)), f"{facts.problem.name}: {facts.run.id}")


def next_steps(status: str, run_id: str) -> tuple[str, ...]:
    """What to do with a run that has no winner."""
    if status in LEFT:
        return (
            f"`warpsmith resume {run_id}` goes on where it stopped; nothing already judged is judged again.",
        )
    if status == IN_REVIEW:
        return (
            f"Say yes or no to its winner: the Review page, or `warpsmith resume {run_id} --approve` (--reject).",
        )
    if status == RunStatus.RUNNING.value:
        return ("Wait for it, or stop it: what passed by then can be seen at once.",)
    if status == RunStatus.FAILED.value:
        return ("Mend the module as said above, and start another run.",)
    return (
        "Keep PyTorch: nothing that was tried beats it here, and that is a result too.",
        "Give the next run more: --generations, --population, a longer --budget-s, or language models (--models).",
        f"See why candidates failed: the Lineage page, or `warpsmith show {run_id}`.",
        "Check the shapes: small tensors leave little to gain but the cost of launches.",
    )


def _blocks(facts: ReportFacts) -> Iterator[Block]:
    yield from _head(facts)
    if (timing := facts.timing) is not None:
        yield from _time(facts, timing)
        yield from _profile(facts)
        yield from _verification(facts)
    yield from _search(facts)
    if facts.won:
        yield from _usage(facts)
    yield from _settings(facts)


def _head(facts: ReportFacts) -> Iterator[Block]:
    timing = facts.timing
    yield Heading(1, f"Warpsmith report: {facts.problem.name}")
    status = facts.status.replace("_", " ")
    if facts.won and timing is not None:
        yield Paragraph(
            f"{timing.speedup:.2f}× as fast as eager PyTorch ({timing.source}) on {timing.device}:"
            f" {us_text(timing.median_us)} for one forward instead of {us_text(timing.eager_us)}. Run: {status}."
        )
    else:
        reason = f": {facts.why_not}" if facts.why_not else ""
        yield Paragraph(f"No verified winner ({status}){reason}. The result is PyTorch itself.")
        yield Heading(2, "What to do")
        yield Items(next_steps(facts.status, facts.run.id))
    yield Grid(
        ("what", "value"),
        (
            ("run", facts.run.id),
            ("module", facts.signature),
            ("device", facts.run.device),
            ("times", _kind(timing)),
            ("candidates judged", f"{facts.evaluations}{_by_status(facts)}"),
            ("started", facts.run.created),
        ),
    )


def _kind(timing: Timing | None) -> str:
    if timing is None:
        return "none: nothing passed"
    if timing.source == "measured":
        rounds = f", {timing.rounds} rounds" if timing.rounds else ""
        return f"measured on {timing.device}{rounds}; the interval is the confidence interval of the median"
    return f"modelled by {timing.device}, not measured on a GPU; the interval is the model's own error"


def _by_status(facts: ReportFacts) -> str:
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in facts.by_status.items())
    return f" ({counts})" if counts else ""


# --- time -----------------------------------------------------------------------------------------------------------


def _time(facts: ReportFacts, timing: Timing) -> Iterator[Block]:
    yield Heading(2, f"Time of one forward ({timing.source})")
    if not facts.won:
        yield Paragraph("Of the fastest candidate that passed its trials; it is no verified winner.")
    ours = ("ours", timing.median_us, timing.low_us, timing.high_us, True)
    bars = [(b.name.replace("_", " "), b.median_us, b.low_us, b.high_us, False) for b in timing.baselines]
    yield Plot(times_plot([ours, *bars], timing.floor_us, timing.source))
    rows = [("this program", us_text(timing.median_us), _interval(timing.low_us, timing.high_us), "", "")]
    rows += [
        (
            _BASELINES[b.name],
            us_text(b.median_us),
            _interval(b.low_us, b.high_us),
            f"{b.median_us / timing.median_us:.2f}×",
            _outcome(timing, b),
        )
        for b in timing.baselines
    ]
    yield Grid(("what", "median ", "interval ", "speedup over it ", "outcome"), tuple(rows))
    untimed = [title for name, title in _BASELINES.items() if name not in {b.name for b in timing.baselines}]
    lines = [
        f"The floor, which is the least that memory traffic and arithmetic allow on this GPU, is"
        f" {us_text(timing.floor_us)}; the program reaches {timing.floor_us / timing.median_us:.0%} of it."
    ]
    if untimed:
        lines.append(f"Not timed as baselines: {', '.join(untimed)} (--baselines best times them on a GPU).")
    if timing.source == "modelled":
        lines.append("A model ranks programs; it says nothing certain about speed. Measure on a GPU.")
    yield Items(tuple(lines))


def _interval(low: float, high: float) -> str:
    return f"{us_text(low)} to {us_text(high)}"


def _outcome(timing: Timing, baseline: BaselineTime) -> str:
    """Whether the intervals tell the two apart, by more than calling the same kernels otherwise gains."""
    if timing.high_us * SAME_KERNELS_GAIN < baseline.low_us:
        return "win"
    if timing.low_us > baseline.high_us:
        return "loss"
    return "no difference that counts"


def _profile(facts: ReportFacts) -> Iterator[Block]:
    profile = facts.row.evaluation.profile if facts.row and facts.row.evaluation else None
    if profile is None:
        return
    yield Heading(2, "Where the time goes")
    yield Paragraph(f"Bottleneck: {profile.bottleneck}. {profile.explanation}.")
    rows = tuple(
        (
            step.name,
            "this program" if step.authored else "the library",
            f"{step.us:.3g}",
            step.limiter,
            f"{step.occupancy:.0%}" if step.occupancy is not None else "",
            str(step.registers) if step.registers is not None else "",
            "counters" if step.counted else "model or shapes",
        )
        for step in profile.steps[:_MAX_STEPS]
    )
    yield Grid(("step", "made by", "µs ", "limited by", "occupancy ", "registers ", "known from"), rows)
    if profile.counters_absent:
        yield Paragraph(f"No hardware counters: {profile.counters_absent}.")


# --- what is known of its correctness -------------------------------------------------------------------------------


def _verification(facts: ReportFacts) -> Iterator[Block]:
    kept = facts.run.settings
    yield Heading(2, "What was verified")
    rule = (
        f"every output of every trial was within max({kept['relative_tolerance']}, {kept['eager_factor']} × the error"
        " of eager PyTorch) of a float64 oracle, relative to max(|oracle|, rms(oracle))"
    )
    yield Items((rule, *facts.verified, *facts.examined))
    errors = facts.row.evaluation.errors if facts.row and facts.row.evaluation else ()
    if errors:
        yield Grid(
            ("distribution", "output", "largest error ", "eager's own ", "allowed "),
            tuple(
                (
                    e.distribution,
                    e.output,
                    "not a number" if e.error is None else f"{e.error:.2e}",
                    f"{e.eager_error:.2e}",
                    f"{e.allowed:.2e}",
                )
                for e in errors
            ),
        )
    yield Heading(2, "What was not verified")
    yield Items((*facts.not_verified, *_ALWAYS_UNVERIFIED))


# --- how it was found -----------------------------------------------------------------------------------------------


def _search(facts: ReportFacts) -> Iterator[Block]:
    yield Heading(2, "How it was found")
    spend = facts.spend
    models = (
        f"language models: {spend.calls:,} calls, {spend.tokens:,} tokens, {spend.cost_usd:.4f} USD"
        + (f", {spend.unpriced} calls without a known price" if spend.unpriced else "")
        if spend.calls
        else "no language model was asked: agents by rules"
    )
    yield Items(
        (models, *(_review(review.candidate_id, review.verdict, review.note) for review in facts.reviews))
    )
    if facts.generations:
        best = [(g.generation, g.best_us) for g in facts.generations]
        if (timing := facts.timing) is not None:
            yield Plot(search_plot(best, timing.eager_us, timing.floor_us, timing.source))
        yield Grid(
            ("generation ", "judged ", "passed ", "best "),
            tuple(
                (str(g.generation), str(g.judged), str(g.passed), us_text(g.best_us))
                for g in facts.generations
            ),
        )
    if facts.steps:
        yield Heading(3, "Lineage, first ancestor first")
        yield Grid(
            ("candidate", "made by", "idea", "time ", "gain over its fastest parent "),
            tuple(
                (
                    short_id(step.candidate),
                    f"{step.origin.kind}: {step.origin.agent}",
                    step.idea,
                    us_text(step.median_us),
                    f"{step.gain:.2f}×" if step.gain is not None else "",
                )
                for step in facts.steps[-_MAX_STEPS:]
            ),
        )


def _review(candidate_id: str, verdict: str, note: str) -> str:
    return f"a person {verdict.replace('_', ' ')} {short_id(candidate_id)}{f': {note}' if note else ''}"


def _usage(facts: ReportFacts) -> Iterator[Block]:
    name = facts.problem.target.class_name
    yield Heading(2, "How to use it")
    yield Items(
        (
            f"Save the exported file, {facts.run.id}.py, under a name that Python can import, such as fast.py. It needs"
            " torch, and on the GPU cuda-core, cuda-bindings and NVRTC; its head says more.",
            f"ModelNew has the constructor, parameters, buffers and state_dict of {name}, and takes its weights.",
            f"The kernels run for inputs {facts.own_shapes} under torch.no_grad(); for anything else the original"
            " forward runs, and warpsmith_fallback_reason says why.",
        )
    )
    yield Listing(
        _SNIPPET.format(
            init=facts.problem.target.init or "those of get_init_inputs()", inputs=facts.own_shapes
        ),
        "python",
    )
    if facts.program is not None:
        values = ", ".join(f"{key} = {value}" for key, value in facts.program.tunable_values().items())
        yield Paragraph(
            f"Tunables: {values or 'none'}. Kernels: {', '.join(facts.program.entries) or 'none'}."
        )


def _settings(facts: ReportFacts) -> Iterator[Block]:
    yield Heading(2, "Settings of the run")
    kept = facts.run.settings
    yield Grid(
        ("setting", "value"),
        (
            ("seed", str(facts.run.seed)),
            *((name, kept[name] or "none") for name in _SETTINGS if name in kept),
        ),
    )
