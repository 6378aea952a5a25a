"""The command line: exit codes, messages and what is left behind when the input is bad."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graph.bench_records import read_results
from tests.graph.test_run import warpsmith
from tests.problems import module_text, scaled_relu_program

LIBRARY_BOUND = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.rand(64, 64), torch.rand(64, 64)]


def get_init_inputs():
    return []
"""

QUANTIZED = module_text().replace(
    "torch.rand(33, 40)", "torch.quantize_per_tensor(torch.rand(33, 40), 0.1, 0, torch.quint8)"
)
SPARSE_WEIGHT = module_text().replace("torch.rand(columns)", "torch.rand(columns).to_sparse()")


def test_help_lists_every_command_with_examples(tmp_path: Path) -> None:
    shown = warpsmith(tmp_path, "--help").stdout
    for name in (
        "optimize",
        "resume",
        "chat",
        "hint",
        "show",
        "verify",
        "export",
        "report",
        "bench",
        "archive",
        "doctor",
    ):
        assert name in shown
    assert "examples/layernorm_gelu.py" in warpsmith(tmp_path, "optimize", "--help").stdout
    benched = warpsmith(tmp_path, "bench", "--help").stdout
    assert "Exit code 1 where a problem failed" in benched and "--baselines" in benched
    described = warpsmith(tmp_path, "show", "--help").stdout
    for key in ("candidates", "decisions", "why_not", "interrupted"):
        assert key in described


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        (None, ["missing.py"], ["missing.py"]),
        ("class Model(:\n", ["bad.py"], ["bad.py:1", "syntax error"]),
        ("x = 1\n", ["bad.py"], ["bad.py", "Model"]),
        (module_text(), ["bad.py", "--gpu", "voodoo2"], ["voodoo2", "h200"]),
        (module_text(), ["bad.py", "--population", "0"], ["population"]),
        (module_text(), ["bad.py", "--workers", "0"], ["--workers", "greater than or equal to 1"]),
        (module_text(), ["bad.py", "--budget-s", "0"], ["--budget-s", "0 is not above 0"]),
        (module_text(), ["bad.py", "--out", "bad.py"], ["cannot write to 'bad.py'", "not a folder", "--out"]),
        (module_text(), ["bad.py", "--out", "/proc/none/x"], ["nothing can be written to '/proc'", "--out"]),
        (QUANTIZED, ["bad.py"], ["bad.py: input 0 of get_inputs() is quantized (quint8)", ".dequantize()"]),
        (SPARSE_WEIGHT, ["bad.py"], ["bad.py: weight is sparse"]),
        (
            module_text().replace("return torch.relu", "raise ValueError('no'); return torch.relu"),
            ["bad.py"],
            ["bad.py:", "no"],
        ),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(
    tmp_path: Path, text: str | None, arguments: list[str], words: list[str]
) -> None:
    if text is not None:
        (tmp_path / "bad.py").write_text(text)
    done = warpsmith(tmp_path, "optimize", *arguments, "--json")
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr
    assert json.loads(warpsmith(tmp_path, "show", "--json").stdout) == []


@pytest.mark.parametrize(("place", "home"), [("option", "taken"), ("environment", "/proc/none")])
def test_a_home_that_cannot_be_used_is_one_message_and_exit_code_2(
    tmp_path: Path, place: str, home: str
) -> None:
    (tmp_path / "taken").write_text("")
    (tmp_path / "good.py").write_text(module_text())
    given = ["--home", home] if place == "option" else []
    for command in (["show"], ["optimize", "good.py"], ["archive", "stats"]):
        done = warpsmith(tmp_path, *command, *given, home="unused" if given else home)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert f"{home!r} cannot be used" in done.stderr and "WARPSMITH_HOME" in done.stderr
    assert not (tmp_path / "unused").exists()


def test_an_unknown_run_is_told_where_runs_are_listed(tmp_path: Path) -> None:
    done = warpsmith(tmp_path, "resume", "nobody")
    assert done.returncode == 2
    assert "'nobody'" in done.stderr and "`warpsmith show`" in done.stderr


