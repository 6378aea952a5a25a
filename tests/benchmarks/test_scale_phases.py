"""Where a search's time is said to go, and who is said to hold memory."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.scale.memory import tree
from benchmarks.scale.phases import Phases
from graph.progress import CandidateJudged, GenerationClosed, GenerationPlanned, StageStarted
from tests.memory.made import candidate, evaluation


def test_every_second_between_events_counts_for_one_phase() -> None:
    times = iter([0.0, 5.0, 7.0, 8.0, 11.0, 11.5, 13.5, 14.0])
    phases = Phases(lambda: next(times))
    verdict = CandidateJudged(candidate("one", "program"), evaluation("program"), reused=False)
    closed = GenerationClosed(0, 3, 0, 1.0, (), "")
    for event in (GenerationPlanned(0, 3), verdict, verdict, verdict, StageStarted("a soak"), closed):
        phases.note(event)
    phases.note(GenerationPlanned(1, 3))
    phases.note(verdict)
    assert phases.seconds == {
        "starting": 5.0,
        "first verdict": 2.5,
        "verdicts": 4.0,
        "closing": 0.5,
        "planning": 2.0,
    }


def test_a_childs_memory_is_counted_under_its_command() -> None:
    script = "kept = bytearray(b'1') * (64 << 20); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        held = tree(os.getpid())
        child.communicate(b"\n")
    assert os.getpid() in held
    assert held[child.pid].command.endswith(script)
    assert 64 << 20 <= held[child.pid].anonymous <= held[child.pid].pss < 128 << 20
