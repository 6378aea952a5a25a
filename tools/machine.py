"""What this machine has: GPUs, a host compiler, NVRTC. For `warpsmith doctor`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from tempfile import gettempdir

import torch

from memory.errors import ToolMissing
from tools.devices.cuda_driver import why_no_gpu
from tools.nvrtc_toolkit import find_toolkit
from tools.simulator.toolchain import Toolchain


def gpus_present() -> tuple[str, ...]:
    """Names of the NVIDIA GPUs that the driver reports; empty without a driver."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    command = [tool, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return tuple(line.strip() for line in answer.stdout.splitlines()) if answer.returncode == 0 else ()


def cuda_usable() -> bool:
    """True where torch can run on a GPU of this machine."""
    return torch.cuda.is_available()


def why_not_usable() -> str:
    """Why torch cannot use the GPU that is there, and what to do."""
    try:
        return why_no_gpu()
    except ToolMissing as error:
        return str(error)


def host_compiler() -> str:
    """Version of the host's C++ compiler. Raises ToolMissing with the remedy."""
    return Toolchain(Path(gettempdir()), "g++", 20.0).version


def nvrtc_summary() -> str:
    """NVRTC's version, newest architecture and headers. Raises ToolMissing with the remedy."""
    toolkit = find_toolkit()
    return f"{toolkit.version[0]}.{toolkit.version[1]}, architectures up to {toolkit.archs[-1]}"
