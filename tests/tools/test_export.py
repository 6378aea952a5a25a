"""An exported file on a machine without a GPU: what it says, that it imports and falls back, and what it carries."""

from __future__ import annotations

import ast
import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.errors import BadInput
from memory.records import Problem, Target
from tests.tools.export_cases import (
    HALF,
    MIXED,
    captured,
    exported,
    half_program,
    imported,
    library_program,
    mixed,
    mixed_program,
    report_for,
)
from tools.export import export_module, write_export
from tools.export_text import RUNTIME_PARTS, UserSource, docstring, literal, qualified

__all__ = ["mixed"]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def same_module(module: object, *args: object) -> tuple[torch.nn.Module, torch.nn.Module]:
    """The original and the optimized module, built from the same seed."""
    built = []
    for name in ("Model", "ModelNew"):
        torch.manual_seed(5)
        built.append(getattr(module, name)(*args))
    return built[0], built[1]


def run_alone(code: str, folder: Path) -> str:
    """Run code in a fresh interpreter in which this project cannot be imported."""
    found = subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", "import torch; torch.set_num_threads(1)\n" + code],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(folder)},
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


# --- the file alone -------------------------------------------------------------------------------------------


def test_the_file_imports_where_only_torch_is_installed_and_falls_back(
    mixed: Problem, tmp_path: Path
) -> None:
    (tmp_path / "winner.py").write_text(export_module(mixed, mixed_program(), report_for(mixed)))
    said = run_alone(
        "import sys\n"
        "for name in ('cuda', 'pydantic', 'memory', 'tools'): sys.modules[name] = None\n"
        "import winner\n"
        "model = winner.ModelNew(*winner.get_init_inputs())\n"
        "with torch.no_grad(): y, sums = model(*winner.get_inputs())\n"
        "print(tuple(y.shape), tuple(sums.shape), int(model.count), model.warpsmith_fallback_reason)",
        tmp_path,
    )
    assert said.strip() == "(6, 32) (32,) 1 the tensors are on cpu, which is no CUDA device"


def test_the_text_is_the_same_for_the_same_arguments(mixed: Problem) -> None:
    report = report_for(mixed)
    assert export_module(mixed, mixed_program(), report) == export_module(mixed, mixed_program(), report)


def test_the_same_seed_gives_the_same_weights_and_results(mixed: Problem, tmp_path: Path) -> None:
    old, new = same_module(exported(mixed, mixed_program(), tmp_path), 32)
    assert list(old.state_dict()) == list(new.state_dict())
    assert all(
        torch.equal(a, b) for a, b in zip(old.state_dict().values(), new.state_dict().values(), strict=True)
    )
    assert [n for n, _ in old.named_modules()] == [n for n, _ in new.named_modules()]
    x = torch.randn(6, 32)
    with torch.no_grad():
        assert all(torch.equal(a, b) for a, b in zip(old(x), new(x), strict=True))


def test_building_the_module_draws_the_same_random_numbers(tmp_path: Path) -> None:
    source = MIXED.replace("    return [32]", "    torch.rand(3)\n    return [32]")
    module = exported(captured(source, tmp_path), mixed_program(), tmp_path)
    same_module(module, 32)
    drawn_new = torch.rand(4)
    torch.manual_seed(5)
    module.Model(32)
    assert torch.equal(drawn_new, torch.rand(4))


def test_state_dicts_pass_both_ways(mixed: Problem, tmp_path: Path) -> None:
    module = exported(mixed, mixed_program(), tmp_path)
    old, new = module.Model(32), module.ModelNew(32)
    new.load_state_dict(old.state_dict())
    x = torch.randn(6, 32)
    with torch.no_grad():
        assert torch.equal(old(x)[0], new(x)[0])
    old.load_state_dict(new.state_dict())


def test_gradients_flow_through_the_fallback(mixed: Problem, tmp_path: Path) -> None:
    model = exported(mixed, mixed_program(), tmp_path).ModelNew(32)
    model(torch.randn(6, 32))[1].sum().backward()
    assert model.linear.weight.grad is not None


def test_copies_and_pickles_work(mixed: Problem, tmp_path: Path) -> None:
    model = exported(mixed, mixed_program(), tmp_path).ModelNew(32)
    x = torch.randn(6, 32)
    with torch.no_grad():
        wanted = model(x)[0]
        for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert torch.equal(twin(x)[0], wanted)
            assert twin._warpsmith_session.module is twin


def test_the_constructor_and_forward_keep_their_signatures(mixed: Problem, tmp_path: Path) -> None:
    import inspect

    module = exported(mixed, mixed_program(), tmp_path)
    assert inspect.signature(module.ModelNew) == inspect.signature(module.Model)
    assert inspect.signature(module.ModelNew.forward) == inspect.signature(module.Model.forward)


