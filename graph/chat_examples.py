"""Modules that come with the source: what somebody who has none at hand can begin with."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_FOLDERS = (_ROOT / "examples", _ROOT / "benchmarks" / "suite")


def examples() -> dict[str, Path]:
    """Name -> file, the simplest first; empty where Warpsmith does not run from its source tree."""
    return {
        f"{folder.name}/{path.relative_to(folder).with_suffix('')}": path
        for folder in _FOLDERS
        for path in sorted(folder.rglob("*.py"))
        if not path.name.startswith("_")
    }
