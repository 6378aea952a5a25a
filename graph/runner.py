"""Works on runs in processes of their own, which outlive whoever started them.

Here: starting, finding and interrupting such a process. Not here: the work itself (graph.session).
Invariants: one process works on a run, for the run's lock says so; what is asked to stop loses nothing, for it is
interrupted as Ctrl-C would (graph.interrupts), and the run can be resumed. Covers: a starter that dies at any moment, a
process that has not taken the lock yet. Does not cover: processes of other machines on a shared folder.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from graph.build import store_path
from graph.folders import write_whole
from graph.settings import Settings
from memory.errors import BadInput, WarpsmithError
from memory.lock import RunLock

_ROOT = Path(__file__).resolve().parents[1]
_BOOT = """
import os, signal, sys
child = os.fork()
if child:
    os.write(1, str(child).encode())
    os._exit(0)
os.dup2(2, 1)
signal.pthread_sigmask(signal.SIG_SETMASK, ())
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, sys.argv.pop(1))
try:
    from graph.cli import main
    main()
except KeyboardInterrupt:
    sys.exit("warpsmith: interrupted before the work began")
"""
"""The work is nobody's child, so that nobody has to wait for it; interrupts reach it whatever its starter ignored."""
_HEADER = "--- "
_POLL_S = 0.05
_REPEAT_S = 2.0


@dataclass(frozen=True)
class Answer:
    """A person's word on a winner that waits for review."""

    approve: bool
    note: str = ""


class Runner:
    """Starts and stops the work on runs of one home."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def start(
        self,
        run_id: str,
        *,
        answer: Answer | None = None,
        wall_s: float | None = None,
        generations: int | None = None,
    ) -> int:
        """Continue a run in a process of its own; returns its pid.

        wall_s, generations: new limits of the search, over all resumes.
        Raises: BadInput where the run is being worked on; WarpsmithError where no process can be started.
        """
        arguments = ["resume", run_id]
        if answer is not None:
            arguments += ["--approve" if answer.approve else "--reject", f"--note={answer.note}"]
        if wall_s is not None:
            arguments += ["--budget-s", repr(wall_s)]
        if generations is not None:
            arguments += ["--generations", str(generations)]
        return self._begin(run_id, arguments)

    def roll_back(self, run_id: str, candidate: str, note: str = "") -> int:
        """Put an earlier winner into the winner's place, in a process of its own; returns its pid.

        The process itself refuses what cannot be done (`graph.session.rollback_target` says so beforehand).
        Raises: BadInput where the run is being worked on; WarpsmithError where no process can be started.
        """
        return self._begin(run_id, ["rollback", run_id, candidate, f"--note={note}"])

    def _begin(self, run_id: str, arguments: list[str]) -> int:
        if (pid := self.worker(run_id)) is not None:
            raise BadInput(f"run {run_id} is being worked on by process {pid}; stop it first, or wait for it")
        log = self.log_path(run_id)
        log.parent.mkdir(parents=True, exist_ok=True)
        pid = _start([*arguments, "--home", str(self._settings.root), "--quiet"], log)
        write_whole(self._started_path(run_id), json.dumps({"pid": pid, "born": _born(pid)}))
        return pid

    def worker(self, run_id: str) -> int | None:
        """Pid of the process that works on a run, or was started for it and will soon; None where there is none."""
        holder = RunLock(store_path(self._settings), run_id).holder()
        return holder if holder is not None else self._starting(run_id)

    def stop(self, run_id: str, *, timeout_s: float = 20.0) -> bool:
        """Interrupt the work on a run and wait until it has ended; False where nobody was working on it.

        Raises: BadInput where this very process works on it; WarpsmithError where it goes on after `timeout_s`, or is
        another user's.
        """
        deadline = time.monotonic() + timeout_s
        found, asked_at = False, -_REPEAT_S
        while (pid := self.worker(run_id)) is not None:
            now = time.monotonic()
            if pid == os.getpid():
                raise BadInput(f"run {run_id} is being worked on by this process itself; interrupt it there")
            if now > deadline:
                raise WarpsmithError(
                    f"process {pid} still works on run {run_id} {timeout_s:g} s after it was interrupted; try again, or"
                    f" end it with `kill {pid}`: a resumed run loses no verdict"
                )
            found = True
            if now - asked_at >= _REPEAT_S:  # an interrupt that strikes during an import may get lost
                asked_at = now
                _interrupt(pid, run_id)
            time.sleep(_POLL_S)
        return found

    def log_path(self, run_id: str) -> Path:
        """What the processes that worked on a run printed; kept beside the run's other files."""
        return self._settings.root / "runs" / run_id / "work.log"

    def last_words(self, run_id: str, *, limit: int = 600) -> str:
        """What the last process printed, its end first to be kept; empty where it said nothing."""
        try:
            text = self.log_path(run_id).read_text(errors="replace")
        except OSError:
            return ""
        said = text.rpartition(f"\n{_HEADER}")[2].partition("\n")[2].strip()
        return said if len(said) <= limit else f"… {said[-limit:]}"

    def _starting(self, run_id: str) -> int | None:
        """Pid of the process started for a run, while it lives."""
        try:
            record = json.loads(self._started_path(run_id).read_text())
            pid, born = int(record["pid"]), record["born"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        # A pid alone may be another process's by now.
        return pid if born is not None and _born(pid) == born else None

    def _started_path(self, run_id: str) -> Path:
        return self._settings.root / "runs" / run_id / "work.json"


def _start(arguments: list[str], log: Path) -> int:
    with log.open("ab") as stream:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        stream.write(f"\n{_HEADER}{at} warpsmith {' '.join(arguments)!s:.300}\n".encode())
        stream.flush()
        done = subprocess.run(
            [sys.executable, "-P", "-c", _BOOT, str(_ROOT), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stream,
            start_new_session=True,
            timeout=60,
            check=False,
        )
    if done.returncode != 0 or not done.stdout.isdigit():
        raise WarpsmithError(f"cannot start a process (exit code {done.returncode}); see {log}")
    return int(done.stdout)


def _interrupt(pid: int, run_id: str) -> None:
    try:
        os.kill(pid, signal.SIGINT)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise WarpsmithError(
            f"process {pid}, which works on run {run_id}, belongs to another user; ask them to stop it"
        ) from error


def _born(pid: int) -> str | None:
    """When a process began, in the kernel's ticks; None where it has ended, a zombie included."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]