def test_an_evaluator_that_executes_the_text_finds_the_class(mixed: Problem) -> None:
    context: dict[str, object] = {}
    exec(compile(export_module(mixed, mixed_program(), report_for(mixed)), "text", "exec"), context)
    model_class, get_inputs = context["ModelNew"], context["get_inputs"]
    assert callable(model_class) and callable(get_inputs)
    with torch.no_grad():
        y, _ = model_class(32)(*get_inputs())
    assert y.shape == (6, 32)


def test_torch_export_sees_the_original_operations(mixed: Problem, tmp_path: Path) -> None:
    model = exported(mixed, mixed_program(), tmp_path).ModelNew(32).eval()
    program = torch.export.export(model, (torch.randn(6, 32),), strict=False)
    assert any("linear" in str(node.target) for node in program.graph.nodes)


def test_its_kernels_compile_with_the_headers_it_finds(tmp_path: Path) -> None:
    problem = captured(HALF, tmp_path, "Scaled")
    module = exported(problem, half_program(), tmp_path)
    assert bytes(module._warpsmith_compile(module._warpsmith_plan()).code).startswith(b"\x7fELF")


# --- the user's file ------------------------------------------------------------------------------------------

ODD = '''#!/usr/bin/env python
# -*- coding: latin-1 -*-
"""Docs with "quotes" and a form feed.\x0c"""
from __future__ import (
    annotations,
    generator_stop,
); import os
import torch
from math import *

type = 3
len = "hidden"
range = zip = isinstance = None


class Übermodel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(4.0))
        self.first = self(torch.zeros(4))

    def forward(self, x: Undefined):
        return x * self.weight


def get_inputs():
    return [torch.ones(4)]


if __name__ == "__main__":
    raise SystemExit("never reached")
'''


def test_odd_files_keep_their_meaning(tmp_path: Path) -> None:
    problem = captured(ODD.replace("Ü", "U"), tmp_path, "Ubermodel")
    module = exported(problem, library_program(problem), tmp_path)
    with torch.no_grad():
        assert module.ModelNew()(torch.ones(4)).tolist() == [0, 1, 2, 3]
    assert module.len == "hidden"
    assert module.ModelNew.__mro__[1].__name__ == "Ubermodel"


def test_every_line_of_the_users_code_stays_on_its_line() -> None:
    source = UserSource(Target(path="/m.py", source=ODD, class_name="Model"))
    assert source.futures == ("annotations", "generator_stop")
    before, after = ODD.strip().split("\n"), source.body.strip().split("\n")
    assert len(before) == len(after)
    changed = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    assert changed == [3, 4, 5, 6]
    assert after[3] == "pass; import os"


def test_a_file_that_defines_model_new_is_refused_with_a_remedy(mixed: Problem) -> None:
    target = Target(path="/m.py", source="class ModelNew: pass\n" + MIXED, class_name="Model")
    problem = mixed.model_copy(update={"target": target})
    with pytest.raises(BadInput, match=r"ModelNew.*rename"):
        export_module(problem, mixed_program(), report_for(problem))


def test_a_reduced_twin_is_refused(mixed: Problem) -> None:
    twin = mixed.model_copy(update={"reduced_from": {"x": (600, 32)}})
    with pytest.raises(BadInput, match="reduced twin"):
        export_module(twin, mixed_program(), report_for(twin))


def test_a_tensor_made_from_numbers_in_forward_is_refused_unless_its_content_is_given(tmp_path: Path) -> None:
    source = MIXED.replace("y = torch.relu", "x = x + torch.tensor([0.5] * 32)\n        y = torch.relu")
    problem = captured(source, tmp_path)
    program = library_program(problem)
    with pytest.raises(BadInput, match="register it as a buffer"):
        export_module(problem, program, report_for(problem))
    name = next(entry.value for entry in problem.graph.state if entry.kind == "constant")
    text = export_module(
        problem, program, report_for(problem), constants={name: torch.full((32,), 0.5).numpy().tobytes()}
    )
    assert imported(text, tmp_path).ModelNew(32) is not None


# --- text that tries to break out -----------------------------------------------------------------------------

hostile = (
    st.text(alphabet=st.sampled_from("\"'\\\n\r\t\0{}$#`rn\u2028\u202eé\x0c\ud800 "), max_size=40) | st.text()
)


@given(hostile)
def test_a_literal_evaluates_to_exactly_its_text(text: str) -> None:
    written = literal(text)
    assert eval(written.encode("utf-8").decode(), {"__builtins__": {}}) == text


@given(hostile)
def test_a_docstring_is_one_docstring(text: str) -> None:
    tree = ast.parse(docstring(text).encode("utf-8"))
    assert len(tree.body) == 1 and ast.get_docstring(tree) is not None


