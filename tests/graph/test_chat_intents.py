"""What people type and what the rules make of it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.chat_constraints import Constraints, read_constraints, small_number
from graph.chat_durations import durations_s, number
from graph.chat_intents import (
    Approve,
    Confirm,
    Dismiss,
    Explain,
    Export,
    Help,
    Hint,
    Intent,
    ListRuns,
    Mark,
    Optimize,
    Reject,
    Resume,
    RollBack,
    Status,
    Stop,
    Unknown,
    UseRun,
    WhyFailed,
    read_intent,
)
from graph.chat_source import complete_imports, examine_source, fenced, segments, split_code
from graph.chat_target import TargetText, shape_as_inputs
from memory.events import Verdict

RUN = "layernorm_gelu-20261202-164633-835d"

CODE = """import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return torch.relu(x * self.scale)


def get_inputs():
    return [torch.rand(64, 512)]
"""


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("pin 002-003", Mark("002-003", Verdict.PINNED)),
        (
            "Please kill candidate 002-003: nobody can read it",
            Mark("002-003", Verdict.KILLED, "nobody can read it"),
        ),
        ("release 0012-003-r1.", Mark("0012-003-r1", Verdict.RELEASED)),
        ("roll back to 001-000", RollBack("001-000")),
        ("rollback to candidate 001-000 because it is smaller", RollBack("001-000", "because it is smaller")),
        ("kill the run", Stop()),
        ("status", Status()),
        ("STATUS!", Status()),
        ("  what's   the status ?", Status()),
        ("How's it going?", Status()),
        ("how is the run going so far", Status()),
        ("how far are you", Status()),
        ("is it done yet?", Status()),
        ("any news?", Status()),
        ("what is the best so far", Status()),
        ("how much did it cost?", Status()),
        (f"status of {RUN}", Status(RUN)),
        (f"what is the status of run {RUN.upper()}?", Status(RUN)),
        (RUN, Status(RUN)),
        ("explain the winner", Explain()),
        ("Could you please explain the winner?", Explain()),
        ("explain", Explain()),
        ("show me the winner", Explain()),
        ("why is it faster?", Explain()),
        ("how does the winner work", Explain()),
        ("what is the bottleneck?", Explain()),
        ("explain 001-002", Explain("001-002")),
        (f"explain the winner of {RUN}", Explain(RUN)),
        ("why did it fail", WhyFailed()),
        ("Why did the run fail?!", WhyFailed()),
        ("why isn't it faster", WhyFailed()),
        ("why is the winner not faster?", WhyFailed()),
        ("why is there no winner?", WhyFailed()),
        ("which candidates failed?", WhyFailed()),
        ("what went wrong?", WhyFailed()),
        ("why did 001-002 fail?", WhyFailed("001-002")),
        ("001-002", WhyFailed("001-002")),
        (f"what happened to {RUN}-001-002-r1?", WhyFailed(f"{RUN}-001-002-r1")),
        (f"why did {RUN} fail", WhyFailed(RUN)),
        ("try this idea: keep the row in registers", Hint("keep the row in registers")),
        ("Try this:  one warp per row", Hint("one warp per row")),
        ("please try a warp per row", Hint("a warp per row")),
        ("hint: use float4 loads", Hint("use float4 loads")),
        ("here is an idea: fuse the bias", Hint("fuse the bias")),
        ("how about trying half precision", Hint("half precision")),
        ("tell the agents to avoid shared memory", Hint("avoid shared memory")),
        ("stop", Stop()),
        ("STOP.", Stop()),
        ("please stop the run now", Stop()),
        ("could you stop it, please?", Stop()),
        ("cancel the search", Stop()),
        ("kill it", Stop()),
        (f"stop run {RUN}", Stop(RUN)),
        ("resume", Resume()),
        ("please go on", Resume()),
        (f"resume {RUN}", Resume(RUN)),
        ("resume for 10 more minutes", Resume(constraints=Constraints(wall_s=600.0), more=True)),
        ("continue for another minute", Resume(constraints=Constraints(wall_s=60.0), more=True)),
        ("continue with 5 generations", Resume(constraints=Constraints(generations=5))),
        ("export", Export()),
        ("export it to kernels/", Export("kernels/")),
        ("save the winner into 'out dir'.", Export("out dir")),
        (f"export {RUN} to /tmp/x", Export("/tmp/x", RUN)),
        ("approve", Approve()),
        ("yes, approve it", Approve()),
        ("approve: fine by me", Approve("fine by me")),
        ("reject it because it is ugly", Reject("because it is ugly")),
        ("Reject - too many registers", Reject("too many registers")),
        ("list my runs", ListRuns()),
        ("which runs are there?", ListRuns()),
        (f"use run {RUN}", UseRun(RUN)),
        ("yes please", Confirm()),
        ("ok", Confirm()),
        ("never mind", Dismiss()),
        ("Nevermind.", Dismiss()),
        ("no thanks", Dismiss()),
        ("help", Help()),
        ("what can you do?", Help()),
        ("hello", Help()),
    ],
)
def test_plain_forms_are_understood(text: str, intent: Intent) -> None:
    assert read_intent(text) == intent


@pytest.mark.parametrize(
    "text",
    [
        "don't stop",
        "I don't want to stop",
        "do not optimize net.py",
        "never export it",
        "don't kill 002-003",
        "kill 002-003 if it is slow",
        "roll back to 001-000, but only if it is smaller",
        "pin it",
        "approve if it is twice as fast",
        "approve, but only if it is twice as fast",
        "stop worrying and optimize my life",
        "what is net.py?",
        "the weather is nice",
        "",
    ],
)
def test_what_is_not_said_plainly_changes_nothing(text: str) -> None:
    intent = read_intent(text)
    assert isinstance(intent, Unknown) or (isinstance(intent, Optimize) and intent.target.path is None)


def test_asking_about_an_action_is_not_doing_it() -> None:
    for text in (
        "what happens if I stop?",
        "how do I export?",
        "can I approve it later?",
        "should I stop it?",
    ):
        assert read_intent(text) == Help(), text


@pytest.mark.parametrize(
    ("text", "path", "class_name", "constraints"),
    [
        (
            "optimize net.py for an H100, stay within 1e-5, ten minutes",
            "net.py", None, Constraints(gpu="h100", tolerance=1e-5, wall_s=600.0),
        ),
        (
            "Please OPTIMISE net.py:Block on the simulator for an A100 , tolerance=1e -4 ,90s",
            "net.py", "Block", Constraints(gpu="a100", device="simulator", tolerance=1e-4, wall_s=90.0),
        ),
        ("can you make ./a/net.py faster? you have half an hour", "./a/net.py", None, Constraints(wall_s=1800.0)),
        (
            "speed up 'my dir/net.py' on my GPU, 3 generations, population of 16",
            "my dir/net.py", None, Constraints(device="cuda", generations=3, population=16),
        ),
        (
            "warpsmith optimize net.py --gpu a100 --budget-s 600 --tolerance 1e-5 --device simulator --generations 2",
            "net.py", None,
            Constraints(gpu="a100", device="simulator", tolerance=1e-5, wall_s=600.0, generations=2),
        ),
        ("net.py, 2h", "net.py", None, Constraints(wall_s=7200.0)),
        ("the class Block in net.py, make it fast for sm_90a", "net.py", "Block", Constraints(gpu="sm_90a")),
        ("optimize net.py for a V100", "net.py", None, Constraints(gpu="v100")),
        ("optimize net.py for an RTX 4090 within 0.01%", "net.py", None, Constraints(gpu="rtx4090", tolerance=1e-4)),
        ("optimize net.py for an A-100 and 1h30m", "net.py", None, Constraints(gpu="a100", wall_s=5400.0)),
        ("optimize net.py 1h 100 s", "net.py", None, Constraints(wall_s=3700.0)),
        ("optimize net.py, error below 10^-5, no gpu", "net.py", None, Constraints(device="simulator", tolerance=1e-5)),
        ("optimize the PyTorch module net.py on h 100", "net.py", None, Constraints(gpu="h100")),
        ("optimize net.py within 5 minutes", "net.py", None, Constraints(wall_s=300.0)),
        ("optimize net.py and let me approve it", "net.py", None, Constraints(review=True)),
        ("optimize net.py; just one generation, 4 candidates per generation", "net.py", None,
         Constraints(generations=1, population=4)),
    ],
)  # fmt: skip
def test_a_request_is_read_with_its_constraints(
    text: str, path: str, class_name: str | None, constraints: Constraints
) -> None:
    intent = read_intent(text)
    assert isinstance(intent, Optimize)
    assert (intent.target.path, intent.target.class_name) == (path, class_name)
    assert intent.constraints == constraints
    assert intent.unread == ""


def test_inputs_and_constructor_arguments_are_read_in_any_spelling() -> None:
    for text in (
        'optimize net.py --inputs "f32[16,1024],i64[16]:9" --init "[512, 1e-5]"',
        "optimize net.py with inputs F32 [16 x 1024] and i64[16]:9, init [512, 1e-5]",
        "init [512, 1e-5], input shapes: f32[ 16, 1024 ], i64[16]:9 optimize net.py",
    ):
        intent = read_intent(text)
        assert isinstance(intent, Optimize)
        assert intent.target == TargetText("net.py", None, "f32[16,1024],i64[16]:9", "[512, 1e-5]"), text
        assert intent.constraints == Constraints()


def test_what_cannot_be_used_is_said() -> None:
    def remarks(text: str) -> str:
        return " ".join(read_constraints(text)[0].remarks)

    assert "several GPUs: h100 and a100; I took h100" in remarks("for an H100 or an A100")
    assert "several GPUs: h100 and sm_90a" in remarks("H100 sm_90a")
    assert "300 and 600; I took 300" in remarks("5 min, no, 10 min")
    assert "not between 0 and 1" in remarks("tolerance 3")
    assert "'a few minutes' is no number" in remarks("a few minutes")
    assert "relative here" in remarks("absolute error 1e-5")
    assert "0 s" in remarks("0 minutes")
    intent = read_intent("optimize net.py with at most 64 registers in 10 ms")
    assert isinstance(intent, Optimize) and intent.unread == "64 registers 10 ms"
    assert intent.constraints.wall_s is None


def test_again_means_the_last_module_and_this_module_does_not() -> None:
    for text in ("optimize it again on an A100", "rerun with 1e-4", "the same module for an A100"):
        intent = read_intent(text)
        assert isinstance(intent, Optimize) and intent.again, text
    intent = read_intent("optimize this module for an A100")
    assert intent == Optimize(constraints=Constraints(gpu="a100"))


@pytest.mark.parametrize(
    "text",
    [
        f"optimize this module for an H100, within 1e-5, ten minutes:\n```python\n{CODE}```",
        f"optimize this module:\n```\n{CODE}```\nfor an H100, within 1e-5, ten minutes",
        f"optimize this module for an H100, within 1e-5\n\n{CODE}\nten minutes please",
        f"{CODE}for an H100, within 1e-5, in ten minutes",
        "H100, 1e-5, ten minutes\n" + "\n".join(f"    {line}" if line else "" for line in CODE.splitlines()),
        f"for an H100, within 1e-5, ten minutes ```py\n{CODE}",
    ],
)
def test_pasted_code_is_told_from_the_text_around_it(text: str) -> None:
    intent = read_intent(text)
    assert isinstance(intent, Optimize) and intent.code is not None
    assert intent.code.strip() == CODE.strip()
    assert intent.constraints == Constraints(gpu="h100", tolerance=1e-5, wall_s=600.0)
    assert intent.unread == ""


def test_an_idea_may_hold_code() -> None:
    intent = read_intent("try this idea: load like\n```cuda\nfloat4 v = x4[i];\n```")
    assert isinstance(intent, Hint) and "float4" in intent.text


def test_a_class_named_beside_several_is_the_one_that_is_meant() -> None:
    code = CODE + "\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x\n"
    intent = read_intent(f"optimize Net:\n```python\n{code}```")
    assert isinstance(intent, Optimize) and intent.target.class_name == "Net"


def test_code_without_imports_gets_them() -> None:
    bare = CODE.partition("\n\n\n")[2]
    completed, added = complete_imports(bare)
    assert added == ("import torch", "from torch import nn")
    assert complete_imports(completed) == (completed, ())
    assert complete_imports("def broken(:") == ("def broken(:", ())
    future, _ = complete_imports(f'"""Doc."""\nfrom __future__ import annotations\n{bare}')
    assert future.splitlines()[:3] == ['"""Doc."""', "from __future__ import annotations", "import torch"]


def test_a_source_says_what_it_defines() -> None:
    facts = examine_source(
        CODE + "\nclass Outer(nn.Module):\n    def __init__(self):\n        self.b = Block(3)\n"
    )
    assert facts is not None
    assert (facts.modules, facts.candidates) == (("Block", "Outer"), ("Outer",))
    assert (facts.has_inputs, facts.has_init) == (True, False)
    assert facts.needs == {"Block": ("width",), "Outer": ()}
    assert examine_source("class (") is None


def test_bare_shapes_are_single_precision() -> None:
    assert shape_as_inputs("(16, 1024)") == "f32[16,1024]"
    assert shape_as_inputs("16x1024") == "f32[16,1024]"
    assert shape_as_inputs("sixteen") is None


ONES = "zero one two three four five six seven eight nine".split()
TENS = {
    20: "twenty",
    30: "thirty",
    40: "forty",
    50: "fifty",
    60: "sixty",
    70: "seventy",
    80: "eighty",
    90: "ninety",
}


@given(st.integers(20, 99), st.sampled_from(["-", " ", "  "]))
def test_numbers_in_words_mean_their_digits(value: int, gap: str) -> None:
    tens, ones = divmod(value, 10)
    words = TENS[tens * 10] + (f"{gap}{ONES[ones]}" if ones else "")
    assert number(words) == number(words.upper()) == number(str(value)) == value
    assert durations_s(f"at most {words} minutes") == [value * 60]


@given(
    hours=st.integers(1, 23),
    minutes=st.integers(1, 59),
    seconds=st.integers(1, 59),
    form=st.sampled_from(
        [
            "{h}h{m}m{s}s",
            "{h} hours, {m} minutes and {s} seconds",
            "{h} h {m} min {s} s",
            "{h} hrs {m} mins, {s} secs",
        ]
    ),
)
def test_parts_of_a_duration_add_up(hours: int, minutes: int, seconds: int, form: str) -> None:
    text = form.format(h=hours, m=minutes, s=seconds)
    assert durations_s(f"optimize net.py in {text}, please") == [hours * 3600 + minutes * 60 + seconds]


@given(
    st.floats(0.1, 999), st.sampled_from([("s", 1), ("sec", 1), ("min", 60), (" minutes", 60), ("h", 3600)])
)
def test_decimal_durations_keep_their_value(amount: float, unit: tuple[str, int]) -> None:
    written = f"{amount:.2f}"
    assert durations_s(f"in {written}{unit[0]}") == [pytest.approx(float(written) * unit[1])]


@given(mantissa=st.integers(1, 9), exponent=st.integers(1, 12), gap=st.sampled_from(["", " "]))
def test_tolerances_keep_their_value_in_every_spelling(mantissa: int, exponent: int, gap: str) -> None:
    value = float(f"{mantissa}e-{exponent}")
    for text in (
        f"within {mantissa}e{gap}-{gap}{exponent}",
        f"tolerance {mantissa}E–{exponent}",
        f"error below {mantissa} × 10^-{exponent}",
        f"{mantissa}e-{exponent}",
    ):
        found, rest = read_constraints(text)
        assert found.tolerance == pytest.approx(value), text
        assert found.wall_s is None and not any(character.isdigit() for character in rest)
    assert small_number(f"{value:.12f}") == pytest.approx(value)


@given(st.text(max_size=200))
def test_no_text_breaks_the_rules(text: str) -> None:
    read_intent(text)
    split_code(f"class X(nn.Module):\n{text}")


@given(st.text(alphabet="0123456789hms eE-.,:[]()x×/\\'\"`~ andhlfoptimizg", max_size=60))
def test_no_jumble_of_numbers_breaks_the_rules(text: str) -> None:
    intent = read_intent(f"optimize {text}")
    if isinstance(intent, Optimize):
        found = intent.constraints
        assert found.wall_s is None or found.wall_s > 0
        assert found.tolerance is None or 0 < found.tolerance < 1


@pytest.mark.parametrize(
    "word",
    ["please ", "why not ", "stop it ", "1 and a half ", "f32[", "a.py:", "1e-", "class A(nn.Module):\n "],
)
def test_long_messages_are_read_in_no_time(word: str) -> None:
    started = time.monotonic()
    read_intent(word * 5000)
    read_intent(f"optimize {word * 5000}x")
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("tail", ["", "# ```\n", 'TEXT = """\n```python\nx = 1\n```\n````\n"""\n'])
def test_a_file_with_fences_in_it_stays_whole_in_a_fence(tail: str) -> None:
    code = CODE + tail
    message = f"optimize this\n\n{fenced(code, 'my_net.py')}\n\nfor an H100"
    assert split_code(message)[0] == code
    assert list(segments(message)) == [
        (False, "optimize this"),
        (True, code.rstrip()),
        (False, "for an H100"),
    ]
    intent = read_intent(message)
    assert isinstance(intent, Optimize) and intent.code == code and intent.constraints.gpu == "h100"
    assert intent.file == "my_net.py" and not intent.unread
    assert fenced(code, "a `name`.py").partition("\n")[0].endswith("`python")
