"""A plan's steps captured once as a CUDA graph and replayed: one launch by the host instead of one a step.

Here: capture and replay over tensors that stay where they are. Not here: when a plan asks for it (`Program.replay`).
Invariant: what is timed is what an export does: inputs copied into the graph's own, the replay, results copied out.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tools.devices.cuda_plan import PlanRunner, Tensors


class Replayed:
    """One forward over fixed tensors as a CUDA graph."""

    def __init__(self, runner: PlanRunner, base: Tensors, results: Sequence[str]) -> None:
        """Runs the forward once and captures it; `base` must stay alive and in place.

        Raises: LibraryFault, DriverError or torch's own errors, where a step fails or cannot be captured.
        """
        here = torch.cuda.current_stream()
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(here)
        with torch.cuda.stream(side):
            # Libraries make handles and workspaces at their first call, which a capture may not.
            runner.forward(dict(base))
        here.wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        self._held = dict(base)
        with torch.cuda.graph(self._graph):
            runner.forward(self._held)
        self._results = {name: self._held[name] for name in results}

    def run(self) -> Tensors:
        """Replay on the current stream; the results are the graph's own and change with the next replay."""
        self._graph.replay()
        return self._results
