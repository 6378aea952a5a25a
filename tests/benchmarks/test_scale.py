"""The scale benchmark at its smallest: a whole search on made-up verdicts, counted."""

from __future__ import annotations

from pathlib import Path

from benchmarks.scale.measure import POPULATION, measure


def test_a_generation_judges_every_program_once_and_leaves_small_files(tmp_path: Path) -> None:
    cost = measure(POPULATION, tmp_path)
    assert cost.generations == 1
    assert cost.candidates == cost.programs_judged == POPULATION and cost.judged_twice == 0
    assert cost.seconds > 0 and cost.peak_mib > 0
    assert 0 < cost.store_mib < 10 and 0 < cost.checkpoints_mib < 5
