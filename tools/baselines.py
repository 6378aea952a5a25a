"""Baselines that a candidate is compared with: modelled where no GPU runs them, else measured."""

from __future__ import annotations

from memory.errors import BadInput
from memory.records import BaselineTime, Graph
from tools.devices.modelling import LIBRARY_BAND
from tools.devices.port import Baselines, CompileMode, Contest, Device, RacingDevice
from tools.evaluation import RACE_TRIALS, Case, Load
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


def measured_baselines(
    case: Case, device: Device, load: Load, modes: tuple[CompileMode, ...] = ()
) -> Baselines:
    """Times of eager PyTorch and of torch.compile's modes on the case's own inputs; those that fail are absent.

    Raises: BadInput on a device that does not run in real time; DeviceLost.
    """
    if not isinstance(device, RacingDevice):
        raise BadInput(f"{device.name} models times: nothing can be measured on it")
    data = [load(trial) for trial in case.trials[:RACE_TRIALS]]
    givens = tuple({**one.inputs, **one.state} for one in data)
    return device.baselines(Contest(case.problem.graph, givens), modes)
