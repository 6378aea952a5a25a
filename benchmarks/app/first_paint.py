"""How long each page of the app takes to show something, in a real Chromium, over a home with much in it.

`python -m benchmarks.app.first_paint HOME [--make 20000] [--visits 5] [--out FILE]`

--make fills an empty home by a synthetic search first (benchmarks.scale.synthetic: 20,000 candidates take minutes, and
their verdicts are made up); `python -m benchmarks.archive.scale HOME/archive --entries 10000` adds innovations.
Measured from the address to the page's first words below its title ("painted"), and to the end of its script
("whole"), each visit in a browser context of its own, so that nothing is cached, and once more in it; the first visit
of a page is told apart, since the server opens the store and the archive for whoever comes first. Exit status 1 where
a median of "painted" is above 2 s.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, BrowserContext, sync_playwright

from benchmarks.scale.measure import measure
from graph.bench import machine_line
from graph.bench_records import write_output
from graph.build import open_store
from graph.settings import resolve_settings

LIMIT_S = 2.0
_UP_S = 60.0
_TIMEOUT_MS = 60_000
_ROOT = Path(__file__).resolve().parents[2]
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
_PAINTED = """() => {
  const main = document.querySelector('[data-testid=stMain]');
  if (!main) return false;
  const said = [...main.querySelectorAll('[data-testid=stElementContainer]')].filter(e => e.innerText.trim());
  return said.length > 1;
}"""
"""The title and one more element have words."""
_WHOLE = """() => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'"""


@dataclass(frozen=True)
class Visits:
    """Seconds of one page's visits; medians are of those after the first."""

    page: str
    first_painted: float
    first_whole: float
    painted: float
    whole: float
    slowest_painted: float
    cached_painted: float
    """Median for a browser that has the app's scripts already."""
    cached_whole: float


def pages(home: Path) -> list[str]:
    """Every page, and those that show a run with the newest one."""
    with open_store(resolve_settings(home=home)) as store:
        run = store.latest_run()
    named = (
        [f"{page}?run={run.id}" for page in ("runs", "lineage", "traces", "review", "export")] if run else []
    )
    return ["chat", "runs", "lineage", "traces", "review", "archive", "export", *named]


def visits(url: str, page: str, count: int, browser: Browser) -> Visits:
    """Look at a page so many times, once at least after the first."""
    first, *later = (_visit(f"{url}/{page}", browser) for _ in range(max(count, 1) + 1))
    painted, whole, cached_painted, cached_whole = ([one[at] for one in later] for at in range(len(first)))
    return Visits(
        page, first[0], first[1], _median(painted), _median(whole), max(painted), _median(cached_painted),
        _median(cached_whole),
    )  # fmt: skip


def _visit(url: str, browser: Browser) -> tuple[float, float, float, float]:
    """Seconds until the page is painted and whole, in a browser without anything cached and then again."""
    with closing(browser.new_context(viewport={"width": 1280, "height": 900})) as context:
        return (*_look(url, context), *_look(url, context))


def _look(url: str, context: BrowserContext) -> tuple[float, float]:
    with closing(context.new_page()) as tab:
        began = time.perf_counter()
        tab.goto(url, wait_until="commit")
        tab.wait_for_function(_PAINTED, timeout=_TIMEOUT_MS)
        painted = time.perf_counter() - began
        tab.wait_for_function(_WHOLE, timeout=_TIMEOUT_MS)
        return round(painted, 2), round(time.perf_counter() - began, 2)


def _median(seconds: list[float]) -> float:
    return round(median(seconds), 2)


@contextmanager
def served(home: Path) -> Iterator[str]:
    """The app over a home; its URL."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "graph.cli", "app", "--port", str(port), "--home", str(home), "--device", "simulator"],
        cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": str(_ROOT)},
    )  # fmt: skip
    try:
        deadline = time.monotonic() + _UP_S
        while time.monotonic() < deadline and server.poll() is None:
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("home", type=Path, help="the app's home")
    parser.add_argument(
        "--make", type=int, help="candidates of a synthetic search to make where the home is empty"
    )
    parser.add_argument("--visits", type=int, default=5, help="of each page, after the first")
    parser.add_argument("--out", type=Path, help="write the measurements here as JSON")
    given = parser.parse_args()
    home = given.home.resolve()
    if given.make is not None and not (home / "store.db").exists():
        measure(given.make, home)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright, served(home) as url:
        browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=_FLAGS)
        found = []
        for page in pages(home):
            found.append(visits(url, page, given.visits, browser))
            sys.stdout.write(_line(found[-1]))
            sys.stdout.flush()
        browser.close()
    if given.out is not None:
        rows = {"machine": machine_line(), "pages": [asdict(one) for one in found]}
        write_output(given.out, json.dumps(rows, indent=2) + "\n")
    return int(any(one.painted > LIMIT_S for one in found))


def _line(one: Visits) -> str:
    return (
        f"{one.page}: painted {one.painted:.2f} s, whole {one.whole:.2f} s; cached {one.cached_painted:.2f} and"
        f" {one.cached_whole:.2f} s"
        f" (first visit {one.first_painted:.2f} and {one.first_whole:.2f}, slowest painted {one.slowest_painted:.2f})\n"
    )


if __name__ == "__main__":
    raise SystemExit(main())
