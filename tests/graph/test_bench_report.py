"""The statistics of a benchmark and its report: bounds, honesty about losses, and text that cannot break out."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.bench_records import BenchEntry, BenchResults, BenchStatus, TimeUs
from graph.bench_report import THRESHOLDS, render_markdown, render_plot, render_summary
from graph.bench_statistics import (
    averages,
    count,
    delivered_speedup,
    fast_p,
    geometric_mean,
    losses,
    own_speedup,
)

positive = st.floats(min_value=1e-3, max_value=1e6)
speedups = st.lists(st.none() | positive, max_size=50)
names = st.text(min_size=1, max_size=30)


def around(median: float) -> TimeUs:
    return TimeUs(median_us=median, low_us=median * 0.9, high_us=median * 1.1)


def made(
    status: BenchStatus, eager: float | None = None, ours: float | None = None, **more: object
) -> BenchEntry:
    times = {"eager": around(eager), "ours": around(ours), "speedup": eager / ours} if eager and ours else {}
    place = {"time_source": "modelled", "device": "simulator:h200", "machine": "a machine"}
    return BenchEntry.model_validate({"name": "p", "key": "k", "status": status, **place, **times, **more})


@st.composite
def entries(draw: st.DrawFn) -> BenchEntry:
    """Any entry, with or without times."""
    status = draw(st.sampled_from(BenchStatus))
    timed = status in (BenchStatus.IMPROVED, BenchStatus.NOT_IMPROVED) and draw(st.booleans())
    source = draw(st.sampled_from(("measured", "modelled")))
    more: dict[str, object] = {"name": draw(names), "time_source": source}
    if status is BenchStatus.FAILED:
        more["message"] = draw(names)
    if timed and draw(st.booleans()):
        more["compile_best"] = around(draw(positive))
    return made(status, draw(positive) if timed else None, draw(positive) if timed else None, **more)


@given(speedups, positive, positive)
def test_the_share_above_p_falls_as_p_grows(values: list[float | None], one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 1 >= fast_p(values, low) >= fast_p(values, high) >= 0


@given(speedups)
def test_the_share_above_p_counts_every_problem(values: list[float | None]) -> None:
    known = [v for v in values if v is not None]
    assert fast_p(values, 0.0) * len(values) == pytest.approx(len(known))
    assert fast_p(values, max(known, default=1.0)) == 0


@given(st.lists(positive, min_size=1, max_size=50))
def test_the_geometric_mean_lies_between_the_least_and_the_largest(values: list[float]) -> None:
    mean = geometric_mean(values)
    assert min(values) <= mean <= max(values)
    assert mean <= math.fsum(values) / len(values) * (1 + 1e-9)
    assert geometric_mean([1 / v for v in values]) == pytest.approx(1 / mean)


@given(speedups)
def test_averages_are_over_the_speedups_that_exist(values: list[float | None]) -> None:
    known = [v for v in values if v is not None]
    found = averages(values)
    assert (found is None) == (not known)
    if found is not None:
        assert found.problems == len(known)
        assert min(known) <= found.median <= max(known)


@given(st.lists(entries(), max_size=20))
def test_only_an_improved_problem_is_a_gain(found: list[BenchEntry]) -> None:
    for entry in found:
        own, delivered = own_speedup(entry), delivered_speedup(entry)
        if entry.status is not BenchStatus.IMPROVED:
            assert own is None or own <= 1
            assert delivered in (None, 1.0)
        assert (delivered is None) == (entry.status in (BenchStatus.FAILED, BenchStatus.RUNNING))
    assert count(found).total == len(found)


def test_a_faster_median_that_was_not_called_improved_is_a_draw() -> None:
    entry = made(BenchStatus.NOT_IMPROVED, 100, 50)
    assert (own_speedup(entry), delivered_speedup(entry)) == (1.0, 1.0)
    assert losses([entry]) == []


def test_losses_are_listed_worst_first_against_each_baseline() -> None:
    small = made(BenchStatus.NOT_IMPROVED, 90, 100, name="small")
    large = made(BenchStatus.NOT_IMPROVED, 20, 100, name="large")
    won = made(BenchStatus.IMPROVED, 300, 100, name="won", compile_best=around(70))
    assert [(e.name, v) for e, v in losses([small, large, won])] == [("large", 0.2), ("small", 0.9)]
    assert [(e.name, v) for e, v in losses([small, large, won], "compile_best")] == [("won", 0.7)]
    text = render_markdown(BenchResults(entries=(small, large, won)))
    assert text.index("- large: 0.200×") < text.index("- small: 0.900×")
    assert "### Slower than eager PyTorch: 2" in text
    assert "### Slower than torch.compile (best mode): 1\n\n- won: 0.700×" in text


def test_the_report_has_counts_means_curves_and_the_machine() -> None:
    won, lost = made(BenchStatus.IMPROVED, 400, 100, floor_us=50.0), made(BenchStatus.NOT_IMPROVED, 25, 100)
    failed = made(BenchStatus.FAILED, message="no fixed graph", fault="input")
    text = render_markdown(BenchResults(entries=(won, lost, failed), settings={"seed": "0"}), plot="r.svg")
    assert "1 improved, 1 not improved (PyTorch is kept), 1 failed, of 3." in text
    assert "Machine: simulator:h200 on a machine." in text
    assert "| over eager, PyTorch kept where nothing is better | 2 | 2.00× | 2.50× |" in text
    assert "| our best program over eager PyTorch, losses included | 2 | 1.00× | 2.12× |" in text
    assert "| 1 | 33% |" in text
    assert "- p: no fixed graph" in text
    assert "![share of problems above each speedup](r.svg)" in text


def test_the_summary_says_what_kind_of_times_it_counts() -> None:
    won, lost = made(BenchStatus.IMPROVED, 400, 100), made(BenchStatus.NOT_IMPROVED, 25, 100)
    lines = render_summary(BenchResults(entries=(won, lost))).splitlines()
    assert lines[0] == "2 problems (modelled): 1 improved, 1 not improved, 0 failed"
    assert "geometric mean 2.00×" in lines[1]
    assert lines[1].endswith("slower on 1")
    assert render_summary(BenchResults()) == "no problems"


def test_measured_and_modelled_times_never_share_a_mean() -> None:
    modelled = made(BenchStatus.IMPROVED, 1000, 10)
    measured = made(BenchStatus.IMPROVED, 20, 10, time_source="measured", device="cuda:h200")
    text = render_markdown(BenchResults(entries=(modelled, measured)))
    parts = text.split("## Modelled")
    assert "| 1 | 2.00× | 2.00× |" in parts[0]
    assert "| 1 | 100.00× | 100.00× |" in parts[1]
    assert "not measured" in parts[1]
    plot = render_plot(BenchResults(entries=(modelled, measured)))
    assert "over eager PyTorch (measured)" in plot
    assert "over eager PyTorch (modelled)" in plot
    assert "measured and modelled times" in plot


@given(st.lists(entries(), max_size=12))
def test_any_results_give_a_report_and_a_well_formed_plot(found: list[BenchEntry]) -> None:
    results = BenchResults(entries=tuple(found))
    ElementTree.fromstring(render_plot(results))
    assert render_summary(results)
    text = render_markdown(results)
    rows = [line for line in text.split("\n") if line.startswith("| ")]
    for entry in found:
        assert any(entry.status.value.replace("_", " ") in row for row in rows)


def test_a_hostile_name_or_message_stays_in_its_cell() -> None:
    evil = made(BenchStatus.FAILED, name="a|b", message="x\n# heading | <script>")
    text = render_markdown(BenchResults(entries=(evil,)))
    assert "| a\\|b | failed |" in text
    assert "- a\\|b: x # heading \\| &lt;script&gt;" in text


def test_an_empty_benchmark_still_renders() -> None:
    assert "0 problems" in render_markdown(BenchResults())
    ElementTree.fromstring(render_plot(BenchResults()))


@given(st.lists(positive, min_size=1, max_size=30))
def test_the_curve_of_the_plot_never_rises(values: list[float]) -> None:
    results = BenchResults(entries=tuple(made(BenchStatus.IMPROVED, value, 1.0) for value in values))
    root = ElementTree.fromstring(render_plot(results))
    (curve,) = [p for p in root.iter("{http://www.w3.org/2000/svg}path") if p.get("stroke-width") == "2"]
    heights = [float(part.split("H")[0]) for part in (curve.get("d") or "").split("V")[1:]]
    # SVG counts downwards.
    assert heights == sorted(heights)
    assert list(THRESHOLDS) == sorted(THRESHOLDS)
