"""Numbers measured by GPU tests, shown at the end of the run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

_NOTES: list[str] = []


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Keeps one line for the summary."""
    return lambda text: _NOTES.append(f"{request.node.name}: {text}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was noted."""
    for line in _NOTES:
        terminalreporter.write_line(line)
