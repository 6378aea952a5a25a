"""Cases on their way into the cluster: each trial and each case is put into Ray's object store once.

Here: the side of the process that asks. Not here: what a trial's parcel holds (tools.parcel) or how an actor keeps it
(tools.ray_actor). References that are forgotten here are freed by Ray once no actor uses them.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import ray

from tools.case import Case
from tools.parcel import pack, relocated, trials_of
from tools.ray_actor import CaseTicket
from tools.trial import MANIFEST, Trial

TRIALS_KEPT = 32
"""Enough for the trials of a run and of a soak's next batches."""
CASES_KEPT = 4


class Dispatch:
    """Makes tickets; several threads may ask for the same case."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cases: list[tuple[Case, CaseTicket]] = []
        self._trials: OrderedDict[tuple[Path, int], tuple[str, Any]] = OrderedDict()

    def ticket(self, case: Case) -> CaseTicket:
        """What an actor needs to have the case. Raises: StoreError where a trial's files are damaged."""
        with self._lock:
            for known, ticket in self._cases:
                if known is case:
                    return ticket
            ticket = self._made(case)
            self._cases = [(case, ticket), *self._cases[: CASES_KEPT - 1]]
            return ticket

    def _made(self, case: Case) -> CaseTicket:
        sent = {trial.directory: self._sent(trial) for trial in trials_of(case)}
        body = pickle.dumps(relocated(case, lambda directory: Path(sent[directory][0])))
        key = hashlib.sha256(body).hexdigest()
        return CaseTicket(key, ray.put(body), dict(sent.values()))

    def _sent(self, trial: Trial) -> tuple[str, Any]:
        """Digest and reference of a trial; one that was drawn again on disk is sent again."""
        path = trial.directory / MANIFEST
        key = (trial.directory, path.stat().st_mtime_ns if path.exists() else 0)
        found = self._trials.get(key)
        if found is None:
            parcel = pack(trial)
            found = self._trials[key] = (parcel.digest, ray.put(parcel.files))
        self._trials.move_to_end(key)
        while len(self._trials) > TRIALS_KEPT:
            self._trials.popitem(last=False)
        return found
