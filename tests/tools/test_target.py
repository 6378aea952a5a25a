"""Targets and input specifications: what is read, and what one message says where it cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory.errors import BadInput
from memory.records import DType, TensorSpec
from tests.tools.modules import source_of, written
from tools.target import TensorInput, parse_init, parse_inputs, parse_target

PLAIN = source_of("return x", "[torch.randn(4)]")


def test_a_file_alone_means_its_class_model(tmp_path: Path) -> None:
    path = written(tmp_path, PLAIN)
    target = parse_target(str(path))
    assert (target.class_name, target.source, target.path) == ("Model", PLAIN, str(path.resolve()))


def test_a_class_may_be_named_after_a_colon(tmp_path: Path) -> None:
    path = written(tmp_path, PLAIN.replace("Model", "Net"))
    assert parse_target(f"{path}:Net").class_name == "Net"


def test_inputs_are_read_as_tensors_and_plain_numbers() -> None:
    assert parse_inputs("f32[16,1024], i64[16]:10, bf16[], 3.5, None, True") == (
        TensorInput(TensorSpec.dense((16, 1024), DType.F32)),
        TensorInput(TensorSpec.dense((16,), DType.I64), 10),
        TensorInput(TensorSpec.dense((), DType.BF16)),
        3.5,
        None,
        True,
    )


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("f33[2]", "unknown dtype 'f33'"),
        ("f32[2", "cannot read 'f32[2'"),
        ("", "is empty"),
        ("f32[2]:9", "bounds integers"),
        ("open('x')", "cannot read"),
        ("[1]", "neither a tensor nor a plain number"),
    ],
)
def test_an_unreadable_input_is_named(text: str, part: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_inputs(text)
    assert part in str(caught.value)


def test_init_is_a_literal_list_dict_or_single_value() -> None:
    assert parse_init("[1024, 1e-5]") == ((1024, 1e-5), {})
    assert parse_init("{'features': 8}") == ((), {"features": 8})
    assert parse_init("7") == ((7,), {})


@pytest.mark.parametrize("text", ["__import__('os')", "a + b", "{1: 2}", "[", "{'a b': 1}"])
def test_init_that_is_not_plain_data_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_init(text)


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("def f(:\n    pass\n", "user_file.py:1: syntax error"),
        (PLAIN.replace("Model", "Net"), "classes found: Net); name one as FILE:Net"),
        ("x = 1\n", "classes found: none"),
        (PLAIN.replace("get_inputs", "make_inputs"), "--inputs"),
    ],
)
def test_a_file_that_lacks_something_is_told_what(tmp_path: Path, source: str, part: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_target(str(written(tmp_path, source)))
    assert part in str(caught.value)


def test_names_bound_by_imports_branches_or_stars_are_trusted(tmp_path: Path) -> None:
    for source in (
        "from other import Model, get_inputs\n",
        "from other import *\n",
        "if True:\n    class Model: pass\n    get_inputs = len\n",
    ):
        assert parse_target(str(written(tmp_path, source))).class_name == "Model"


def test_a_missing_file_a_folder_and_a_bad_class_name_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, PLAIN)
    for text, part in (
        (str(tmp_path / "absent.py"), "no file"),
        (str(tmp_path), "not a file"),
        (f"{path}:1x", "not a class name"),
    ):
        with pytest.raises(BadInput, match=part):
            parse_target(text)


def test_inputs_given_make_get_inputs_unnecessary(tmp_path: Path) -> None:
    path = written(tmp_path, PLAIN.replace("get_inputs", "make_inputs"))
    assert parse_target(str(path), inputs="f32[4]").inputs == "f32[4]"
