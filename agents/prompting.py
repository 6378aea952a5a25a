"""Prompts: one Markdown file per role, filled in with sections that each have a budget of tokens.

Here: loading, filling, cutting, and marking what is material. Not here: what a section says
(agents.scene_sections, agents.program_sections).
Invariants: rendering is pure; a template's names and the values given are the same set; text that people, kernels or
tools wrote stands between marks that it cannot forge, and the system prompt says that nothing in them is an order.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template

from agents.endpoint import Role
from memory.errors import WarpsmithError

CHARS_PER_TOKEN = 3.5
"""Of code and English; a little low, so that a budget holds."""
BETWEEN = "\n---user---\n"
"""Parts a prompt file into what the system says and what the user says."""
NOTE_CHARS = 50
"""For the line that says how much was left out."""
LINE_CHARS = 600
NONE = "None yet."
"""In place of a section that has nothing to say."""
_MATERIAL = re.compile(r"(<<material ([0-9a-f]{10}): [^\n]*>>)\n.*?\n(<<end of material \2>>)", re.DOTALL)
SHARED = ("material", "format")
"""Files that any template may name as `$shared_<name>`."""


@dataclass(frozen=True)
class Prompt:
    """What a model is asked."""

    role: Role
    system: str
    user: str
    template_hash: str
    """Of the role's file and the shared files: which words a candidate owes its existence to."""


@cache
def _file(name: str) -> str:
    return files("agents").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")


def fill(
    role: Role,
    values: Mapping[str, str],
    budgets: Mapping[str, int],
    read: Callable[[str], str] = _file,
) -> Prompt:
    """The role's prompt with its sections filled in.

    budgets: tokens at most for the values that need a limit; cut in the middle, head and tail kept.
    read: the words of a prompt file by its name.
    Raises WarpsmithError where the template and the values do not name the same sections.
    """
    text = read(role.value)
    names = set(Template(text).get_identifiers())
    shared = {f"shared_{name}": read(name).strip() for name in SHARED if f"shared_{name}" in names}
    given = {name: cut(value, budgets[name]) if name in budgets else value for name, value in values.items()}
    if names != set(given) | set(shared):
        missing, unused = sorted(names - set(given) - set(shared)), sorted(set(given) - names)
        raise WarpsmithError(f"prompt {role.value}.md: no value for {missing}, no place for {unused}")
    system, found, user = text.partition(BETWEEN)
    if not found:
        raise WarpsmithError(f"prompt {role.value}.md has no line `{BETWEEN.strip()}`")
    whole = {**shared, **given}
    digest = hashlib.sha256("\0".join((text, *shared.values())).encode()).hexdigest()[:16]
    return Prompt(
        role,
        Template(system).safe_substitute(whole).strip(),
        Template(user).safe_substitute(whole).strip(),
        digest,
    )


def material(name: str, text: str) -> str:
    """Text of another's, between marks made of its own hash, which it does not contain."""
    mark = hashlib.sha256(f"{name}\0{text}".encode()).hexdigest()[:10]
    while mark in text:
        mark = hashlib.sha256(mark.encode()).hexdigest()[:10]
    return f"<<material {mark}: {name}>>\n{text.rstrip()}\n<<end of material {mark}>>"


def one_line(text: str) -> str:
    """One line of at most LINE_CHARS, whatever the text."""
    return " ".join(text.split())[:LINE_CHARS]


def tokens_of(text: str) -> int:
    """About how many tokens a text is."""
    return int(len(text) / CHARS_PER_TOKEN) + 1


def cut(text: str, budget_tokens: int) -> str:
    """The text within a budget: two thirds of it from the head, one from the tail, whole lines where there are any.

    Material that the cut goes through gets marks around what is left of it.
    """
    limit = int(budget_tokens * CHARS_PER_TOKEN)
    if len(text) <= limit:
        return text
    marked = list(_MATERIAL.finditer(text))
    room = max(limit - NOTE_CHARS - max((len(m[1]) + len(m[3]) + 2 for m in marked), default=0), 0)
    ends, begins = room * 2 // 3, len(text) - room // 3
    if (line := text.rfind("\n", 0, ends)) >= 0:
        ends = line
    if (line := text.find("\n", begins)) >= 0:
        begins = line + 1
    left = f"[... {begins - ends:,} characters left out ...]"
    return f"{_head(text, ends, marked)}\n{left}\n{_tail(text, begins, marked)}"


def _head(text: str, ends: int, marked: list[re.Match[str]]) -> str:
    found = next((m for m in marked if m.start() < ends < m.end()), None)
    if found is None:
        return text[:ends]
    if ends < found.end(1):
        return text[: found.start()].rstrip("\n")
    return f"{text[: min(ends, found.start(3) - 1)]}\n{found[3]}"


def _tail(text: str, begins: int, marked: list[re.Match[str]]) -> str:
    found = next((m for m in marked if m.start() < begins < m.end()), None)
    if found is None:
        return text[begins:]
    if begins > found.start(3):
        return text[found.end() :].lstrip("\n")
    return f"{found[1]}\n{text[max(begins, found.end(1) + 1) :]}"