@settings(max_examples=40, deadline=None)
@given(idea=hostile, name=hostile, version=hostile, run=hostile)
def test_labels_cannot_break_out_of_the_head(
    mixed: Problem, idea: str, name: str, version: str, run: str
) -> None:
    problem = mixed.model_copy(update={"name": name})
    report = report_for(problem, idea=idea, versions={name: version}, run_id=run, device=name)
    mine = ast.parse(export_module(problem, mixed_program(), report))
    plain = ast.parse(export_module(mixed, mixed_program(), report_for(mixed)))
    assert isinstance(mine.body[0], ast.Expr) and isinstance(mine.body[0].value, ast.Constant)
    assert [ast.dump(n) for n in mine.body[1:]] == [ast.dump(n) for n in plain.body[1:]]


@settings(max_examples=40, deadline=None)
@given(hostile.filter(lambda text: "\ud800" not in text))
def test_kernel_source_travels_unchanged(mixed: Problem, text: str) -> None:
    program = mixed_program()
    noted = program.model_copy(update={"source": program.source + "// " + text})
    context: dict[str, str] = {}
    tree = ast.parse(export_module(mixed, noted, report_for(mixed)))
    kept: list[ast.stmt] = [
        n
        for n in tree.body
        if isinstance(n, ast.Assign)
        and isinstance(n.targets[0], ast.Name)
        and n.targets[0].id == "_WARPSMITH_SOURCE"
    ]
    exec(compile(ast.Module(kept, []), "kept", "exec"), context)
    assert context["_WARPSMITH_SOURCE"].endswith("// " + text)


def test_hidden_characters_in_a_kernel_are_written_as_escapes(mixed: Problem) -> None:
    program = mixed_program()
    noted = program.model_copy(update={"source": program.source + "// \u202e reversed"})
    text = export_module(mixed, noted, report_for(mixed))
    assert "\u202e" not in text and "\\u202e" in text


def test_no_builtin_of_the_runtime_hides_in_a_format_string() -> None:
    # Python 3.11 tokenizes a format string as one token, so a builtin in it could not be reached another way.
    import builtins

    for part in RUNTIME_PARTS:
        tree = ast.parse(
            (Path(export_module.__code__.co_filename).parent / f"{part}.py").read_text(encoding="utf-8")
        )
        strings = [n for n in ast.walk(tree) if isinstance(n, ast.JoinedStr)]
        names = {n.id for s in strings for n in ast.walk(s) if isinstance(n, ast.Name)}
        assert not names & set(dir(builtins)), part


def test_builtins_that_the_file_hides_are_reached_another_way() -> None:
    assert qualified("x.len = len(range)\n", {"len"}) == "x.len = _warpsmith_builtins.len(range)\n"
    assert qualified("len(y)\n", {"*"}) == "_warpsmith_builtins.len(y)\n"


# --- the head -------------------------------------------------------------------------------------------------


def test_the_head_says_what_was_verified(mixed: Problem) -> None:
    head = " ".join(
        (ast.get_docstring(ast.parse(export_module(mixed, mixed_program(), report_for(mixed)))) or "").split()
    )
    for fact in (
        "1,000 random trials on NVIDIA H200, at the full shapes (x [6, 32]; f32)",
        "max(1e-06, 2 x the error of eager PyTorch)",
        "10 us against 35 us of eager (3.5 x, faster than the baseline), both measured on NVIDIA H200",
        "Input distributions: normal, uniform.",
        "Run run-1, candidate candidate-7",
        "the kernels have no backward",
    ):
        assert fact in head
    assert "no GPU has run" not in head


def test_the_head_says_what_was_not_verified(mixed: Problem) -> None:
    report = report_for(
        mixed,
        time_source="modelled",
        device="simulator:h200",
        verified_shapes={"x": (2, 32)},
        full_shape_trials=1,
    )
    head = " ".join(
        (ast.get_docstring(ast.parse(export_module(mixed, mixed_program(), report))) or "").split()
    )
    assert "no GPU has run or timed the kernels" in head
    assert "at reduced shapes (x [2, 32]; f32)" in head
    assert "1 of them at the full ones" in head
    assert (
        "The full shapes (x [6, 32]), which the kernels below are bound to, were run in 1 of the trials"
        in head
    )
    assert "measured on" not in head


def test_imports_that_the_file_needs_besides_torch_are_named(mixed: Problem) -> None:
    target = mixed.target.model_copy(
        update={"source": MIXED.replace("rows = 6", "import einops.layers, os\nrows = 6")}
    )
    problem = mixed.model_copy(update={"target": target})
    assert "also imports: einops." in export_module(problem, mixed_program(), report_for(problem))


# --- writing --------------------------------------------------------------------------------------------------


def test_writing_replaces_the_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "winner.py"
    path.write_text("old")
    write_export(path, "new\r\nline\n")
    assert path.read_bytes() == b"new\r\nline\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="existing, writable folder"):
        write_export(tmp_path / "nowhere" / "winner.py", "text")
