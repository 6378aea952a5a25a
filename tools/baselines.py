"""Baselines that a candidate is compared with: modelled where no GPU runs them, else measured."""

from __future__ import annotations

from dataclasses import replace

from memory.errors import BadInput, OutOfDeviceMemory
from memory.records import BaselineTime, Graph
from tools.case import Case, Load
from tools.device_trials import DeviceTrials
from tools.devices.modelling import LIBRARY_BAND
from tools.devices.port import Baselines, CompileMode, Contest, Device, DrawingDevice, RacingDevice
from tools.gpus import GpuSpec
from tools.racing import race_sets
from tools.roofline import StepTime, eager_times, timeline_us


def modelled_eager(graph: Graph, gpu: GpuSpec) -> BaselineTime:
    """Eager PyTorch's modelled time: one library call for each captured operation, with the library's band."""
    times = eager_times(graph, gpu)

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
    why = _untrusted(case, device, load)
    if case.drawn and why is not None:
        return Baselines((), {}, untrusted=why)
    try:
        _try_oracle(case, device, load)
        found = device.baselines(Contest(case.problem.graph, race_sets(case, device, load)), modes)
    except OutOfDeviceMemory as error:
        return Baselines((), {"eager": str(error)}, out_of_memory=True)
    return replace(found, untrusted=why)


def _try_oracle(case: Case, device: Device, load: Load) -> None:
    """One full-size trial and its answers. Raises: OutOfDeviceMemory."""
    if case.drawn and isinstance(device, DrawingDevice):
        maker = case.drawer(device)
        maker.answers(maker.draw(case.drawn[0], load(case.drawn[0].base)))


def _untrusted(case: Case, device: Device, load: Load) -> str | None:
    """Why the captured graph is no oracle on this device: it must agree with the module on every trial so far."""
    if not isinstance(device, DrawingDevice):
        return f"{device.name} draws no trials"
    maker = DeviceTrials(case.twin.graph, device.place, device.upload)
    return next(filter(None, (maker.disagreement(load(trial)) for trial in case.trials)), None)
