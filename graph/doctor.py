"""What this machine has, what that allows, and what to install: `warpsmith doctor`."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from rich.console import RenderableType
from rich.table import Table

from graph.folders import prepare_home
from graph.settings import Settings
from memory.errors import BadInput, WarpsmithError
from tools.clang_tidy import clang_tidy_version
from tools.machine import cuda_usable, gpus_present, host_compiler, nvrtc_summary, why_not_usable

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
        _home(settings),
        _gpu(),
        _program("ncu", "hardware counters: install NVIDIA Nsight Compute"),
        _program("compute-sanitizer", "memory and race checks on a GPU: install the CUDA toolkit"),
        clang_tidy_check(clang_tidy_version()),
        ray_check(ray_version()),
        _models(settings),
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


def _home(settings: Settings) -> Check:
    try:
        root = prepare_home(settings)
    except BadInput as error:
        return Check("home", True, False, str(error))
    free = shutil.disk_usage(root).free
    lacking = "" if free > LOW_DISK_BYTES else f"; make room: {LOW_DISK_BYTES >> 30} GB are needed"
    return Check("home", True, not lacking, f"{root}, {free / 1e9:.1f} GB free{lacking}")


def _gpu() -> Check:
    found = gpus_present()
    if found:
        lost = "" if cuda_usable() else f"; programs cannot run on it: {why_not_usable()}"
        return Check("GPU", False, cuda_usable(), ", ".join(found) + lost)
    return Check("GPU", False, False, "none: times are modelled by the simulator, not measured")


def clang_tidy_check(found: str | None) -> Check:
    """`found` is the installed version."""
    lost = (
        "not found; without it unset variables, bad array indices and the like in kernels are found only as they run: "
        "pip install 'warpsmith[analysis]'"
    )
    return Check("clang-tidy", False, found is not None, found or lost)


def ray_version() -> str | None:
    """Version of the installed Ray."""
    try:
        return version("ray")
    except PackageNotFoundError:
        return None


def ray_check(found: str | None) -> Check:
    """`found` is the installed version."""
    lost = "not installed; without it candidates are judged on one GPU of one machine: pip install 'warpsmith[ray]'"
    return Check("Ray", False, found is not None, found or lost)


def _program(name: str, lost: str) -> Check:
    path = shutil.which(name)
    return Check(name, False, path is not None, path or f"not found; without it no {lost}")


def _models(settings: Settings) -> Check:
    if settings.endpoint is None:
        return Check("language model", False, False, f"the agents work by rules ({settings.why_rules})")
    return Check("language model", False, True, settings.endpoint.base_url or "OpenAI")


def table(checks: list[Check]) -> RenderableType:
    """The checks as a table."""
    rows = Table("", "what", "detail", title="warpsmith doctor", title_justify="left")
    for check in checks:
        mark = "[green]yes[/green]" if check.found else ("[red]no[/red]" if check.needed else "[dim]no[/dim]")
        rows.add_row(mark, check.name, check.detail)
    return rows
