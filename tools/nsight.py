"""Nsight Compute on one program: the chosen hardware counters of its kernels, or a typed reason why there are none.

Here: running `ncu` around a replay and understanding how it failed. Not here: the counters and their meaning
(tools.nsight_counters), its tables (tools.nsight_csv), what follows from them (tools.profiling).
Clocks are left alone and every pass starts with cold caches, so counters describe a first run; its times are
diagnostic and never enter a Timing.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memory.errors import ToolMissing
from memory.records import Problem, Program
from tools.binding import bind
from tools.nsight_counters import COUNTERS, chosen_metrics, count_kernels
from tools.nsight_csv import parse_csv
from tools.nsight_process import NCU, Tool, find_tool, run_tool, tool_environment
from tools.nsight_records import AbsenceReason, Counted, CountersAbsent, KernelCounters
from tools.replay import Place, Replayed, Subject, launches_of, replay_under

ATTEMPTS = 4
"""Runs of the profiler, each without the metrics that the one before did not know."""
_QUERY_DEADLINE_S = 60.0
_UNLISTED = ("launch__", "smsp__sass_", "sm__maximum_warps")
"""Metrics that `--query-metrics` does not list although they exist."""

_LOST = (
    "without counters a profile has event times, ptxas' figures and bytes estimated from shapes; DRAM traffic, cache"
    " hits, achieved occupancy and stall reasons stay unknown"
)
_COMPLAINTS: tuple[tuple[str, AbsenceReason, str], ...] = (
    (
        "ERR_NVGPUCTRPERM",
        "no_permission",
        "the driver lets only administrators read GPU counters (ERR_NVGPUCTRPERM): run as root or with"
        " CAP_SYS_ADMIN, or load the nvidia module with NVreg_RestrictProfilingToAdminUsers=0",
    ),
    (
        "LibraryNotLoaded",
        "no_driver_support",
        "the driver here does not serve the profiler (LibraryNotLoaded)",
    ),
    ("driver is not compatible", "no_driver_support", "the driver is too old for this Nsight Compute"),
    ("Profiling is not supported", "no_driver_support", "this device or driver cannot be profiled"),
    (
        "concurrently collecting profiling data",
        "busy",
        "another program holds the GPU's counters (DCGM, perhaps)",
    ),
    ("Resource is unavailable", "busy", "another program holds the GPU's counters (DCGM, perhaps)"),
)
"""What the tool prints, in order of precedence, the reason, and it in words."""
_UNKNOWN = re.compile(r"Failed to find metric (?:regex:\^?)?([\w.\\]+)")
_REFUSED = re.compile(r"Failed to access the following \d+ metrics?: ([^\n]+)")
_LISTED = re.compile(r'^"?([a-z0-9]+__[a-z0-9_]+)', re.MULTILINE)


@dataclass(frozen=True)
class NsightLimits:
    """How the profiler is run."""

    deadline_s: float = 240.0
    """Wall seconds for all attempts together."""
    launches: int = 64
    """Launches profiled; of a longer plan only the first ones, and sums are scaled up."""
    tool: Tool = NCU
    environ: Mapping[str, str] | None = None
    """None: the process' own."""


def profile_finalist(
    program: Program,
    problem: Problem,
    trial_dir: Path | None,
    spec: Place,
    limits: NsightLimits | None = None,
) -> Counted | CountersAbsent:
    """Count what one forward of a verified program does on the worker's GPU. Nobody else should use it meanwhile.

    trial_dir: a trial whose inputs and weights are used; None draws them.
    Raises: BindError for a program that does not fit the problem, as no verified one does.
    """
    limits = limits or NsightLimits()
    launches = launches_of(bind(program, problem))
    if spec.device.kind != "cuda":
        return _absent("no_gpu", f"{spec.device.name} has none")
    try:
        tool = find_tool(limits.tool, limits.environ)
    except ToolMissing as error:
        return _absent("no_tool", str(error))
    subject = Subject(program, problem, trial_dir, spec.device, spec.cache_dir)
    with tempfile.TemporaryDirectory(prefix="warpsmith-ncu-") as scratch:
        return _Profiler(tool, subject, limits, Path(scratch)).count(launches)


