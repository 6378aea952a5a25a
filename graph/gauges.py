"""What a run has used of what it may use, as a page shows it. Not here: who stops a run (graph.budget)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from graph.interrupts import descendants
from graph.session import checkpointed
from graph.settings import Settings, settings_from_run
from memory.records import Run
from memory.store import Store

_GIB = 1 << 30


@dataclass(frozen=True)
class Gauge:
    """One quantity; `used` and `cap` are in the unit that `text` names."""

    name: str
    used: float
    cap: float | None
    """None: no limit was set."""
    text: str
    note: str = ""
    """What has to be known to read it rightly."""

    @property
    def share(self) -> float | None:
        """Of the cap, from 0 to 1; None without one."""
        return None if not self.cap else min(self.used / self.cap, 1.0)


def gauges(
    run: Run, store: Store, settings: Settings, worker: int | None, *, judged: int
) -> tuple[Gauge, ...]:
    """Wall time, device seconds, evaluations, tokens, cost, and memory while a process is at work.

    judged: the run's candidates with a verdict; who asks for gauges has counted them.
    """
    kept = settings_from_run(run.settings)
    given = given_limits(worker) if worker is not None else {}
    wall_cap = given.get("--budget-s", kept.wall_s)
    state = checkpointed(run, settings)
    spent_s, first = (state.spent_s, state.first_evaluation) if state is not None else (0.0, 0)
    device_s = store.device_seconds(run.id, after=first)
    spend = store.spend(run.id)
    unpriced = f"{spend.unpriced} calls have no known price" if spend.unpriced else ""
    found = [
        Gauge("Wall time", spent_s, wall_cap, _of(f"{spent_s:,.0f} s", f"{wall_cap:,.0f} s"),
              "of searching, up to the last finished generation; over all resumes"),
        Gauge("Device", device_s, kept.device_budget_s,
              _of(f"{device_s:,.1f} s", _capped(kept.device_budget_s, "{:,.0f} s")),
              "of sanitizing, correctness trials and timing"),
        Gauge("Evaluations", judged, kept.max_evaluations,
              _of(f"{judged:,}", _capped(kept.max_evaluations, "{:,}"))),
        Gauge("Tokens", spend.tokens, kept.max_tokens,
              _of(f"{spend.tokens:,}", _capped(kept.max_tokens, "{:,}")),
              "" if spend.calls else "no language model was asked"),
        Gauge("Cost", spend.cost_usd, kept.max_cost_usd,
              _of(f"{spend.cost_usd:.4f} USD", _capped(kept.max_cost_usd, "{:.2f} USD")), unpriced),
    ]  # fmt: skip
    if worker is not None:
        used, total = memory_bytes(worker), machine_bytes()
        text = _of(f"{used / _GIB:.2f} GiB", f"{total / _GIB:.0f} GiB of this machine")
        found.append(Gauge("Memory", used, total, text, "of the process and all that it started; no limit"))
    return tuple(found)


def given_limits(pid: int) -> dict[str, float]:
    """Limits that a process was started with, by option; they win over the run's settings and are not kept in them."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return {}
    found: dict[str, float] = {}
    for option, value in pairwise(words):
        if option in ("--budget-s", "--generations"):
            try:
                found[option] = float(value)
            except ValueError:
                continue
    return found


def memory_bytes(pid: int) -> int:
    """Proportional share of memory of a process and all that it started: shared pages count once."""
    return sum(_pss(one) for one in (pid, *descendants(pid)))


def _pss(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    kib = next((line.split()[1] for line in text.splitlines() if line.startswith("Pss:")), "0")
    return int(kib) << 10


def machine_bytes() -> int:
    """Memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _of(used: str, cap: str) -> str:
    return f"{used} of {cap}" if cap else f"{used}, no limit"


def _capped(cap: float | None, form: str) -> str:
    return form.format(cap) if cap is not None else ""
