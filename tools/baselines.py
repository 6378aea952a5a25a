"""Baselines that a candidate is compared with."""

from __future__ import annotations

from memory.records import BaselineTime, Graph
from tools.devices.modelling import LIBRARY_BAND
from tools.gpus import GpuSpec
from tools.roofline import StepTime, node_time, timeline_us


def modelled_eager(graph: Graph, gpu: GpuSpec) -> BaselineTime:
    """Eager PyTorch's modelled time: one library call for each captured operation, with the library's band."""
    times = [node_time(node, graph, gpu) for node in graph.nodes]

    def scaled(factor: float) -> float:
        return timeline_us(StepTime(t.device_us * factor, t.host_us) for t in times)

    return BaselineTime(
        name="eager", median_us=scaled(1.0), low_us=scaled(1 / LIBRARY_BAND), high_us=scaled(LIBRARY_BAND)
    )