class _Profiler:
    """The attempts on one subject."""

    def __init__(self, tool: Path, subject: Subject, limits: NsightLimits, scratch: Path) -> None:
        self._tool = tool
        self._subject = subject
        self._limits = limits
        self._scratch = scratch
        self._environment = tool_environment(limits.environ)
        self._spent_s = 0.0
        self._unknown: set[str] = set()

    def count(self, launches: Mapping[str, int]) -> Counted | CountersAbsent:
        """Try until every metric asked for is known. launches: of one forward, by entry."""
        said = ""
        for attempt in range(ATTEMPTS):
            folder = self._scratch / str(attempt)
            folder.mkdir()
            replayed = self._attempt(folder)
            log = _read(folder / "log.txt")
            # A table counts, however the tool ended; without one its words say why.
            rows = [row for row in parse_csv(log) or parse_csv(replayed.ended.output) if row.values]
            if rows:
                return self._counted(count_kernels(rows, launches))
            said = replayed.ended.output + log
            if replayed.ended.returncode is None or self._spent_s >= self._limits.deadline_s:
                return _absent(
                    "timed_out", f"it was not done after {self._limits.deadline_s:.0f} s and was ended"
                )
            unknown = self._unknown_in(said)
            if not unknown:
                return _reason(replayed, said)
            self._unknown |= unknown if attempt else unknown | self._unlisted()
        return _absent(
            "failed", f"in {ATTEMPTS} attempts it named ever more unknown metrics: {_last_words(said)}"
        )

    def _attempt(self, folder: Path) -> Replayed:
        left_s = max(self._limits.deadline_s - self._spent_s, 1.0)
        options = {
            "--metrics": ",".join(chosen_metrics(self._unknown)),
            "--page": "raw",
            "--print-units": "base",
            "--log-file": str(folder / "log.txt"),
            "--target-processes": "application-only",
            "--profile-from-start": "off",
            "--launch-count": str(self._limits.launches),
            "--replay-mode": "kernel",
            "--cache-control": "all",
            "--clock-control": "none",
        }
        # No `--` before the program: ncu would take it for an option.
        command = [str(self._tool), "--csv", *(word for pair in options.items() for word in pair)]
        replayed = replay_under(
            command,
            self._subject,
            purpose="profile",
            environment=self._environment,
            deadline_s=left_s,
            folder=folder,
        )
        self._spent_s += replayed.ended.seconds
        return replayed

    def _counted(self, kernels: tuple[KernelCounters, ...]) -> Counted:
        found = {name for kernel in kernels for name in kernel.fields_counted}
        return Counted(
            device=self._subject.device.name,
            kernels=kernels,
            missing=tuple(counter.field for counter in COUNTERS if counter.field not in found),
            seconds=self._spent_s,
        )

    def _unknown_in(self, said: str) -> set[str]:
        """Metrics of ours that the tool says it does not have."""
        named = [name.replace("\\", "").rstrip(".") for name in _UNKNOWN.findall(said)]
        named += [name.strip() for names in _REFUSED.findall(said) for name in names.split(",")]
        asked = chosen_metrics(self._unknown)
        return {metric for metric in asked if any(metric == n or metric.startswith(f"{n}.") for n in named)}

    def _unlisted(self) -> set[str]:
        """Metrics that this chip has not, so that they need not be found out one attempt each; none where unclear."""
        folder = self._scratch / "query"
        folder.mkdir()
        listing = folder / "log.txt"
        command = [str(self._tool), "--query-metrics", "--log-file", str(listing)]
        ended = run_tool(command, environment=self._environment, deadline_s=_QUERY_DEADLINE_S, folder=folder)
        self._spent_s += ended.seconds
        listed = set(_LISTED.findall(_read(listing) + ended.output))
        if ended.returncode != 0 or not listed:
            return set()
        every = {metric for counter in COUNTERS for metric in counter.metrics}
        return {m for m in every if m.partition(".")[0] not in listed and not m.startswith(_UNLISTED)}


def _reason(replayed: Replayed, said: str) -> CountersAbsent:
    """Why a run left no table."""
    for words, reason, message in _COMPLAINTS:
        if words.lower() in said.lower():
            return _absent(reason, message)
    if replayed.failure is not None and replayed.report is not None:
        return _absent("failed", f"the program does not run in the profiled process: {replayed.failure}")
    if "No kernels were profiled" in said:
        return _absent("no_kernels", "it saw no kernel of this program")
    return _absent("failed", f"it ended with status {replayed.ended.returncode}: {_last_words(said)}")


def _absent(reason: AbsenceReason, message: str) -> CountersAbsent:
    return CountersAbsent(
        reason=reason, message=f"no hardware counters from Nsight Compute: {message}; {_LOST}"
    )


def _last_words(said: str) -> str:
    """The tool's own errors, or the last line of what was printed."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "==ERROR==" in line]
    return " ".join(errors[-3:] or lines[-1:])[:600] or "it printed nothing"


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return ""
