"""`warpsmith app`: serves the app's pages. Not here: the pages (app.py, ui/)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from graph.cli_options import DeviceOption, Gpu, Home, Models
from graph.folders import prepare_home
from graph.settings import resolve_settings

_ENTRY = Path(__file__).resolve().parents[1] / "app.py"
_BOOT = "import sys; sys.path.insert(0, sys.argv.pop(1)); from ui.serve import main; main()"
_EPILOG = (
    "Examples:\n\n  warpsmith app\n\n  warpsmith app --port 8600 --home runs/\n\n"
    "  WARPSMITH_APP_PASSWORD=… warpsmith app --address 0.0.0.0"
)


def register(app: typer.Typer) -> None:
    """Add the command to an app."""
    app.command("app", epilog=_EPILOG)(serve)


def serve(
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8501,
    address: Annotated[
        str,
        typer.Option(
            help="where to listen; anything but this machine needs WARPSMITH_APP_PASSWORD to be set"
        ),
    ] = "127.0.0.1",
    device: DeviceOption = None,
    gpu: Gpu = None,
    models: Models = None,
    home: Home = None,
) -> None:
    """Serve the app: chat, runs, lineage, traces, review, archive and export, in a browser.

    Runs go on in processes of their own when it ends. Nothing is sent to anybody: usage statistics are off.
    """
    root = prepare_home(resolve_settings(home=home, device=device, gpu=gpu, models=models))
    given = {"HOME": str(root), "DEVICE": device, "GPU": gpu, "MODELS": models}
    environment = os.environ | {f"WARPSMITH_{name}": value for name, value in given.items() if value}
    sys.stdout.flush()
    # In this process's place, so that Ctrl-C and a service manager reach the server itself.
    command = [sys.executable, "-P", "-c", _BOOT, str(_ENTRY.parent), "run", *arguments(address, port)]
    os.execve(sys.executable, command, environment)


def arguments(address: str, port: int) -> list[str]:
    """What `streamlit run` is told; `.streamlit/config.toml` says the same to whoever runs it by hand."""
    options = {
        "server.address": address,
        "server.port": str(port),
        "server.headless": "true",
        "server.fileWatcherType": "none",
        "server.maxUploadSize": "10",
        "browser.gatherUsageStats": "false",
        "client.toolbarMode": "minimal",
    }
    return [str(_ENTRY), *(f"--{name}={value}" for name, value in options.items())]
