"""Models every module of the suite in this process and prints one JSON line each: tests start one process for all.

Run as `python -m tests.tools.suite_times FILE...`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import torch

from tests.tools.recipes.subjects import problem_of
from tools.baselines import modelled_eager
from tools.binding import bind
from tools.capture_child import build
from tools.devices.modelling import model_plan
from tools.gpus import gpu_named
from tools.graph_capture import to_graph
from tools.graph_export import export
from tools.recipes.blueprints import blueprints
from tools.recipes.blueprints import build as build_program
from tools.roofline import demand, eager_times, floor_us
from tools.target import parse_target
from tools.user_module import load, seed_everything

H200 = gpu_named("h200")


def times(path: str) -> dict[str, object]:
    """Modelled times of one file, in µs, and what they are held against."""
    seed_everything(0)
    target = parse_target(path)
    example = build(load(target, lambda _: None))
    graph = to_graph(export(example.user, example.module, example.inputs), path)
    problem = problem_of(graph, training=example.module.training)
    library = build_program(problem, blueprints(problem)[-1])
    return {
        "path": path,
        "eager_us": modelled_eager(graph, H200).median_us,
        "work_us": demand(eager_times(graph, replace(H200, launch_us=0.0))).device_us,
        "library_us": model_plan(bind(library, problem), {}, {}, H200).median_us,
        "floor_us": floor_us(problem.work, problem.dtype, H200),
    }


def main() -> None:
    """Model every file named on the command line."""
    torch.set_num_threads(1)
    for path in sys.argv[1:]:
        sys.stdout.write(json.dumps(times(path)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
