"""The page of runs: all of them, and one of them as it goes. Numbers come from the store, whoever works on the run."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from graph.curves import curve, levels, thinned
from graph.evolution import Fitness
from graph.gauges import Gauge, gauges
from graph.glance import Glance, glance
from graph.session import find_run, find_summary
from graph.settings import settings_from_run
from graph.summary import LEFT, Summary, policy_hash
from graph.tables import us_text
from memory.records import Run, RunStatus
from ui.candidates_view import draw_candidates
from ui.links import asked, link
from ui.resources import runner, settings, store
from ui.run_charts import draw_course, draw_fitness, draw_islands, draw_population
from ui.run_controls import draw_controls
from ui.run_view import COLOURS, draw_run
from ui.words import nothing_yet, plain, telling_errors

LISTED = 20
"""Runs on one page of the list."""
LARGE = 3_000
"""Candidates from which on plots are drawn again less often: each drawing reads as many rows."""
_POLL_S, _TABLE_POLL_S, _LARGE_POLL_S = 1.0, 5.0, 10.0


def page() -> None:
    """Draw it."""
    st.title("Runs")
    wanted = asked("run")
    if wanted is None:
        _draw_list()
    else:
        _draw_one(find_run(wanted, store()))


# --- the list -------------------------------------------------------------------------------------------------------


def _draw_list() -> None:
    number = asked("page") or "1"
    at = max(int(number), 1) if number.isascii() and number.isdigit() and len(number) < 7 else 1
    total, runs = store().run_page(limit=LISTED, offset=(at - 1) * LISTED)
    if total == 0:
        nothing_yet(
            "There are no runs yet.", "Start one in the chat: paste a module, drop a file or pick an example."
        )
        link("chat", "Open the chat", icon=":material/forum:")
        return
    if not runs:
        nothing_yet(f"There is no page {at} of {total} runs.", "The newest are on the first page.")
    for run in runs:
        _draw_line(_ended(run) if run.status.ended else find_summary(run, store(), settings()), run)
    last = -(-total // LISTED)
    if last > 1:
        with st.container(horizontal=True, vertical_alignment="center"):
            if at > 1:
                link("runs", "Newer", icon=":material/chevron_left:", page=str(min(at - 1, last)))
            st.caption(f"page {at} of {last}, {total} runs", width="content")
            if at < last:
                link("runs", "Older", icon=":material/chevron_right:", page=str(at + 1))


@st.cache_data(show_spinner=False, max_entries=200, hash_funcs={Run: Run.model_dump_json})
def _ended(run: Run) -> Summary:
    """Of a run that has ended: it changes no more, unless its record does."""
    return find_summary(run, store(), settings())


def _draw_line(summary: Summary, run: Run) -> None:
    with st.container(border=True, gap="small"):
        with st.container(horizontal=True, vertical_alignment="center"):
            link("runs", plain(run.id), icon=":material/monitoring:", run=run.id)
            st.markdown(_badge(summary.status), width="content")
        st.caption(plain(" · ".join(_facts(summary, run))))


def _facts(summary: Summary, run: Run) -> list[str]:
    kind = "measured" if summary.measured else "modelled"
    said = [run.device]
    if summary.best_us is not None and summary.baseline_us is not None:
        name = "winner" if summary.status == RunStatus.IMPROVED.value else "best so far"
        if summary.status == RunStatus.NOT_IMPROVED.value:
            name = "best, which did not win"
        said.append(
            f"{name} {us_text(summary.best_us)}, {summary.baseline_us / summary.best_us:.2f}× ({kind})"
        )
    judged = f"{summary.evaluations:,} evaluation{'' if summary.evaluations == 1 else 's'}"
    said += [judged, age(run.created, datetime.now(UTC))]
    return said


def age(created: str, now: datetime) -> str:
    """How long ago, in the largest unit that fits."""
    seconds = max((now - datetime.fromisoformat(created)).total_seconds(), 0.0)
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if (count := int(seconds // size)) >= 1:
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "less than a minute ago"


def _badge(status: str) -> str:
    return f":{COLOURS.get(status, 'gray')}-badge[{status.replace('_', ' ')}]"


# --- one run --------------------------------------------------------------------------------------------------------


def _draw_one(run: Run) -> None:
    link("runs", "All runs", icon=":material/arrow_back:")
    at_work = runner().worker(run.id) is not None
    st.fragment(_draw_now, run_every=_POLL_S if at_work else None)(run, at_work)
    draw_controls(run)
    large = store().count_candidates(run.id) > LARGE
    poll_s = _LARGE_POLL_S if large else _POLL_S
    st.fragment(_draw_course, run_every=poll_s if at_work else None)(run)
    st.fragment(draw_candidates, run_every=max(poll_s, _TABLE_POLL_S) if at_work else None)(run)


def _draw_now(run: Run, at_work: bool) -> None:
    """Where the run stands; when it comes to rest, or is taken up, the whole page is drawn again."""
    with telling_errors():
        seen = glance(store().run(run.id), store(), settings(), runner())
        draw_run(seen, follow=False)
        _draw_ending(seen)
        if (seen.worker is not None) != at_work:
            st.rerun()


def _draw_ending(seen: Glance) -> None:
    if seen.worker is not None:
        return
    if seen.status in (RunStatus.NOT_IMPROVED.value, RunStatus.FAILED.value):
        why = find_summary(seen.run, store(), settings()).why_not
        if why:
            st.info(plain(f"No winner: {why}."), icon=":material/info:")
    if seen.status in LEFT or seen.status == RunStatus.FAILED.value:
        said = runner().last_words(seen.run.id)
        if said:
            st.caption("The last process that worked on it said:")
            st.code(said, language=None, wrap_lines=True)


def _draw_course(run: Run) -> None:
    """Gauges and plots."""
    with telling_errors():
        judged_under = policy_hash(run)
        lines = store().by_generation(run.id, policy_hash=judged_under)
        judged, worker = sum(line.judged for line in lines), runner().worker(run.id)
        _draw_gauges(gauges(store().run(run.id), store(), settings(), worker, judged=judged))
        if not lines:
            nothing_yet("No candidate has been written yet.", "Plots appear with the first generation.")
            return
        kept, drawn = settings_from_run(run.settings), thinned(lines)
        best = store().best_candidate(run.id, policy_hash=judged_under)
        timing = best.evaluation.timing if best is not None and best.evaluation is not None else None
        fitness = Fitness(kept.correctness_weight, kept.performance_weight)
        points = curve(drawn, fitness, timing.floor_us if timing else 0.0)
        left, right = st.columns(2, gap="medium")
        with left:
            if timing is None:
                st.markdown("**Speedup and time**")
                st.caption("Nothing has passed yet, so there is no time to show.")
            else:
                st.markdown(f"**Best by generation** ({timing.source})")
                unit = st.segmented_control(
                    "Shown as",
                    ("speedup", "time"),
                    default="speedup",
                    label_visibility="collapsed",
                    key="unit",
                )
                draw_course(points, levels(timing), timing.eager_us, speedup=unit != "time")
        with right:
            st.markdown("**Population by status**")
            draw_population(drawn)
        left, right = st.columns(2, gap="medium")
        with left:
            st.markdown("**Fitness by generation**")
            draw_fitness(points)
        with right:
            st.markdown("**Islands**")
            draw_islands(store().by_island(run.id, policy_hash=judged_under))


def _draw_gauges(found: tuple[Gauge, ...]) -> None:
    for row in (found[:3], found[3:]):
        for column, gauge in zip(st.columns(3, gap="medium"), row, strict=False):
            with column:
                st.markdown(f"**{gauge.name}** {plain(gauge.text)}")
                if gauge.share is not None:
                    st.progress(gauge.share)
                if gauge.note:
                    st.caption(plain(gauge.note))
