"""The page of export: what can be taken away from a run with a winner, without one, and from an empty home."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from memory.records import RunStatus
from tests.graph.test_search import captured, search
from tests.ui.conftest import ShowPage
from tools.problem import Captured

__all__ = ["captured"]


@dataclass(frozen=True)
class Ended:
    """A home with a run that has ended, to be copied."""

    home: Path
    run: str

    def into(self, home: Path) -> str:
        """Copy the home; returns the run's id."""
        shutil.copytree(self.home, home, dirs_exist_ok=True)
        return self.run


def ended(home: Path, captured: Captured, *, fails: bool) -> Ended:
    """On made-up verdicts."""
    with search(home, captured, generations=1) as s:
        s.go(lambda _: fails)
        wanted = RunStatus.NOT_IMPROVED if fails else RunStatus.IMPROVED
        assert s.store.run(s.run.id).status is wanted
        return Ended(home, s.run.id)


@pytest.fixture(scope="module")
def won(tmp_path_factory: pytest.TempPathFactory, captured: Captured) -> Ended:
    """With a winner."""
    return ended(tmp_path_factory.mktemp("won"), captured, fails=False)


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory, captured: Captured) -> Ended:
    """Without one."""
    return ended(tmp_path_factory.mktemp("lost"), captured, fails=True)


def test_an_empty_home_leads_to_the_chat(show: ShowPage) -> None:
    shown = show("export")
    assert not shown.exception and "no runs yet" in shown.info[0].value


def test_a_winner_can_be_taken_away(home: Path, won: Ended, show: ShowPage) -> None:
    run_id = won.into(home)
    shown = show("export", run=run_id)
    assert not shown.exception and not shown.error
    assert [metric.label for metric in shown.metric][:2] == [
        "Speedup over eager (modelled)",
        "One forward (modelled)",
    ]
    labels = [button.proto.label for button in shown.get("download_button")]
    assert labels == ["Module (.py)", "Program (.json)", "Kernels (.cu)", "Report (.html)", "Report (.md)"]
    assert "modelled by the simulator" in shown.caption[0].value
    exported = won.home / "out" / f"{run_id}.py"
    text = exported.read_text()
    exported.unlink()
    again = shown.run().button[0]
    assert again.label == "Write the module again"
    again.click().run()
    assert not shown.exception and not shown.error and len(shown.get("download_button")) == 5
    assert exported.read_text().partition("Origin")[0] == text.partition("Origin")[0]


def test_the_newest_run_is_shown_and_another_can_be_picked(
    home: Path, won: Ended, captured: Captured, show: ShowPage
) -> None:
    first = won.into(home)
    with search(home, captured) as s:  # recorded, and left
        second = s.run.id
    shown = show("export")
    assert shown.selectbox[0].value == second and second in str(shown.query_params["run"])
    assert "no verified winner (interrupted)" in shown.warning[0].value.replace("\\", "")
    assert any("warpsmith resume" in line.value for line in shown.markdown)
    shown.selectbox[0].set_value(first).run()
    assert not shown.exception and shown.metric and first in str(shown.query_params["run"])


def test_a_run_without_a_winner_says_why_and_what_to_do(home: Path, lost: Ended, show: ShowPage) -> None:
    run_id = lost.into(home)
    shown = show("export", run=run_id)
    assert not shown.exception
    assert "no verified winner" in shown.warning[0].value and "candidates passed" in shown.warning[0].value
    assert any("Keep PyTorch" in line.value for line in shown.markdown)
    labels = [button.proto.label for button in shown.get("download_button")]
    assert labels == ["Report (.html)", "Report (.md)"]


def test_an_unknown_run_is_a_sentence(home: Path, lost: Ended, show: ShowPage) -> None:
    lost.into(home)
    shown = show("export", run="nothing-2026")
    assert not shown.exception and "No run has an id that begins with 'nothing-2026'" in shown.error[0].value


def test_files_are_downloaded_whole_and_the_report_is_seen_with_its_plots(
    tmp_path: Path, won: Ended, serve: Callable[..., str], browser: Browser
) -> None:
    run_id = won.into(tmp_path / "home")
    url = serve(tmp_path / "home")
    page = browser.new_page()
    page.set_default_timeout(30_000)
    asked = set[str]()
    page.on("request", lambda request: asked.add(request.url.split("/")[2]))
    page.goto(f"{url}/export?run={run_id}")
    files: dict[str, str] = {}
    for label in ("Module (.py)", "Program (.json)", "Kernels (.cu)", "Report (.html)", "Report (.md)"):
        with page.expect_download() as coming:
            page.get_by_role("button", name=label).click()
        files[coming.value.suggested_filename] = Path(coming.value.path()).read_text()
    assert set(files) == {f"{run_id}{end}" for end in (".py", ".json", ".cu", "-report.html", "-report.md")}
    assert "class ModelNew" in files[f"{run_id}.py"] and "//" in files[f"{run_id}.cu"]
    assert json.loads(files[f"{run_id}.json"])["steps"]
    assert "<svg" in files[f"{run_id}-report.html"] and files[f"{run_id}-report.md"].startswith(
        "# Warpsmith report"
    )
    report = page.frame_locator("iframe")
    expect(report.get_by_role("heading", name="What was not verified")).to_be_attached()
    expect(report.locator("svg").first).to_be_visible()
    assert asked <= {url.split("/")[2], "text"}, asked
    page.close()
