"""A real endpoint, opt-in: `make test-live` asks what OPENAI_BASE_URL or OPENAI_API_KEY and WARPSMITH_MODELS name.

It costs money where the endpoint does. A small model may fail to write a good program; what must hold is that every
call is answered or explained, and that the run ends honestly.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from agents.calls import Message, ModelRequest
from agents.endpoint import Role
from agents.llm import LanguageModels
from graph.settings import Settings, resolve_settings
from memory.store import Store
from tests.graph.test_run import ROOT, command
from tests.problems import module_text

pytestmark = [pytest.mark.live, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def settings() -> Settings:
    found = resolve_settings()
    if found.endpoint is None:
        pytest.fail(f"no endpoint: {found.why_rules}")
    return found


def test_the_endpoint_answers_and_counts(settings: Settings) -> None:
    endpoint = settings.endpoint
    assert endpoint is not None
    casting = endpoint.casting[Role.CODER]
    turns = (Message("system", "Answer with one word."), Message("user", "Which company makes CUDA?"))
    request = ModelRequest(casting.models[0].name, turns, casting.temperature, casting.effort, 2000)
    with closing(LanguageModels(endpoint)) as models:
        said = models.complete(request, deadline_s=300, lost=lambda: True)
    sys.stdout.write(f"{casting.models[0].name}: {said}\n")
    assert said.text.strip() and said.tokens_in and said.tokens_out


def test_a_run_with_real_models_ends_honestly(tmp_path: Path, settings: Settings) -> None:
    (tmp_path / "scaled.py").write_text(module_text(2048, 512))
    arguments = [
        "--population",
        "2",
        "--generations",
        "2",
        "--soak",
        "5",
        "--quiet",
        "--json",
        "--budget-s",
        "900",
    ]
    done = subprocess.run(
        command("optimize", "scaled.py", "--models", settings.models, *arguments), cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "WARPSMITH_HOME": "home"}, capture_output=True, text=True,
        timeout=1700,
    )  # fmt: skip
    assert done.returncode in (0, 3), done.stderr
    summary = json.loads(done.stdout)
    with Store(tmp_path / "home" / "store.db") as store:
        for event in store.events(summary["run"]):
            if event.agent == "model":
                said = f"{event.role} ({event.latency_s:.1f} s): {event.decision} {event.failure or ''}"
                sys.stdout.write(f"{said}\n")
    sys.stdout.write(f"{summary['spend']} {summary['by_status']}\n")
    assert summary["spend"]["calls"] > 0
