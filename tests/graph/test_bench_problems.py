"""Which files a benchmark takes, and results files that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.bench_problems import find_problems
from graph.bench_records import BenchEntry, BenchStatus, ResultsFile, read_results
from memory.errors import BadInput

SUITE = Path(__file__).resolve().parents[2] / "benchmarks" / "suite"


def names(folder: Path, *only: str, limit: int | None = None) -> list[str]:
    return [problem.name for problem in find_problems(folder, only=only, limit=limit)]


def test_problems_come_in_natural_order(tmp_path: Path) -> None:
    for name in ("10_b", "9_a", "2_c"):
        (tmp_path / f"{name}.py").write_text("class Model: ...\n")
    assert names(tmp_path) == ["2_c", "9_a", "10_b"]


def test_a_file_with_a_syntax_error_is_a_problem_and_one_without_a_model_is_none(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("class Model(:\n")
    (tmp_path / "other.py").write_text("class Other: ...\n")
    (tmp_path / "_hidden.py").write_text("class Model: ...\n")
    assert names(tmp_path) == ["broken"]


def test_the_suite_is_chosen_by_pattern_part_or_number() -> None:
    assert len(names(SUITE)) == 210
    assert names(SUITE, "019_relu") == ["level1/019_relu"]
    assert len(names(SUITE, "level2/*")) == 100
    assert names(SUITE, "level3/*", "softmax", limit=2) == ["level1/023_softmax", "level1/024_log_softmax"]


@pytest.mark.parametrize(
    ("only", "limit", "words"),
    [(("nothing",), None, ["nothing", "there are"]), ((), 0, ["limit of 0"])],
)
def test_a_selection_that_leaves_nothing_says_so(
    only: tuple[str, ...], limit: int | None, words: list[str]
) -> None:
    with pytest.raises(BadInput) as raised:
        find_problems(SUITE, only=only, limit=limit)
    for word in words:
        assert word in str(raised.value)


def test_a_folder_without_problems_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="class Model"):
        find_problems(tmp_path)
    with pytest.raises(BadInput, match="not a folder"):
        find_problems(tmp_path / "missing")


@pytest.mark.parametrize("text", ["{", '{"entries": 3}', "[]", '{"bench_schema": 2}'])
def test_a_file_that_is_no_results_file_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(BadInput, match="not a results file"):
        ResultsFile(path, versions={}, settings={})
    assert path.read_text() == text


def test_a_machines_failure_is_tried_again_and_the_inputs_is_not(tmp_path: Path) -> None:
    file = ResultsFile(tmp_path / "deep" / "results.json", versions={}, settings={})
    entry = BenchEntry(
        name="a", key="k", status=BenchStatus.FAILED, time_source="modelled", device="d", machine="m", fault="machine"
    )  # fmt: skip
    file.put(entry)
    assert read_results(tmp_path / "deep" / "results.json").entries == (entry,)
    assert file.find("a", "k") == entry
    assert file.find("a", "another key") is None
    assert not entry.finished
    assert entry.model_copy(update={"fault": "input"}).finished


def test_results_that_cannot_be_written_are_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    file = ResultsFile(tmp_path / "file" / "results.json", versions={}, settings={})
    with pytest.raises(BadInput, match="cannot write"):
        file.put(
            BenchEntry(
                name="a", key="k", status=BenchStatus.RUNNING, time_source="modelled", device="d", machine="m"
            )
        )
