"""What models say, read into records: what fits, and for what does not the words that tell a model what to change."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.answers import (
    CritiqueAnswer,
    Misfit,
    PlanAnswer,
    ReadingAnswer,
    parse_object,
    parse_program,
    schema_of,
)
from memory.records import Program, Record
from tests.problems import scaled_relu_program
from tests.strategies import programs

PROGRAM = scaled_relu_program()
PLAN: dict[str, Any] = {
    **PROGRAM.model_dump(mode="json", exclude={"source"}),
    "idea": "One pass.",
    "techniques": ["fusion"],
}
SOURCE = PROGRAM.source


def rendered(
    source: str = SOURCE, plan: object = None, *, cuda: str = "cuda", tail: str = "", **changes: object
) -> str:
    """An answer as the prompt asks for it."""
    body = json.dumps(plan if plan is not None else {**PLAN, **changes}, indent=1)
    return f"Bytes move once.\n\n```{cuda}\n{source.strip()}\n```\n\nThe rest:\n```json\n{body}\n```\n{tail}"


def complaint(text: str) -> str:
    with pytest.raises(Misfit) as caught:
        parse_program(text)
    return str(caught.value)


# --- programs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cuda", ["cuda", "CUDA", "cpp", "c++", "cu", "c", "cuda title=k.cu"])
def test_a_good_answer_is_a_program_with_its_idea(cuda: str) -> None:
    answer = parse_program(rendered(cuda=cuda))
    assert answer.program.source.strip() == SOURCE.strip()
    assert answer.program == PROGRAM.model_copy(update={"source": answer.program.source})
    assert (answer.idea, answer.techniques) == ("One pass.", ("fusion",))


def test_line_ends_of_another_system_and_indented_fences_change_nothing() -> None:
    plain = parse_program(rendered())
    assert parse_program(rendered().replace("\n", "\r\n")) == plain
    assert parse_program(rendered().replace("```", "  ```")) == plain


def test_blocks_of_other_languages_are_no_part_of_the_answer() -> None:
    answer = parse_program("```text\na sketch\n```\n```\nmore\n```\n" + rendered(tail="```python\nx\n```\n"))
    assert answer == parse_program(rendered())


def test_a_stray_fence_after_the_answer_harms_nothing() -> None:
    assert parse_program(rendered(tail="```\n")) == parse_program(rendered())
    assert parse_object('```json\n{"lessons": []}\n```\n```\n', CritiqueAnswer).lessons == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the answer is empty"),
        (" \n\t ", "the answer is empty"),
        ("I would fuse both operations.", "no ```cuda block; give exactly one, complete"),
        (rendered(cuda="text"), "no ```cuda block"),
        (rendered().replace("```json", "```yaml"), "no ```json block; give exactly one, complete"),
        (rendered(tail="```cuda\nint x;\n```\n"), "has 2 ```cuda blocks; give exactly one, complete"),
        (rendered(tail="```json\n{}\n```\n"), "has 2 ```json blocks; give exactly one, complete"),
    ],
    ids=["empty", "blank", "prose", "text block", "yaml block", "two sources", "two plans"],
)
def test_blocks_that_are_missing_or_too_many_are_said_by_name(text: str, words: str) -> None:
    assert words in complaint(text)


@pytest.mark.parametrize(
    ("text", "block"),
    [
        (rendered()[: rendered().index("if (i")], "cuda"),
        (rendered()[: rendered().index('"steps"')], "json"),
        (rendered().replace("}\n```\n\nThe rest", "}\n\nThe rest"), "cuda"),
        (rendered(tail="```cuda\nint x;\n"), "cuda"),
    ],
    ids=["in the source", "in the plan", "source without its end", "a second source without its end"],
)
def test_a_block_without_an_end_is_said_to_be_cut(text: str, block: str) -> None:
    assert f"a ```{block} block is opened and never closed" in complaint(text)


def test_a_source_in_the_plan_is_sent_back_to_its_own_block() -> None:
    assert 'has a "source"; leave it out' in complaint(
        rendered(source="int x;", plan={**PLAN, "source": "x"})
    )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"idea": "x",}', "the json is not valid: "),
        ("{'idea': 1}", "line 1, column 2"),
        ("", "the json is not valid: Expecting value"),
        ("[1, 2]", "the json is a list; give one object"),
        ('"text"', "the json is a str; give one object"),
        ("{} {}", "Extra data"),
        ('{"idea": ' + "[" * 50_000, "nested too deeply"),
        ('{"a": ' + "1" * 5_000 + "}", "a number of thousands of digits"),
        (r'{"idea": "\ud800"}', "half of a surrogate pair"),
    ],
    ids=["comma", "quotes", "nothing", "list", "text", "two objects", "deep", "digits", "surrogate"],
)
def test_json_that_is_none_is_said_with_its_place(body: str, words: str) -> None:
    assert words in complaint(f"```cuda\nint x;\n```\n```json\n{body}\n```\n")


def test_broken_json_is_shown_by_its_line_and_no_more() -> None:
    text = complaint('```cuda\nint x;\n```\n```json\n{\n  "idea": one pass ' + "x" * 5000 + "\n}\n```")
    assert 'line 2, column 11: \'"idea": one pass' in text
    assert len(text) < 300


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"idea": ""}, "- idea: String should have at least 1 character"),
        ({"idea": None}, "- idea: Input should be a valid string"),
        ({"techniques": ["t"] * 9}, "- techniques: Tuple should have at most 8 items"),
        ({"steps": None}, "- steps: Input should be a valid tuple"),
        ({"grids": []}, "- grids: Extra inputs are not permitted"),
        ({"outputs": [1]}, "- outputs.0: Input should be a valid string"),
        (
            {"buffers": [{"name": "y", "shape": ["1"], "dtype": "f8"}]},
            "- buffers.0.dtype: Input should be 'f64'",
        ),
        (
            {"buffers": [{"name": "y", "shape": [33], "dtype": "f32"}]},
            "- buffers.0.shape.0: Input should be a",
        ),
        ({"tunables": [{"name": "B", "value": 3, "choices": [4]}]}, "value 3 is not among its choices"),
        (
            {"tunables": [{"name": "B C", "value": 4, "choices": [4]}]},
            "- tunables.0.name: String should match",
        ),
        ({"steps": [{"kind": "python"}]}, "- steps.0: Input tag 'python'"),
        ({"steps": [{"kind": "kernel", "entry": "k"}]}, "- steps.0.kernel.grid: Field required"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_the_schema_does_not_take_is_named_by_its_place(changes: dict[str, object], words: str) -> None:
    assert words in complaint(rendered(plan={**PLAN, **changes}))


def test_many_complaints_are_cut_and_counted_and_long_names_shortened() -> None:
    extra = {f"{i}{'n' * 1000}": 1 for i in range(20)}
    text = complaint(rendered(plan={**PLAN, **extra}))
    assert text.count("\n- ") == 9 and "- and 12 more" in text
    assert len(text) < 2000


def test_a_plan_nested_beyond_reason_is_refused_by_its_schema() -> None:
    step = {
        "kind": "library",
        "op": "aten.mm.default",
        "outputs": [],
        "args": json.loads("[" * 300 + "]" * 300),
    }
    assert "does not fit" in complaint(rendered(plan={**PLAN, "steps": [step]}))


@pytest.mark.parametrize(
    "text",
    ["```a\n" * 80_000, "```cuda\n" * 50_000, "`" * 400_000, " " * 400_000, "```\n" * 100_000, "{" * 400_000,
     "```json\n" + "[" * 390_000 + "\n```"],
    ids=["openers", "cuda openers", "backticks", "blanks", "fences", "braces", "brackets"],
)  # fmt: skip
def test_a_huge_answer_that_is_none_is_refused_at_once(text: str) -> None:
    began = time.perf_counter()
    complaint(text)
    with pytest.raises(Misfit):
        parse_object(text, PlanAnswer)
    assert time.perf_counter() - began < 5


def test_a_huge_program_is_read() -> None:
    source = SOURCE + "// padding\n" * 20_000
    assert parse_program(rendered(source)).program.source.count("padding") == 20_000


pieces = st.sampled_from(
    ["```", "```cuda\n", "```json\n", "\n```\n", "{", "}", "[", '"steps"', ":", "\r\n", "\\ud800", "\ud800", "NaN",
     "1e999", "null", "9" * 4400, '{"lessons": [', "\0", SOURCE, json.dumps(PLAN), "source", ","]
)  # fmt: skip
scraps = st.lists(pieces | st.text(max_size=30), max_size=12).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
plans = st.dictionaries(st.sampled_from(list(PLAN)), values, max_size=4).map(lambda d: {**PLAN, **d})


@settings(max_examples=300, deadline=None)
@given(scraps | plans.map(lambda plan: rendered(plan=plan)))
def test_reading_any_text_ends_in_an_answer_or_in_a_misfit_with_words(text: str) -> None:
    readers: list[Callable[[], Record]] = [partial(parse_program, text)]
    readers += [partial(parse_object, text, kind) for kind in (PlanAnswer, ReadingAnswer, CritiqueAnswer)]
    for read in readers:
        try:
            read().model_dump_json()
        except Misfit as misfit:
            assert str(misfit)


@settings(max_examples=100, deadline=None)
@given(programs)
def test_a_program_that_is_rendered_and_read_is_the_same_program(program: Program) -> None:
    program = program.model_copy(update={"source": SOURCE})
    plan = {**program.model_dump(mode="json", exclude={"source"}), "idea": "i"}
    found = parse_program(rendered(plan=plan)).program
    assert found == program.model_copy(update={"source": found.source})
    assert found.source.strip() == SOURCE.strip()


# --- objects --------------------------------------------------------------------------------------------------

IDEA = {"slot": 1, "bottleneck": "memory", "idea": "Read x once and write y once."}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"proposals": [IDEA]}),
        "  \n" + json.dumps({"proposals": [IDEA]}, indent=2) + "\n",
        "Thoughts.\n```json\n" + json.dumps({"proposals": [IDEA]}) + "\n```\nDone.",
        "```\n" + json.dumps({"proposals": [IDEA]}) + "\n```",
    ],
    ids=["bare", "bare and indented", "json block", "plain block"],
)
def test_an_object_may_be_bare_or_in_a_block(text: str) -> None:
    (planned,) = parse_object(text, PlanAnswer).proposals
    assert (planned.slot, planned.parents) == (1, ())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the answer is empty"),
        ("Memory is the limit.", "no ```json block"),
        ('{"proposals": []}', "- proposals: Tuple should have at least 1 item"),
        (
            '{"proposals": [' + json.dumps({**IDEA, "slot": 0}) + "]}",
            "- proposals.0.slot: Input should be greater",
        ),
        (
            '{"proposals": [' + json.dumps({**IDEA, "idea": "Faster."}) + "]}",
            "idea: String should have at least 10",
        ),
        (
            '{"proposals": [' + json.dumps({**IDEA, "parents": list("abcd")}) + "]}",
            "parents: Tuple should have at m",
        ),
        ("```json\n{}\n```\n```json\n{}\n```", "has 2 ```json blocks"),
        ('{"proposals": [', "the json is not valid"),
        ("```json\n{", "a ```json block is opened and never closed"),
        ('{"proposals": NaN}', "- proposals: Input should be a valid tuple"),
    ],
)
def test_an_object_that_does_not_fit_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(Misfit) as caught:
        parse_object(text, PlanAnswer)
    assert words in str(caught.value)


def test_a_reading_says_that_it_is_a_models() -> None:
    text = '{"bottleneck": "memory", "explanation": "DRAM takes it all.", "advice": "Read less."}'
    reading = parse_object(text, ReadingAnswer).reading()
    assert reading.by_model and reading.advice == "Read less."


def test_the_schema_for_structured_output_is_json_with_the_fields() -> None:
    schema = json.loads(schema_of(CritiqueAnswer))
    assert set(schema["properties"]) == {"lessons", "suspicious", "stop", "reason"}
    assert schema["additionalProperties"] is False
