"""What this machine has, what that allows, and what to install: `warpsmith doctor`."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from graph.settings import Settings
from memory.errors import WarpsmithError
from tools.machine import cuda_usable, gpus_present, host_compiler, nvrtc_summary

LOW_DISK_BYTES = 2 << 30


@dataclass(frozen=True)
class Check:
    """One thing looked for."""

    name: str
    needed: bool
    """Without it Warpsmith does not work; otherwise something is lost."""
    found: bool
    detail: str
    """What was found, or what is lost and what to install."""


def examine(settings: Settings) -> list[Check]:
    """Look at everything Warpsmith uses."""
    return [
        _python(),
        _package("torch"),
        _attempt("g++", host_compiler, "the simulator cannot run kernels: apt-get install g++"),
        _attempt("NVRTC", nvrtc_summary, "nothing can be compiled: pip install nvidia-cuda-nvrtc"),
        _home(settings.root),
        _gpu(),
        _program("ncu", "hardware counters: install NVIDIA Nsight Compute"),
        _program("compute-sanitizer", "memory and race checks on a GPU: install the CUDA toolkit"),
        _model_key(),
    ]


def _python() -> Check:
    fits = (3, 11) <= sys.version_info[:2] <= (3, 13)
    return Check("Python", True, fits, f"{platform.python_version()}; 3.11 to 3.13 are supported")


def _package(name: str) -> Check:
    try:
        return Check(name, True, True, version(name))
    except PackageNotFoundError:
        return Check(name, True, False, f"not installed: pip install {name}")


def _attempt(name: str, look: Callable[[], str], lost: str) -> Check:
    try:
        return Check(name, True, True, look())
    except WarpsmithError as error:
        return Check(name, True, False, f"{lost} ({error})")


def _home(root: Path) -> Check:
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return Check(
            "home", True, False, f"{root}: {error.strerror}; choose another with --home or WARPSMITH_HOME"
        )
    free = shutil.disk_usage(root).free
    writable = os.access(root, os.W_OK)
    detail = f"{root}, {free / 1e9:.0f} GB free"
    return Check(
        "home", True, writable and free > LOW_DISK_BYTES, detail if writable else f"{root} is not writable"
    )


def _gpu() -> Check:
    found = gpus_present()
    if found:
        lost = "" if cuda_usable() else "; torch cannot use it: install a CUDA build of torch"
        return Check("GPU", False, cuda_usable(), ", ".join(found) + lost)
    return Check("GPU", False, False, "none: times are modelled by the simulator, not measured")


def _program(name: str, lost: str) -> Check:
    path = shutil.which(name)
    return Check(name, False, path is not None, path or f"not found; without it no {lost}")


def _model_key() -> Check:
    return Check("language model", False, False, "not used by this version: the agents work by rules")


def table(checks: list[Check]) -> RenderableType:
    """The checks as a table."""
    rows = Table("", "what", "detail", title="warpsmith doctor", title_justify="left")
    for check in checks:
        mark = "[green]yes[/green]" if check.found else ("[red]no[/red]" if check.needed else "[dim]no[/dim]")
        rows.add_row(mark, check.name, check.detail)
    return rows
