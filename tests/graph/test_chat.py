"""Conversations with real runs: what is understood, asked, told and done, and what a kill leaves."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from graph.build import open_store
from graph.chat import ChatEngine
from graph.chat_answers import Desk, tell_candidate, tell_why
from graph.chat_history import Said, Standing, find_conversation, list_conversations, new_conversation
from graph.chat_intents import Status
from graph.chat_parts import ChatPart, Code, Failure, ProgressLine, Question, Table
from graph.chat_reader import Reading
from graph.cli_chat import split_messages
from graph.runner import Runner
from graph.session import find_summary, record_run
from graph.settings import Settings
from memory.records import Candidate, Diagnostic, Evaluation, Origin, Run, Stage, TrialError
from memory.records import Status as Verdict
from tests.graph.test_run import environment
from tests.graph.test_runner import settings_in, until
from tests.problems import module_text, scaled_relu_problem, scaled_relu_program
from tools.problem import Captured

BARE = "class Scaled(nn.Module):\n    def forward(self, x, factor):\n        return torch.relu(x * factor)\n"
WITH_INIT = module_text(2048, 512).partition("def get_inputs")[0]


Finished = tuple[ChatEngine, list[ChatPart], list[ChatPart]]
RAISES = module_text().replace("return torch.relu", "raise ValueError('no'); return torch.relu")


def engine_in(folder: Path, settings: Settings | None = None, **more: object) -> ChatEngine:
    """A new conversation in a home of its own."""
    settings = settings or settings_in(folder)
    return ChatEngine(new_conversation(settings.root), settings, **more)  # type: ignore[arg-type]


def say(engine: ChatEngine, text: str) -> list[ChatPart]:
    return list(engine.say(text))


def words(parts: list[ChatPart]) -> str:
    """Everything that is said, in one line."""
    said = []
    for part in parts:
        if isinstance(part, Table):
            said.append(" ".join([part.title, *part.columns, *(cell for row in part.rows for cell in row)]))
        else:
            said.append(part.text)
    return " ".join(" ".join(said).split())


def kinds(parts: list[ChatPart]) -> list[str]:
    return [part.kind for part in parts]


@pytest.fixture(scope="module")
def finished(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Finished]:
    """A conversation whose run has ended, with what was said at its beginning and on its way."""
    folder = tmp_path_factory.mktemp("finished")
    engine = engine_in(folder)
    (folder / "scaled.py").write_text(module_text(2048, 512))
    begun = say(
        engine, f"optimize {folder}/scaled.py for an H100, stay within 1e-5, ten minutes, 64 registers"
    )
    followed = list(engine.follow())
    yield engine, begun, followed


def test_a_request_is_answered_with_what_was_understood_captured_and_begun(
    finished: Finished,
) -> None:
    engine, begun, followed = finished
    run = engine.conversation.standing().run
    said = words(begun)
    assert (
        "H100 (simulated); relative tolerance 1e-05; at most 600 s of searching; 1 generation (default)"
        in said
    )
    assert "not used: '64 registers'" in said
    assert "inputs f32[2048,512]" in said and "floor (speed of light) of one forward on H100 is" in said
    assert (
        f"Run {run} has begun in a process of its own" in said
        and "rules write up to 1 generation of 2" in said
    )
    assert not any(isinstance(part, Failure | Question) for part in begun)
    assert any(isinstance(part, ProgressLine) and "×" in part.text for part in followed)
    assert "status improved" in words(followed)


def test_a_finished_run_is_told_and_explained(
    finished: Finished,
) -> None:
    engine = finished[0]
    status = words(say(engine, "how is it going?"))
    assert (
        "evaluations 2: 2 passed" in status
        and "none asked: agents by rules" in status
        and "(modelled)" in status
    )
    winner = say(engine, "explain the winner")
    said = words(winner)
    for expected in (
        "idea Fuse",
        "techniques",
        "speedup",
        "bottleneck",
        "steps (modelled)",
        "further random trials",
    ):
        assert expected in said, expected
    assert "Not verified: its time on a real GPU" in said and "reduced shapes" in said
    assert "did not fail: its winner runs" in words(say(engine, "why did it fail?"))
    assert "did not fail: it passed" in words(say(engine, "why did 000-001 fail?"))
    assert kinds(say(engine, "why did 007-001 fail?")) == ["error"]
    assert "(this one) improved simulator:h100" in words(say(engine, "list my runs"))
    assert "Nobody is working on" in words(say(engine, "stop"))
    assert kinds(say(engine, "resume")) == kinds(say(engine, "approve")) == ["error"]
    assert "has ended" in words(say(engine, "pin 000-001"))
    assert "has no candidate '009-001'" in words(say(engine, "roll back to 009-001"))
    assert "is not faster than PyTorch" in words(say(engine, "roll back to 000-001: it is simpler"))


def test_a_winner_is_exported_again(finished: Finished, tmp_path: Path) -> None:
    engine = finished[0]
    said = words(say(engine, f"export it to {tmp_path}/kernels"))
    [path] = (tmp_path / "kernels").glob("*.py")
    assert str(path) in said and "class ModelNew" in path.read_text()
    assert "names a file" in words(say(engine, f"export it to {tmp_path}/kernels/x.py"))
    assert "cannot write to" in words(say(engine, "export it to /proc/none"))


def test_an_idea_for_a_run_that_has_ended_offers_a_new_one(
    finished: Finished,
) -> None:
    engine = finished[0]
    old = engine.conversation.standing().run
    offered = say(engine, "try this idea: one warp per row")
    assert kinds(offered) == ["question"]
    assert "needs a new run" in words(offered) and "agents by rules ignore ideas" in words(offered)
    begun = words(say(engine, "yes"))
    run = engine.conversation.standing().run
    assert run is not None and run != old and f"Run {run} has begun" in begun
    noted = say(engine, "hint: float4 loads")
    assert "agents by rules ignore ideas" in words(noted)
    assert f"Stopped run {run}" in words(say(engine, "stop"))
    settings = engine.settings
    with open_store(settings) as store:
        assert store.hints(run) == ["one warp per row", "float4 loads"]
        assert find_summary(store.run(run), store, settings).status == "interrupted"
    assert "hints 2" in words(say(engine, "status"))
    assert "There is nothing to say yes to" in words(say(engine, "yes"))
    assert f"about run {old}" in words(say(engine, f"use run {old}"))
    assert kinds(say(engine, "try this idea: half precision")) == ["question"]
    say(engine, "status")
    # The offer is over: a yes to something else starts nothing.
    assert "There is nothing to say yes to" in words(say(engine, "ok"))


def test_one_question_is_asked_where_no_module_is_named(tmp_path: Path) -> None:
    engine = engine_in(tmp_path)
    asked = say(engine, "optimize this module for an A100 within 1e-4")
    assert kinds(asked) == ["question"] and "Which module?" in words(asked)
    assert "does not answer my question" in words(say(engine, "the weather is nice"))
    asked = say(engine, f"```python\n{BARE}```")
    # The first question is the only one: what else is missing is an error that says so.
    assert "I added: import torch; from torch import nn." in words(asked)
    assert kinds(asked) == ["text", "error"] and "With which inputs is Scaled run?" in words(asked)
    pending = engine.conversation.standing().pending
    assert pending is not None and pending.request is not None
    assert (pending.request.constraints.gpu, pending.request.constraints.tolerance) == ("a100", 1e-4)
    path = Path(str(pending.request.target.path))
    assert path == engine.settings.root / "chats" / engine.conversation.id / "scaled.py"
    assert path.read_text().startswith("import torch\nfrom torch import nn\n")
    assert "dropped the question" in words(say(engine, "never mind"))
    assert engine.conversation.standing().pending is None


def test_an_answer_completes_the_request_after_a_restart(tmp_path: Path) -> None:
    engine = engine_in(tmp_path)
    asked = say(engine, f"optimize within 1e-4, with review:\n{WITH_INIT}")
    assert kinds(asked) == ["question"]
    assert "inputs and constructor arguments (columns) is Model run?" in words(asked)
    engine = ChatEngine(find_conversation(engine.settings.root, engine.conversation.id), engine.settings)
    wrong = say(engine, "inputs f99[3], init [512]")
    assert isinstance(wrong[-1], Failure) and "inputs" in wrong[-1].text
    begun = say(engine, "inputs f32[2048,512], init [512]")
    said = words(begun)
    assert "Model from" in said and "tolerance 0.0001" in said and "inputs f32[2048,512]" in said
    assert "constructor arguments [512]" in said and "waits for your approval" in said
    assert "status in review" in words(list(engine.follow()))
    assert "Its winner waits for your word" in words(say(engine, "status"))
    assert "waits for your word" in words(say(engine, "resume"))
    assert "Rejected, with the note 'too wide'" in words(say(engine, "reject: too wide"))
    with open_store(engine.settings) as store:
        run = store.run(str(engine.conversation.standing().run))
        ids = [candidate.id for candidate in store.candidates(run.id)]
        until(lambda: any(review.note == "too wide" for one in ids for review in store.reviews(one)))
    say(engine, "stop")


def test_errors_are_one_sentence_and_leave_no_run(tmp_path: Path) -> None:
    engine = engine_in(tmp_path)
    (tmp_path / "bad.py").write_text("class Model(:\n")
    (tmp_path / "raises.py").write_text(
        module_text().replace("return torch.relu", "raise ValueError('no'); return torch.relu")
    )
    for text, expected in (
        ("optimize nowhere/net.py", "no file 'nowhere/net.py'"),
        (f"optimize {tmp_path}/bad.py", "bad.py:1: syntax error"),
        (f"optimize {tmp_path}/bad.py for a V100", "syntax error"),
        (f"optimize {tmp_path}/raises.py for a voodoo2 gpu", "no"),
        ("status", "there is no run yet"),
        ("why did 000-001 fail", "no run that 000-001"),
        ("use run nobody-20261202", "no run"),
    ):
        parts = say(engine, text)
        assert isinstance(parts[-1], Failure), text
        assert expected in parts[-1].text and "Traceback" not in parts[-1].text, parts[-1].text
    (tmp_path / "good.py").write_text(module_text())
    parts = say(engine, f"optimize {tmp_path}/good.py for a V100")
    assert "unknown GPU 'v100'; known: h200" in words(parts)
    with open_store(engine.settings) as store:
        assert store.runs() == []
    kept = engine.conversation.lines()
    assert any(isinstance(line, Said) and "V100" in line.text for line in kept)


def test_a_reader_is_asked_only_where_the_rules_are_silent(tmp_path: Path) -> None:
    asked: list[tuple[str, tuple[str, ...]]] = []

    def reader(message: str, before: Sequence[str]) -> Reading:
        asked.append((message, tuple(before)))
        return Reading(Status() if "steht" in message else None, "a remark")

    engine = engine_in(tmp_path, reader=reader)
    assert "I optimize a module" in words(say(engine, "help"))
    assert asked == []
    answered = words(say(engine, "wie steht es?"))
    assert "a remark" in answered and "there is no run yet" in answered
    assert "I do not understand 'bla'" in words(say(engine, "bla"))
    assert asked == [("wie steht es?", ("help",)), ("bla", ("help", "wie steht es?"))]
    say(engine, "  ")
    assert len(asked) == 2


def failed_run(engine: ChatEngine) -> Run:
    """A run with one candidate that failed, put into the store by hand."""
    settings = engine.settings
    with open_store(settings) as store:
        run = record_run(Captured(scaled_relu_problem(), None), settings, store)
        program = scaled_relu_program()
        store.put_program(program)
        store.put_candidate(
            Candidate(
                id=f"{run.id}-000-000", run_id=run.id, program_hash=program.content_hash(), generation=0,
                origin=Origin(kind="recipe", agent="coder"), idea="one thread an element",
            )
        )  # fmt: skip
        store.put_evaluation(
            Evaluation(
                program_hash=program.content_hash(), problem_hash=run.problem_hash, device=run.device,
                policy_hash=settings.policy.content_hash(), status=Verdict.INCORRECT, stage=Stage.CORRECTNESS,
                diagnostics=(
                    Diagnostic(
                        stage=Stage.CORRECTNESS, rule="wrong_values", message="y[3] is 2, not 1", line=5,
                        excerpt="y[i] = v;",
                    ),
                ),
                errors=(TrialError(distribution="large", output="y", error=None, eager_error=0.0, allowed=1e-6),),
            )
        )  # fmt: skip
    return run


def test_a_candidate_that_failed_is_told_with_its_line_and_its_errors(tmp_path: Path) -> None:
    engine = engine_in(tmp_path)
    run = failed_run(engine)
    parts = say(engine, "why did 000-000 fail?")
    assert "incorrect, in the stage 'correctness'" in words(
        parts
    ) and "wrong_values, line 5: y[3] is 2" in words(parts)
    assert Code(text="y[i] = v;") in parts
    assert "large y not a number" in words(parts)
    assert words(say(engine, f"explain {run.id}-000-000")) == words(parts)
    assert "candidates that failed" in words(say(engine, "why did it fail?"))
    assert "no candidate that passed yet" in words(say(engine, "explain the winner"))
    assert "Noted: " in words(say(engine, "kill 000-000: unreadable"))
    assert kinds(say(engine, "pin 000-000")) == kinds(say(engine, f"pin {run.id}-000-009")) == ["error"]
    with open_store(engine.settings) as store:
        desk = Desk(engine.settings, store, Runner(engine.settings), engine.now())
        assert "not ended (interrupted)" in words(list(tell_why(run, desk)))
        assert kinds(list(tell_candidate("000-000", run, desk, failure=True)))[0] == "text"


def chat_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "graph.cli", "chat", *arguments]


def test_a_chat_that_is_killed_leaves_its_run_at_work(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    (tmp_path / "scaled.py").write_text(module_text(2048, 512))
    message = "optimize scaled.py on the simulator, 3 generations, population 4"
    with subprocess.Popen(
        chat_command("-m", message, "--wait"), cwd=tmp_path, env=environment(str(settings.root)),
        start_new_session=True, stdout=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        runner = Runner(settings)
        until(lambda: (head := first_run(settings)) and runner.worker(head), 120)
        os.killpg(process.pid, signal.SIGKILL)
    [head] = list_conversations(settings.root)
    assert head.run is not None and runner.worker(head.run) is not None
    engine = ChatEngine(find_conversation(settings.root, head.id), settings)
    assert "running" in words(say(engine, "status")) or "starting" in words(say(engine, "status"))
    assert f"Stopped run {head.run}" in words(say(engine, "please stop"))
    status = say(engine, "status")
    assert "interrupted" in words(status) and "Say 'resume' to continue" in words(status)
    assert "Traceback" not in words(status)


def first_run(settings: Settings) -> str | None:
    heads = list_conversations(settings.root)
    return heads[0].run if heads else None


def test_a_pipe_is_read_as_messages_and_answered_as_json(tmp_path: Path) -> None:
    said = subprocess.run(
        chat_command("--json", "--new"), cwd=tmp_path, env=environment("home"), capture_output=True, text=True,
        input="help\n\nstatus\n", timeout=120,
    )  # fmt: skip
    assert said.returncode == 2, said.stderr
    parts = [json.loads(line) for line in said.stdout.splitlines()]
    assert [part["kind"] for part in parts] == ["text", "error"]
    [head] = list_conversations(tmp_path / "home")
    listed = subprocess.run(
        chat_command("--list", "--json"),
        cwd=tmp_path,
        env=environment("home"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert json.loads(listed.stdout)[0]["id"] == head.id and head.first == "help"


def test_messages_of_a_pipe_keep_code_in_one_piece() -> None:
    code = "class M(nn.Module):\n\n    def forward(self, x):\n        return x"
    assert list(split_messages(["status", "", "", "help"])) == ["status", "help"]
    fenced = ["optimize", "```python", *code.splitlines(), "```", "ten minutes", "", "status"]
    assert list(split_messages(fenced)) == ["\n".join(fenced[:-2]), "status"]
    bare = ["optimize this:", *code.splitlines(), ".", "status"]
    assert list(split_messages(bare)) == ["\n".join(bare[:-2]), "status"]


def test_the_prompt_takes_pasted_code_and_leaves_at_an_interrupt(tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        # A test run in the background of a script has interrupts ignored.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execvpe(sys.executable, chat_command(), environment("home"))
    heard = ""

    def hear(expected: str) -> None:
        nonlocal heard
        deadline = time.monotonic() + 60
        while expected not in heard:
            assert time.monotonic() < deadline, heard
            if select.select([terminal], [], [], 0.2)[0]:
                heard += os.read(terminal, 65536).decode(errors="replace")

    hear("> ")
    os.write(terminal, b"```python\nimport torch\n\nclass A(torch.nn.Module):\n    pass\n```\n")
    hear("With which inputs is A run?")
    os.write(terminal, b"\x03")
    hear("come back with `warpsmith chat -c")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)
    [head] = list_conversations(tmp_path / "home")
    standing = find_conversation(tmp_path / "home", head.id).standing()
    assert isinstance(standing, Standing) and standing.pending is not None