def test_a_benchmark_that_the_machine_failed_exits_with_code_1(tmp_path: Path) -> None:
    (tmp_path / "problems").mkdir()
    (tmp_path / "problems" / "broken.py").write_text(module_text().replace("torch.rand(33, 40)", "1 / 0"))
    command = ("bench", "problems", "--json", "--quiet")
    assert warpsmith(tmp_path, *command).returncode == 0
    path = tmp_path / "results.json"
    results = read_results(path)
    changes = {"name": "elsewhere", "fault": "machine", "message": "the worker died"}
    lost = results.entries[0].model_copy(update=changes)
    path.write_text(results.model_copy(update={"entries": (*results.entries, lost)}).model_dump_json())
    done = warpsmith(tmp_path, *command)
    assert done.returncode == 1, done.stderr
    assert "elsewhere" in done.stderr and "broken" not in done.stderr
    assert len(json.loads(done.stdout)["entries"]) == 2


def test_a_module_that_the_library_serves_best_ends_with_exit_code_3(tmp_path: Path) -> None:
    (tmp_path / "product.py").write_text(LIBRARY_BOUND)
    done = warpsmith(
        tmp_path, "optimize", "product.py", "--json", "--quiet", "--generations", "2", "--population", "2"
    )
    assert done.returncode == 3, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["status"], summary["speedup"], summary["export_path"]) == ("not_improved", 1.0, None)
    assert summary["by_status"] == {"passed": summary["evaluations"]}
    assert summary["why_not"].startswith("best candidate ")
    shown = warpsmith(tmp_path, "show", summary["run"]).stdout
    assert f"why: {summary['why_not']}" in " ".join(shown.split())


def test_a_module_whose_output_depends_on_nothing_cannot_be_judged(tmp_path: Path) -> None:
    (tmp_path / "constant.py").write_text(
        LIBRARY_BOUND.replace("a @ b", "torch.softmax((a @ b)[:, :1], dim=1)")
    )
    done = warpsmith(tmp_path, "optimize", "constant.py", "--json", "--quiet")
    assert done.returncode == 2
    assert "cannot be judged" in done.stderr
    [run] = json.loads(warpsmith(tmp_path, "show", "--json").stdout)
    assert run["status"] == "failed"
    assert "cannot be judged" in run["why_not"]


def test_a_program_file_that_is_no_program_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "scaled.py").write_text(module_text())
    for text, word in (("{", "Invalid JSON"), ('{"source": "x"}', "steps")):
        (tmp_path / "p.json").write_text(text)
        done = warpsmith(tmp_path, "verify", "p.json", "--problem", "scaled.py")
        assert done.returncode == 2
        assert word in done.stderr


def test_a_program_that_does_not_fit_the_problem_is_refused_with_reasons(tmp_path: Path) -> None:
    (tmp_path / "scaled.py").write_text(module_text())
    wrong = scaled_relu_program(outputs=("y", "y"))
    (tmp_path / "p.json").write_text(wrong.model_dump_json())
    done = warpsmith(tmp_path, "verify", "p.json", "--problem", "scaled.py", "--json")
    assert done.returncode == 3
    verdict = json.loads(done.stdout)
    assert verdict["status"] == "schema_error"
    assert "returns 2 outputs" in verdict["diagnostics"][0]["message"]


def test_an_empty_archive_says_how_it_fills(tmp_path: Path) -> None:
    assert "fills as runs end" in warpsmith(tmp_path, "archive", "search", "softmax").stdout


def test_the_doctor_finds_what_this_machine_needs(tmp_path: Path) -> None:
    done = warpsmith(tmp_path, "doctor", "--json")
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    assert done.returncode == 0, done.stdout
    assert checks["g++"]["found"]
    assert checks["NVRTC"]["found"]
    assert not checks["GPU"]["needed"]
