"""How far are modelled times from measured ones? Runs on a machine with a GPU: python -m benchmarks.check_model --out F

Every blueprint of every module in benchmarks.problems is modelled by the simulator, exported, imported, compared with
the module in float64 and timed: cold L2, CUDA events, interleaved with eager, medians. Errors and losses are kept.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import torch

from benchmarks.problems import modules
from memory.records import Problem, Program
from tools.baselines import modelled_eager
from tools.binding import bind
from tools.devices.build import DeviceSpec, open_device
from tools.devices.port import Device, Measured
from tools.export import ExportReport, export_module, write_export
from tools.problem import capture, parse_target
from tools.recipes.blueprints import FusionLevel, blueprints, build

ROUNDS = 30
FLUSH_BYTES = 256 << 20


def machine_line() -> str:
    """GPU, driver, torch and CUDA versions."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    return f"{gpu}, torch {torch.__version__}, CUDA {torch.version.cuda}"


def time_pair(first: Callable[[], object], second: Callable[[], object]) -> tuple[list[float], list[float]]:
    """Interleaved device times of two callables in µs, the L2 flushed before each."""
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(3):
        first(), second()
    for _ in range(ROUNDS):
        for run, kept in zip((first, second), times, strict=True):
            flush.zero_()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            start.record()
            run()
            end.record()
            torch.cuda.synchronize()
            kept.append(start.elapsed_time(end) * 1e3)
    return times


@contextmanager
def imported(text: str, folder: Path) -> Iterator[ModuleType]:
    """An export as a module."""
    path = folder / f"export_{time.time_ns()}.py"
    write_export(path, text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module


def report_of(problem: Problem) -> ExportReport:
    """A report that claims nothing."""
    return ExportReport(
        device="simulator:h200", arch="sm_90a", time_source="modelled", best_us=1.0, baseline_us=1.0, floor_us=1.0,
        trials=0, verified_shapes={n: problem.graph.values[n].shape for n in problem.graph.inputs},
        full_shape_trials=0, relative_tolerance=1e-6, eager_factor=2.0, distributions=(), idea="a benchmark",
        versions={}, created="", run_id="benchmark", candidate_id="benchmark",
    )  # fmt: skip


def error_of(out: torch.Tensor, oracle: torch.Tensor) -> float:
    """Largest |out - oracle| / max(|oracle|, rms(oracle))."""
    difference = (out.double() - oracle).abs()
    rms = oracle.square().mean().sqrt()
    return float((difference / torch.maximum(oracle.abs(), rms)).max())


def measure(problem: Problem, program: Program, folder: Path) -> dict[str, object]:
    """Measured µs of the export and of eager, with both errors against float64."""
    with imported(export_module(problem, program, report_of(problem)), folder) as module, torch.no_grad():
        torch.manual_seed(0)
        new = module.ModelNew(*module.get_init_inputs()).cuda()
        old = module.Model(*module.get_init_inputs()).cuda()
        old.load_state_dict(new.state_dict())
        inputs = [t.cuda() for t in module.get_inputs()]
        result = new(*inputs)
        if new.warpsmith_fallback_reason:
            return {"fallback": new.warpsmith_fallback_reason}
        oracle = module.Model(*module.get_init_inputs()).cuda()
        oracle.load_state_dict(new.state_dict())
        truth = oracle.double()(*[t.double() for t in inputs])
        errors = {"error": error_of(result, truth), "eager_error": error_of(old(*inputs), truth)}
        del truth
        ours, eager = time_pair(lambda: new(*inputs), lambda: old(*inputs))
    return {"ours_us": statistics.median(ours), "eager_us": statistics.median(eager), **errors}


def check(name: str, text: str, device: Device, folder: Path) -> Iterator[dict[str, object]]:
    """One row for each blueprint of a module."""
    path = folder / f"{name}.py"
    path.write_text(text)
    problem = capture(parse_target(str(path))).problem
    eager = modelled_eager(problem.graph, device.gpu)
    for way in blueprints(problem):
        program = build(problem, way)
        modelled = device.measure(bind(program, problem))
        row: dict[str, object] = {"module": name, "blueprint": way.name, "modelled_eager_us": eager.median_us}
        if isinstance(modelled, Measured):
            row |= {
                "modelled_us": modelled.median_us,
                "limiter": modelled.steps[0].limiter if modelled.steps else "",
            }
        else:
            row |= {"fault": [d.message for d in modelled.diagnostics]}
        if way.fusion is not FusionLevel.LIBRARY_ONLY:
            row |= measure(problem, program, folder)
        yield row


def main() -> None:
    """Write one JSON file with the machine's line and a row for each module and blueprint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", help="a module's name")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with open_device(DeviceSpec("simulator", "h200"), folder / "cache") as device:
            for name, text in modules().items():
                if options.only in (None, name):
                    for row in check(name, text, device, folder):
                        print(json.dumps(row), flush=True)  # noqa: T201
                        rows.append(row)
                    options.out.write_text(json.dumps({"machine": machine_line(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
