"""A full disk pauses a run, wherever it is met; with room again the run goes on and finds what it would have found."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from graph.build import open_store
from graph.session import capture_target, find_summary
from tests.full_disks import Ballast, among_small_disks, mount, resize, unmount
from tests.graph.searching import (
    RUN,
    Ended,
    Order,
    Outcome,
    asked,
    outcome,
    prepare,
    search,
    settings_of,
    trials_of,
)
from tests.graph.test_run import command, environment
from tests.problems import module_text
from tools.problem import Captured
from tools.target import parse_target

CONTINUE = f"continue with `warpsmith resume {RUN}`"


@dataclass(frozen=True)
class Roomy:
    """A search that had room enough."""

    captured: Captured
    home: Path
    outcome: Outcome


@pytest.fixture(scope="module")
def roomy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Roomy]:
    home = tmp_path_factory.mktemp("roomy")
    (home / "scaled.py").write_text(module_text(64, 64))
    captured = capture_target(parse_target(str(home / "scaled.py")), settings_of(home))
    prepare(home, captured, None)
    assert search(Order(home)).code == 0
    yield Roomy(captured, home, outcome(home))


@dataclass(frozen=True)
class Paused:
    """What became of a search on a full disk, and once there was room."""

    first: Ended
    status: str
    """As `show` has it in between."""
    second: Ended
    outcome: Outcome
    asked: list[str]


def status_of(home: Path) -> str:
    settings = settings_of(home)
    with open_store(settings) as store:
        return find_summary(store.run(RUN), store, settings).status


def gone_on(first: Ended, order: Order) -> Paused:
    """Go on with what a full disk has ended."""
    status, second = status_of(order.home), search(order)
    return Paused(first, status, second, outcome(order.home), asked(order.desk))


def assert_paused_and_finished(found: Paused, roomy: Roomy) -> None:
    """Nothing was lost, and nothing was asked for twice but what was under way."""
    assert found.first.code == 4, found.first
    assert CONTINUE in found.first.error
    assert found.status in ("paused", "interrupted")
    assert found.second.code == 0, found.second
    assert found.outcome == roomy.outcome
    # The device is asked for two at once, and as many verdicts may wait to be stored meanwhile.
    assert len(found.asked) <= len(roomy.outcome.verdicts) + 4


@pytest.mark.parametrize(
    ("kib", "what"), [(60, "archive/chroma.sqlite3"), (205, "store.db"), (300, "checkpoints.db")]
)
def test_a_file_that_may_not_grow_pauses_the_run(tmp_path: Path, roomy: Roomy, kib: int, what: str) -> None:
    home = prepare(tmp_path / "home", roomy.captured, trials_of(roomy.home))
    found = gone_on(search(Order(home, file_bytes=kib << 10)), Order(home))
    assert_paused_and_finished(found, roomy)
    assert f"'{home}/{what}' could not be written" in found.first.error
    assert "`ulimit -f`" in found.first.error


# --- small disks ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scene:
    """A disk, and how much room is left on it when a search begins."""

    fresh: Path
    """The home of a run that nobody has worked on."""
    disk: Path
    kib: int
    out_kib: int | None = None
    """Size of another disk for the export."""

    @property
    def home(self) -> Path:
        return self.disk / "home"


def play(scenes: list[Scene]) -> list[Paused]:
    """Search on each disk until it is full, make room, and search on."""
    found = []
    for number, scene in enumerate(scenes):
        order = Order(scene.home, notes=scene.disk.parent / f"notes-{number}")
        order.desk.mkdir()
        mount(scene.disk, 20_000)
        shutil.copytree(scene.fresh, scene.home)
        ballast = Ballast(scene.disk, scene.kib)
        if scene.out_kib is not None:
            mount(scene.home / "out", scene.out_kib)
        first = search(order)
        ballast.throw_out()
        if scene.out_kib is not None:
            unmount(scene.home / "out")
        found.append(gone_on(first, order))
        unmount(scene.disk)
    return found


def test_a_full_disk_pauses_the_run_wherever_it_is_met(tmp_path: Path, roomy: Roomy) -> None:
    disk = tmp_path / "disk"

    def fresh(name: str, trials: Path | None) -> Path:
        return prepare(tmp_path / name, roomy.captured, trials, export_dir=disk / "home" / "out")

    drawn, undrawn = fresh("drawn", trials_of(roomy.home)), fresh("undrawn", None)
    scenes = {
        "archive": Scene(drawn, disk, 40),
        "trials": Scene(undrawn, disk, 800),
        "out": Scene(drawn, disk, 10_000, out_kib=8),
        "300": Scene(drawn, disk, 300),
        "700": Scene(drawn, disk, 700),
        "1200": Scene(drawn, disk, 1200),
    }
    found = dict(zip(scenes, among_small_disks(play, list(scenes.values())), strict=True))
    for one in found.values():
        assert_paused_and_finished(one, roomy)
    for what, full in (("archive", disk), ("trials", disk), ("out", disk / "home" / "out")):
        assert f"/{what}/" in found[what].first.error
        assert f"the disk at '{full}' is full (0.0 MiB free)" in found[what].first.error
    assert found["out"].status == "paused"


# --- the command line ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Commanded:
    """What the commands of a user with a full disk ended with."""

    begun: int
    said: str
    shown: str
    resumed: int
    """Of a resume whose messages went to a file on the disk that is full."""


def command_with_a_full_disk(folder: Path, disk: Path) -> Commanded:
    """Optimize, look, and resume without having made room."""
    mount(disk, 400)
    environ = {**environment(str(disk / "home")), "WARPSMITH_EXPORT_DIR": str(folder / "out")}
    begun = subprocess.run(
        command("optimize", "scaled.py", "--quiet"), cwd=folder, env=environ, capture_output=True, text=True
    )
    resize(disk, 2000)
    shown = subprocess.run(command("show", "scaled"), cwd=folder, env=environ, capture_output=True, text=True)
    Ballast(disk, 0)
    with (disk / "log").open("w") as log:
        resumed = subprocess.run(
            command("resume", "scaled", "--quiet"), cwd=folder, env=environ, stdout=log, stderr=log
        )
    return Commanded(begun.returncode, begun.stderr, shown.stdout, resumed.returncode)


def test_the_command_line_says_what_is_full_and_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "scaled.py").write_text(module_text(64, 64))
    disk = tmp_path / "disk"
    found = among_small_disks(command_with_a_full_disk, tmp_path, disk)
    assert (found.begun, found.resumed) == (4, 4)
    last = found.said.splitlines()[-1]
    assert re.fullmatch(
        rf"warpsmith: the disk at '{disk}' is full \(\d\.\d MiB free\): '{disk}/home/\S+' could not be written;"
        r" make room there, then continue with `warpsmith resume (scaled-\S+)`: it has lost nothing",
        last,
    ), found.said
    assert "Traceback" not in found.said
    assert "continue with: warpsmith resume scaled-" in found.shown
