"""Records what the verifier says of every situation: python -m benchmarks.agents.record [NAME ...]

Runs the real verifier on the simulator and writes `recorded/<name>.json`. What is as it was, apart from the wall
times, is not written again.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
from importlib.metadata import version
from pathlib import Path

from benchmarks.agents.problems import case_of
from benchmarks.agents.situation import Situation
from benchmarks.agents.situations import SITUATIONS
from memory.records import Evaluation, Problem, Program, Record
from tools.devices.build import DeviceSpec, open_device
from tools.devices.port import Device
from tools.evaluation import evaluate
from tools.gpus import gpu_named

RECORDED = Path(__file__).parent / "recorded"
GPU = "h200"
"""What the simulator stands for."""
VERSIONED = ("cuda-core", "nvidia-cuda-nvrtc", "torch", "warpsmith")


class Recording(Record):
    """One situation with its verdict."""

    name: str
    flaw: str
    problem: Problem
    twin: Problem | None
    program: Program
    evaluation: Evaluation
    date: str
    versions: dict[str, str]
    """Of what decides the words and numbers."""

    def says_the_same(self, other: Recording) -> bool:
        """Whether both record one verdict, whenever and how fast it was found."""
        return self._lasting() == other._lasting()

    def _lasting(self) -> Recording:
        still = self.evaluation.model_copy(update={"seconds": {}})
        return self.model_copy(update={"evaluation": still, "date": ""})


def judged(situation: Situation, device: Device, folder: Path) -> Evaluation:
    """The verdict on a situation's program now. Trials lie under `folder`."""
    return evaluate(
        situation.program, case_of(situation.problem, situation.twin, gpu_named(GPU), folder), device
    )


def recording_of(situation: Situation, evaluation: Evaluation) -> Recording:
    """A verdict as it is kept."""
    return Recording(
        name=situation.name,
        flaw=situation.flaw,
        problem=situation.problem,
        twin=situation.twin,
        program=situation.program,
        evaluation=evaluation,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        versions={name: version(name) for name in VERSIONED},
    )


def read(name: str, folder: Path = RECORDED) -> Recording:
    """A situation's recording. Raises OSError or ValidationError where there is none that can be read."""
    return Recording.model_validate_json((folder / f"{name}.json").read_bytes())


def keep(recording: Recording, folder: Path = RECORDED) -> bool:
    """Write a recording unless one that says the same is there; whether it was written."""
    path = folder / f"{recording.name}.json"
    if path.exists():
        try:
            if read(recording.name, folder).says_the_same(recording):
                return False
        except ValueError:
            # Of an older form of the records: written anew.
            pass
    path.parent.mkdir(exist_ok=True)
    path.write_text(recording.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return True


def main() -> None:
    """Record the situations named, or all of them, and remove recordings of none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="situations; all where none is named")
    names = parser.parse_args().names or list(SITUATIONS)
    if unknown := sorted(set(names) - set(SITUATIONS)):
        parser.error(f"no situation {unknown[0]!r}; there are {', '.join(SITUATIONS)}")
    for stale in set(RECORDED.glob("*.json")) - {RECORDED / f"{name}.json" for name in SITUATIONS}:
        stale.unlink()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with open_device(DeviceSpec("simulator", GPU), folder / "cache") as device:
            for name in names:
                evaluation = judged(SITUATIONS[name], device, folder / name)
                written = keep(recording_of(SITUATIONS[name], evaluation))
                print(f"{name}: {evaluation.status.value}, {'written' if written else 'as it was'}")  # noqa: T201


if __name__ == "__main__":
    main()
