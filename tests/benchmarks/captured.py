"""Captures files of the suite one after another in this process and prints what was found, one JSON line each.

Run as `python -m tests.benchmarks.captured FILE...`: a capture's child process costs seconds to start and a capture
itself a fraction of one, so the suite's test starts one process for all.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence

import torch

from memory.records import Graph
from tools.capture_child import build
from tools.graph_capture import to_graph
from tools.graph_export import export
from tools.target import parse_target
from tools.user_module import load, seed_everything


def found(path: str) -> dict[str, object]:
    """Shapes, number of parameters and operations of one file, on fake tensors."""
    seed_everything(0)
    user = load(parse_target(path), lambda _: None)
    example = build(user)
    parameters = sum(p.numel() for p in example.module.parameters())
    graph = to_graph(export(user, example.module, example.inputs), path)
    return {
        "init_inputs": user.module.get_init_inputs(),
        "inputs": _specs(graph, graph.inputs),
        "outputs": _specs(graph, graph.outputs),
        "parameters": parameters,
        "aten": dict(Counter(node.op for node in graph.nodes)),
    }


def _specs(graph: Graph, names: Sequence[str]) -> list[object]:
    return [[list(graph.values[name].shape), graph.values[name].dtype.value] for name in names]


def main() -> None:
    """Capture every file named on the command line."""
    torch.set_num_threads(1)
    for path in sys.argv[1:]:
        sys.stdout.write(json.dumps(found(path)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
