"""One GPU as this process owns it: the context's health, uploads that stay, and failures turned into faults.

Invariant: after an error that poisons the context, DeviceLost is raised and nothing more is attempted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from memory.records import Stage, Status
from tools.devices.cuda_driver import CubinLoader, DriverError, Launcher, describe_gpu, set_up_context
from tools.devices.cuda_memory import UploadCache
from tools.devices.faults import fault
from tools.devices.library import LibraryFault
from tools.devices.port import DeviceLost, Fault

UPLOAD_FRACTION = 0.1
"""Share of the GPU's memory that uploads may keep for the next candidate."""
MAX_UPLOAD_BYTES = 8 << 30
"""Their host arrays are kept as long; large ones are memory-mapped files."""

_T = TypeVar("_T")


class CudaContext:
    """A GPU made current for this process."""

    def __init__(self, index: int, *, tf32: bool | None) -> None:
        """Raises: ToolMissing without a driver, a GPU or a torch that can use it."""
        self.name, self.gpu = describe_gpu(index)
        set_up_context(index)
        if tf32 is not None:
            torch.set_float32_matmul_precision("high" if tf32 else "highest")
            torch.backends.cudnn.allow_tf32 = tf32
        self.index = index
        self.device = torch.device("cuda", index)
        self.launcher = Launcher(index)
        self.cubins = CubinLoader(index)
        self.uploads = UploadCache(
            self.device, min(MAX_UPLOAD_BYTES, int(self.gpu.memory_bytes * UPLOAD_FRACTION))
        )

    def guarded(self, work: Callable[[], _T], stage: Stage) -> _T | Fault:
        """Do work on the device and wait for it; what goes wrong is the candidate's fault.

        Raises: DeviceLost where the context is beyond use.
        """
        found: Fault
        try:
            done = work()
            torch.cuda.synchronize(self.index)
            return done
        except torch.OutOfMemoryError as error:
            found = fault(Status.OUT_OF_MEMORY, stage, "out_of_memory", f"{self.name}: {_first_line(error)}")
        except LibraryFault as error:
            kind = Status.RUNTIME_ERROR
            if isinstance(error.__cause__, torch.OutOfMemoryError):
                kind = Status.OUT_OF_MEMORY
            found = fault(kind, Stage.CORRECTNESS, "library_call", str(error))
        except (DriverError, torch.AcceleratorError) as error:
            found = fault(Status.RUNTIME_ERROR, stage, "launch", _first_line(error))
        self._check_health(stage)
        if found.status is Status.OUT_OF_MEMORY:
            self.uploads.clear()
            torch.cuda.empty_cache()
        return found

    def _check_health(self, stage: Stage) -> None:
        try:
            torch.cuda.synchronize(self.index)
        except RuntimeError as error:
            message = f"the program broke its CUDA context: {_first_line(error)}"
            raise DeviceLost(fault(Status.RUNTIME_ERROR, stage, "device_error", message)) from error


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
