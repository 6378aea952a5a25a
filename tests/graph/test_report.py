"""A run's report: true to the run with and without a winner, whole in both forms, and deaf to what texts try."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graph.cli import app
from graph.report import report_html, report_markdown
from graph.report_blocks import (
    Block,
    Grid,
    Heading,
    Items,
    Listing,
    Paragraph,
    Plot,
    safe_markdown,
    to_html,
    to_markdown,
)
from graph.report_facts import ReportFacts, gather
from graph.report_plots import search_plot, times_plot
from graph.session import find_summary
from memory.errors import BadInput
from tests.graph.test_search import Search, captured, search
from tools.problem import Captured

__all__ = ["captured"]

EVIL = (
    "</td><script>alert(1)</script> ![x](http://evil.example/x.png) | `a` $b$ <img src=http://evil.example>"
)


@pytest.fixture(scope="module")
def won(tmp_path_factory: pytest.TempPathFactory, captured: Captured) -> Iterator[Search]:
    """A run that improved, on made-up verdicts."""
    with search(tmp_path_factory.mktemp("won"), captured, generations=3) as s:
        s.go()
        s.run = s.store.run(s.run.id)
        yield s


@pytest.fixture
def facts(won: Search) -> ReportFacts:
    return gather(won.run, won.store, won.settings)


class Tags(HTMLParser):
    """Which tags and addresses a page has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [str(value) for name, value in attrs if name in ("src", "href", "srcset")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_winner_is_reported_with_its_evidence_its_limits_and_its_use(facts: ReportFacts) -> None:
    text, timing = report_markdown(facts), facts.timing
    assert timing is not None and facts.won
    assert f"{timing.speedup:.2f}× as fast as eager PyTorch (modelled) on {timing.device}" in text
    assert "not measured on a GPU" in text and "Not timed as baselines: torch.compile (default)" in text
    for title in (
        "What was verified",
        "What was not verified",
        "How it was found",
        "How to use it",
        "Settings of",
    ):
        assert f"## {title}" in text, title
    assert "further random trials" in text and "its time on a real GPU" in text
    assert re.search(r"\| eager PyTorch \| [\d.]+ µs \| [\d.]+ µs to [\d.]+ µs \| [\d.]+× \| win \|", text)
    assert "from fast import ModelNew" in text
    assert [g.generation for g in facts.generations] == [0, 1, 2]
    assert sum(g.judged for g in facts.generations) == facts.evaluations == len(facts.generations) * 8
    best = min(g.best_us for g in facts.generations if g.best_us is not None)
    assert best <= timing.median_us and facts.steps[-1].candidate == facts.run.best_candidate


def test_a_loss_is_called_one(facts: ReportFacts) -> None:
    row, timing = facts.row, facts.timing
    assert row is not None and row.evaluation is not None and timing is not None
    faster = timing.baselines[0].model_copy(
        update={"name": "compile", "median_us": 0.1, "low_us": 0.1, "high_us": 0.1}
    )
    both = timing.model_copy(update={"baselines": (*timing.baselines, faster)})
    lost = replace(facts, row=replace(row, evaluation=row.evaluation.model_copy(update={"timing": both})))
    assert re.search(r"torch.compile \(default\) .* \| loss \|", report_markdown(lost))


def test_the_html_is_one_file_with_plots_that_asks_nothing_of_anybody(facts: ReportFacts) -> None:
    page = report_html(facts)
    found = Tags(page)
    assert found.open == [] and not found.addresses
    assert {"svg", "table", "rect", "circle", "style"} <= found.tags and "script" not in found.tags
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert "default-src 'none'" in page


def test_texts_of_models_and_people_stay_texts(facts: ReportFacts) -> None:
    steps = tuple(replace(step, idea=EVIL) for step in facts.steps)
    evil = replace(facts, steps=steps, examined=(EVIL,), signature=EVIL)
    found = Tags(report_html(evil))
    assert found.open == [] and not found.tags & {"script", "img", "a"} and not found.addresses
    text = report_markdown(evil)
    assert "<script" not in text and "![x](" not in text and "<img" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ") and "alert" in line]
    assert rows and all(len(re.findall(r"(?<!\\)\|", row)) in (3, 6) for row in rows)


def test_markdown_keeps_what_means_nothing_and_escapes_what_does() -> None:
    assert safe_markdown("9.00 µs, 1.89×") == "9.00 µs, 1.89×"
    assert safe_markdown("native_layer_norm") == "native_layer_norm"
    assert safe_markdown("_a_ *b*\n# c") == r"\_a\_ \*b\* # c"
    assert safe_markdown("# a") == r"\# a" and safe_markdown("1. a") == "1&#8203;. a".replace(
        "1&#8203;", "&#8203;1"
    )
    assert "://" not in safe_markdown("see https://evil.example") and "&lt;" in safe_markdown("<b>")
    fence = to_markdown([Listing("```\nx\n````", "python")])
    assert fence.startswith("`````python\n") and fence.endswith("\n`````\n")


def test_every_block_has_both_forms_but_plots() -> None:
    blocks: list[Block] = [
        Heading(2, "a & b"), Paragraph("p"), Items(("i", "j")), Grid(("x", "y "), (("1", "2"),)), Plot("<svg></svg>"),
    ]  # fmt: skip
    assert to_markdown(blocks) == "## a &amp; b\n\np\n\n- i\n- j\n\n| x | y |\n| --- | ---: |\n| 1 | 2 |\n"
    page = to_html(blocks, "<t>")
    assert (
        "<h2>a &amp; b</h2>" in page and "<title>&lt;t&gt;</title>" in page and '<td class="n">2</td>' in page
    )


def test_plots_survive_extremes_and_escape_names() -> None:
    bars = [("<ours>", 1e-3, 1e-3, 1e-3, True), ("eager", 5e6, 4e6, 6e6, False)]
    plot = times_plot(bars, 0.0, "measured")
    assert "&lt;ours&gt;" in plot and Tags(plot).open == []
    many = search_plot([(g, None if g % 2 else 1.0 + g) for g in range(500)], 100.0, 0.0, "modelled")
    assert (
        many.count("<circle") == 250 and many.count('text-anchor="middle">') <= 14 and Tags(many).open == []
    )
    assert Tags(search_plot([(0, None)], 1.0, 0.5, "modelled")).open == []


def test_a_run_without_a_winner_says_why_and_what_to_do(tmp_path: Path, captured: Captured) -> None:
    with search(tmp_path, captured, generations=1) as s:
        begun = report_markdown(gather(s.run, s.store, s.settings))
        assert "No verified winner (interrupted)" in begun and "warpsmith resume" in begun
        s.go(lambda _: True)
        run = s.store.run(s.run.id)
        text = report_markdown(gather(run, s.store, s.settings))
        why = find_summary(run, s.store, s.settings).why_not
        assert why is not None and safe_markdown(why) in text
        assert (
            "The result is PyTorch itself" in text and "## What to do" in text and "How to use it" not in text
        )


def test_the_command_writes_either_form_and_prints_markdown(won: Search, tmp_path: Path) -> None:
    home = ["--home", str(won.settings.root)]
    for name, head in (("r.md", "# Warpsmith report"), ("r.html", "<!DOCTYPE html>")):
        done = CliRunner().invoke(app, ["report", won.run.id, "--out", str(tmp_path / name), *home])
        assert done.exit_code == 0 and (tmp_path / name).read_text().startswith(head)
    printed = CliRunner().invoke(app, ["report", won.run.id[:12], *home])
    assert printed.stdout == (tmp_path / "r.md").read_text()
    refused = CliRunner().invoke(app, ["report", won.run.id, "--out", str(tmp_path / "r.pdf"), *home])
    assert isinstance(refused.exception, BadInput) and ".md or .html" in str(refused.exception)
    helped = CliRunner().invoke(app, ["report", "--help"])
    assert "--out report.html" in helped.stdout
