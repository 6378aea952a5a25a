"""Judges a program from outside a run: `warpsmith verify`."""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path

from pydantic import ValidationError

from graph.build import open_pool
from graph.casework import Bench, prepare_case
from graph.folders import prepare_home
from graph.settings import Settings
from memory.errors import BadInput, WarpsmithError
from memory.records import Evaluation, Program, Target
from tools.problem import capture
from tools.worker import EvaluationJob


def read_program(path: Path) -> Program:
    """A Program from its JSON file. Raises BadInput naming the file and the first field that is wrong."""
    try:
        return Program.model_validate_json(path.read_bytes())
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise BadInput(f"{path}: {place}: {first['msg']}; see docs/program.md for the format") from error


def judge_file(path: Path, target: Target, settings: Settings) -> Evaluation:
    """The verdict on a program file for a target, with fresh hidden seeds."""
    program = read_program(path)
    prepare_home(settings)
    captured = capture(target, deadline_s=settings.capture_deadline_s, reduce_above=settings.verify_elements)
    with (
        tempfile.TemporaryDirectory(prefix="warpsmith-") as folder,
        open_pool(settings) as pool,
    ):
        bench = Bench(
            problem=captured.problem,
            twin=captured.reduced or captured.problem,
            policy=settings.policy,
            device=settings.device_spec,
            directory=Path(folder),
            deadline_s=settings.capture_deadline_s,
            seeds=lambda index, purpose: secrets.randbits(48),  # noqa: ARG005
        )
        evaluation = pool.evaluate(EvaluationJob(program, prepare_case(bench, pool)))
    if evaluation is None:
        raise WarpsmithError("the pool gave no verdict")
    return evaluation
