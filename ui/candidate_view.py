"""One candidate, drawn: what it is, what the verifier said, its program and where its time goes."""

from __future__ import annotations

import streamlit as st

from agents.schemas import short_id
from graph.differences import difference
from graph.roofs import dots_of, roofs_of
from memory.events import EvaluatedCandidate
from memory.records import BaselineTime, Evaluation, Program, Run, Status, Timing
from memory.store import Store
from ui.family_chart import made_by, verdict_of
from ui.links import link
from ui.plan_tables import draw_plan
from ui.profile_view import draw_profile
from ui.roofline_chart import draw_roofline

_BASELINES = {
    "eager": "eager PyTorch",
    "compile": "torch.compile",
    "compile_best": "torch.compile, best of its modes",
}
PARENTS_SHOWN = 4
"""A candidate has at most three parents."""


def draw_candidate(row: EvaluatedCandidate, run: Run, store: Store) -> None:
    """Draw all of it."""
    candidate, evaluation = row.candidate, row.evaluation
    program = store.program(candidate.program_hash)
    _draw_head(row, run)
    changes, source, plan, errors, profile = st.tabs(
        ["Changes", "Source", "Launch plan", "Correctness", "Profile"]
    )
    with source:
        if program.source.strip():
            st.code(program.source, language="cpp", line_numbers=True)
        else:
            st.caption("It has no kernel of its own: its plan calls the library alone.")
    with changes:
        _draw_changes(row, program, store)
    with plan:
        draw_plan(program)
    with errors:
        _draw_errors(evaluation)
    with profile:
        _draw_profile(evaluation, run, store)


def _draw_head(row: EvaluatedCandidate, run: Run) -> None:
    candidate, evaluation = row.candidate, row.evaluation
    name, badge = st.columns([5, 1.4], vertical_alignment="center")
    name.subheader(f"Candidate {short_id(candidate.id)}")
    status = evaluation.status if evaluation else None
    colour = "gray" if status is None else "green" if status is Status.PASSED else "red"
    with badge:
        st.badge(verdict_of(status), color=colour)  # type: ignore[arg-type]
    st.text(candidate.idea.replace(f"{run.id}-", ""))
    made = (
        f"generation {candidate.generation}, island {candidate.island}, made by {made_by(candidate.origin)}"
    )
    techniques = f"; {', '.join(candidate.techniques)}" if candidate.techniques else ""
    st.text(f"{made}{techniques}")
    if candidate.id == run.best_candidate:
        st.success("The verified winner of its run.", icon=":material/verified:")
    with st.container(horizontal=True):
        link(
            "traces",
            "Steps about it",
            icon=":material/list_alt:",
            run=run.id,
            candidate=short_id(candidate.id),
        )
        link("runs", "Its run", icon=":material/monitoring:", run=run.id)
    if evaluation is None:
        st.info("It has no verdict yet.", icon=":material/hourglass_empty:")
        return
    _draw_diagnostics(evaluation)
    if evaluation.timing is not None:
        _draw_timing(evaluation.timing)


def _draw_diagnostics(evaluation: Evaluation) -> None:
    if evaluation.status is not Status.PASSED:
        st.error(f"It failed at the stage {evaluation.stage.value}.", icon=":material/block:")
    for found in evaluation.diagnostics:
        where = f", line {found.line}" if found.line is not None else ""
        st.text(f"{found.rule}{where}: {found.message}")
        if found.excerpt:
            st.code(found.excerpt, language="cpp")


