"""The records: JSON round trips, identity, and the states that cannot be built."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from memory.errors import BadInput
from memory.records import (
    DType,
    Evaluation,
    Graph,
    Problem,
    Program,
    Record,
    SpecialArgument,
    Status,
    TensorSpec,
    Timing,
    Tunable,
    contiguous_strides,
)
from tests import strategies

ROOT = Path(__file__).parents[2]
KINDS = list(strategies.RECORDS)
by_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def body(record: Record) -> object:
    """A record as JSON says it, without the order of dictionaries; 1, 1.0 and true stay apart."""
    return json.dumps(record.model_dump(mode="json"), sort_keys=True)


@by_kind
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_a_record_comes_back_from_json_equal_and_with_the_same_hash(
    kind: type[Record], data: st.DataObject
) -> None:
    record = data.draw(strategies.RECORDS[kind])
    again = kind.model_validate_json(record.model_dump_json())
    assert again == record
    assert body(again) == body(record)
    assert again.content_hash() == record.content_hash()


@by_kind
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_changing_a_field_changes_the_hash_unless_it_is_a_label(
    kind: type[Record], data: st.DataObject
) -> None:
    record, other = data.draw(strategies.RECORDS[kind]), data.draw(strategies.RECORDS[kind])
    for name in kind.model_fields:
        changed = record.model_copy(update={name: getattr(other, name)})
        differs = body(changed) != body(record)
        if name in kind.LABELS or not differs:
            assert changed.content_hash() == record.content_hash(), name
        else:
            assert changed.content_hash() != record.content_hash(), name


@by_kind
def test_labels_name_fields_that_exist(kind: type[Record]) -> None:
    assert set(kind.model_fields) >= kind.LABELS


@settings(max_examples=12, deadline=None)
@given(a=st.sampled_from(KINDS), b=st.sampled_from(KINDS), data=st.data())
def test_records_of_two_classes_never_share_a_hash(
    a: type[Record], b: type[Record], data: st.DataObject
) -> None:
    if a is not b:
        first, second = data.draw(strategies.RECORDS[a]), data.draw(strategies.RECORDS[b])
        assert first.content_hash() != second.content_hash()


@settings(max_examples=12, deadline=None)
@given(problem=strategies.problems, path=strategies.texts)
def test_moving_the_users_file_does_not_change_the_problem(problem: Problem, path: str) -> None:
    moved = problem.model_copy(update={"target": problem.target.model_copy(update={"path": path})})
    assert moved.content_hash() == problem.content_hash()


@settings(max_examples=12, deadline=None)
@given(program=strategies.programs)
def test_the_order_of_dictionaries_does_not_change_the_hash(program: Program) -> None:
    turned = program.model_copy(update={"dims": dict(reversed(program.dims.items()))})
    assert turned.content_hash() == program.content_hash()


def test_the_hash_is_the_same_in_another_process_with_another_hash_seed() -> None:
    code = (
        "from memory.records import Program, LibraryStep\n"
        "step = LibraryStep(op='aten.mm.default', args=('x', 'w'), outputs=('y',))\n"
        "print(Program(source='s', dims={'N': '1', 'M': '2'}, steps=(step,), outputs=('y',)).content_hash())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


@settings(max_examples=50, deadline=None)
@given(evaluation=strategies.evaluations(), timing=strategies.timings(), status=st.sampled_from(Status))
def test_timing_exists_if_and_only_if_the_status_is_passed(
    evaluation: Evaluation, timing: Timing, status: Status
) -> None:
    reason = {"stage": "lint", "rule": "r", "message": "m"}
    fields = evaluation.model_dump() | {"status": status, "diagnostics": (reason,)}
    with_time, without = fields | {"timing": timing.model_dump()}, fields | {"timing": None}
    good, bad = (with_time, without) if status is Status.PASSED else (without, with_time)
    assert Evaluation.model_validate(good).status is status
    with pytest.raises(ValidationError, match="if and only if"):
        Evaluation.model_validate(bad)


@settings(max_examples=12, deadline=None)
@given(evaluation=strategies.evaluations().filter(lambda e: e.status is not Status.PASSED))
def test_a_failure_must_say_why(evaluation: Evaluation) -> None:
    with pytest.raises(ValidationError, match="must say why"):
        Evaluation.model_validate(evaluation.model_dump() | {"diagnostics": ()})


@settings(max_examples=12, deadline=None)
@given(timing=strategies.timings())
def test_a_timing_holds_its_median_and_needs_eager(timing: Timing) -> None:
    with pytest.raises(ValidationError, match="does not hold the median"):
        Timing.model_validate(timing.model_dump() | {"low_us": timing.median_us * 2})
    others = tuple(b.model_dump() for b in timing.baselines if b.name != "eager")
    with pytest.raises(ValidationError, match="eager baseline"):
        Timing.model_validate(timing.model_dump() | {"baselines": others})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_time_is_a_finite_number(value: float) -> None:
    eager = {"name": "eager", "median_us": 1.0, "low_us": 1.0, "high_us": 1.0}
    fields = {"source": "measured", "device": "d", "floor_us": 0.0, "baselines": (eager,)}
    with pytest.raises(ValidationError):
        Timing.model_validate(fields | {"median_us": value, "low_us": value, "high_us": value})


@by_kind
@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_a_record_is_frozen_and_refuses_unknown_fields(kind: type[Record], data: st.DataObject) -> None:
    record = data.draw(strategies.RECORDS[kind])
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        kind.model_validate(record.model_dump() | {"surprise": 1})
    with pytest.raises(ValidationError, match="frozen"):
        setattr(record, next(iter(kind.model_fields)), None)


def test_a_graph_may_not_read_what_is_not_made() -> None:
    spec = TensorSpec.dense((2,), DType.F32).model_dump()
    node = {"name": "y", "op": "aten.relu.default", "args": ("z",), "outputs": ("y",)}
    fields = {"values": {"x": spec, "y": spec}, "inputs": ("x",), "nodes": (node,), "outputs": ("y",)}
    with pytest.raises(ValidationError, match="before it is made"):
        Graph.model_validate(fields)


@pytest.mark.parametrize("fields", [{}, {"float": "nan", "text": "x"}, {"float": "1.5"}])
def test_a_special_argument_sets_exactly_one_field(fields: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        SpecialArgument.model_validate(fields)


@settings(max_examples=50, deadline=None)
@given(tunable=strategies.tunables(), value=st.integers())
def test_a_tunable_takes_its_choices_and_nothing_else(tunable: Tunable, value: int) -> None:
    program = Program(source="", tunables=(tunable,), steps=(), outputs=())
    if value in tunable.choices:
        assert program.with_values({tunable.name: value}).tunable_values() == {tunable.name: value}
    else:
        with pytest.raises(ValidationError, match="not among its choices"):
            program.with_values({tunable.name: value})
    with pytest.raises(BadInput, match="no tunable named"):
        program.with_values({tunable.name + "_": tunable.value})


@given(shape=st.lists(st.integers(0, 9), max_size=4).map(tuple), dtype=strategies.dtypes)
def test_a_dense_tensor_is_contiguous_and_counts_its_bytes(shape: tuple[int, ...], dtype: DType) -> None:
    spec = TensorSpec.dense(shape, dtype)
    assert spec.is_contiguous
    assert spec.bytes == spec.elements * dtype.bytes
    assert spec.strides == contiguous_strides(shape)


def test_a_broadcast_dimension_counts_its_bytes_once() -> None:
    spec = TensorSpec(shape=(8, 4), dtype=DType.F32, strides=(0, 1))
    assert (spec.elements, spec.bytes, spec.is_contiguous) == (32, 16, False)
