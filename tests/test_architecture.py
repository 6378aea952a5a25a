"""The design's boundaries, read off the source: who imports whom, where heavy libraries live, how big files get."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("memory", "tools", "agents", "graph", "ui")
ALLOWED = {
    "memory": {"memory"},
    "tools": {"tools", "memory"},
    "agents": {"agents", "tools", "memory"},
    "graph": {"graph", "agents", "tools", "memory"},
    "ui": {"ui", "graph", "agents", "tools", "memory"},
}
"""Imports point down only: ui -> graph -> agents -> tools -> memory."""
MEMORY_OPEN_TO_TOOLS = {"memory.records", "memory.errors", "memory.disk"}
HOMES = {
    "torch": ("tools/",),
    "cuda": ("tools/",),
    "langgraph": ("graph/",),
    "langchain_openai": ("agents/llm.py",),
    "chromadb": ("memory/chroma",),
    "ray": ("tools/ray_",),
    "streamlit": ("app.py", "ui/"),
}
MAX_MODULE_LINES = 400


def _modules() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def _imports(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module, node.lineno


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_imports_downwards_only(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    ours = [(name, line) for name, line in _imports(path) if name.split(".")[0] in PACKAGES]
    upward = [f"{name} (line {line})" for name, line in ours if name.split(".")[0] not in ALLOWED[package]]
    assert not upward, f"{path.relative_to(ROOT)} imports {upward}"


def test_what_is_measured_does_not_depend_on_tests() -> None:
    paths = sorted((ROOT / "benchmarks").rglob("*.py"))
    assert paths
    guilty = [
        str(p.relative_to(ROOT)) for p in paths if any(n.split(".")[0] == "tests" for n, _ in _imports(p))
    ]
    assert guilty == []


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_tools_see_nothing_of_memory_that_remembers(path: Path) -> None:
    if path.relative_to(ROOT).parts[0] != "tools":
        return
    seen = {name for name, _ in _imports(path) if name.startswith("memory.")}
    assert seen <= MEMORY_OPEN_TO_TOOLS, f"{path.relative_to(ROOT)} imports {seen - MEMORY_OPEN_TO_TOOLS}"


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_heavy_library_is_imported_in_its_one_home(path: Path) -> None:
    place = str(path.relative_to(ROOT))
    for name, line in _imports(path):
        homes = HOMES.get(name.split(".")[0])
        assert homes is None or place.startswith(homes), f"{place}:{line} imports {name}; its home is {homes}"


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_can_be_read_in_one_sitting(path: Path) -> None:
    lines = path.read_text().count("\n")
    assert lines <= MAX_MODULE_LINES, f"{path.relative_to(ROOT)} has {lines} lines; split it by noun"


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_says_what_lives_in_it(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), f"{path.relative_to(ROOT)} has no module docstring"


def test_the_map_of_the_agents_names_every_module() -> None:
    text = ast.get_docstring(ast.parse((ROOT / "agents" / "__init__.py").read_text())) or ""
    modules = {path.stem for path in (ROOT / "agents").glob("*.py")} - {"__init__"}
    assert modules == {word for word in text.split("`")[1::2] if not word.endswith("/")}


def test_only_the_composition_root_names_concrete_agents() -> None:
    namers = [
        str(path.relative_to(ROOT))
        for path in _modules()
        if path.relative_to(ROOT).parts[0] == "graph"
        and any(name.startswith("agents.rules") for name, _ in _imports(path))
    ]
    assert namers == ["graph/build.py"]


def test_a_wheel_holds_every_package_and_the_simulators_sources(tmp_path: Path) -> None:
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
    ]
    subprocess.run([*build, str(ROOT)], check=True, timeout=120)
    (wheel,) = tmp_path.glob("warpsmith-*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    native = (ROOT / "tools" / "simulator" / "native").rglob("*")
    wanted = [*_modules(), *(path for path in native if path.is_file())]
    assert {str(path.relative_to(ROOT)) for path in wanted} <= packed


def test_paths_named_in_the_contributors_guide_exist() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    named = [word for word in guide.split("`")[1::2] if "/" in word and " " not in word]
    assert named
    for name in named:
        assert list(ROOT.glob(name.rstrip("/"))), f"CONTRIBUTING.md names {name!r}, which does not exist"
    assert guide.count("\n") <= 80