def _draw_timing(timing: Timing) -> None:
    share = min(timing.floor_us / timing.median_us, 1.0) if timing.median_us else 0.0
    numbers = (
        (f"Time ({timing.source})", f"{_us(timing.median_us)} µs"),
        ("Speedup over eager", f"{timing.speedup:.2f}×"),
        ("Floor (modelled)", f"{_us(timing.floor_us)} µs"),
        ("Share of the floor", f"{share:.0%}"),
    )
    with st.container(horizontal=True, gap="medium"):
        for label, value in numbers:
            st.metric(label, value, width="content")
    own = {
        "what": "this candidate",
        "median µs": _us(timing.median_us),
        "interval µs": f"{_us(timing.low_us)} to {_us(timing.high_us)}",
        "speedup over it": "",
    }
    st.dataframe(
        [own, *(_baseline(baseline, timing) for baseline in timing.baselines)],
        hide_index=True, width="stretch",
    )  # fmt: skip
    rounds = f", {timing.rounds} rounds" if timing.rounds is not None else ""
    verdict = (
        "Even its slow end beats the fast end of every baseline."
        if timing.improved
        else "Its interval is not clear of the fastest baseline's."
    )
    st.caption(f"Times are {timing.source}{rounds}. {verdict}")


def _baseline(baseline: BaselineTime, timing: Timing) -> dict[str, str]:
    return {
        "what": _BASELINES[baseline.name],
        "median µs": _us(baseline.median_us),
        "interval µs": f"{_us(baseline.low_us)} to {_us(baseline.high_us)}",
        "speedup over it": f"{baseline.median_us / timing.median_us:.2f}×",
    }


def _draw_changes(row: EvaluatedCandidate, program: Program, store: Store) -> None:
    candidate = row.candidate
    if not candidate.parents:
        st.caption(f"It has no parents: it began its line, made by {candidate.origin.kind}.")
        return
    known = store.relatives(candidate.parents)
    for relative in known[:PARENTS_SHOWN]:
        parent = relative.candidate
        names = short_id(parent.id), short_id(candidate.id)
        found = difference(store.program(parent.program_hash), program, names=names)
        st.markdown(f"**Against its parent {names[0]}**")
        if found.nothing:
            st.caption("The programs are the same.")
        if found.tunables:
            st.dataframe(
                [
                    {"tunable": name, "before": _value(before), "after": _value(after)}
                    for name, before, after in found.tunables
                ],
                hide_index=True,
            )
        if found.source:
            st.code(found.source, language="diff")
        elif not found.nothing:
            st.caption("The source is the same.")
        if found.plan:
            with st.expander("Changes of the launch plan"):
                st.code(found.plan, language="diff")
    if len(known) < len(candidate.parents):
        st.caption("A parent of it is not in this store.")


def _draw_errors(evaluation: Evaluation | None) -> None:
    if evaluation is None or not evaluation.errors:
        st.caption("It was not compared with the float64 oracle: it did not get as far.")
        return
    st.caption(
        "Largest error of each output against the float64 oracle, by distribution of the inputs; eager PyTorch's own "
        "error is beside it."
    )
    st.dataframe(
        [
            {
                "inputs": error.distribution,
                "output": error.output,
                "error": _small(error.error),
                "allowed": _small(error.allowed),
                "eager": _small(error.eager_error),
                "of what is allowed": "" if error.error is None else f"{error.error / error.allowed:.0%}",
                "passed": "yes" if error.error is not None and error.error <= error.allowed else "no",
            }
            for error in evaluation.errors
        ],
        hide_index=True,
        width="stretch",
        height=min(38 + 35 * len(evaluation.errors), 500),
    )


def _draw_profile(evaluation: Evaluation | None, run: Run, store: Store) -> None:
    if evaluation is None or evaluation.profile is None or evaluation.timing is None:
        st.caption("There is no profile: only a candidate that passed is timed.")
        return
    profile, source = evaluation.profile, evaluation.timing.source
    roofs = roofs_of(run, store.problem(run.problem_hash))
    if roofs is None:
        st.caption(f"The rates of {run.device} are not in our table, so no roofline is drawn.")
    else:
        dots, without = dots_of(profile, roofs)
        st.markdown(f"**Roofline ({roofs.gpu})**")
        draw_roofline(roofs, dots, without=without, source=source)
    draw_profile(profile, source=source)


def _us(value: float) -> str:
    return f"{value:,.2f}"


def _small(value: float | None) -> str:
    return "not a number" if value is None else f"{value:.3g}"


def _value(value: int | None) -> str:
    return "absent" if value is None else str(value)
