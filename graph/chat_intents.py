"""What a message wants, by rules: text becomes an Intent. Pure; needs no model and knows no run.

Not here: numbers and constraints (graph.chat_constraints), code in the text (graph.chat_source), carrying it out
(graph.chat). Invariant: whatever changes something (stop, resume, approve, reject, export, pin, kill, release, roll
back) is read only from a message that says that and nothing else, so that "don't stop" and "what happens if I stop?"
stop nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from graph import chat_phrases as phrases
from graph.chat_constraints import Constraints, read_constraints
from graph.chat_source import examine_source, file_of, split_code
from graph.chat_target import TargetText, read_target
from memory.events import Verdict

_POLITE_TAIL = 200
"""Characters."""


@dataclass(frozen=True)
class Optimize:
    """Search for kernels for a module."""

    target: TargetText = field(default_factory=TargetText)
    code: str | None = None
    """Pasted source; None where a path is given, or nothing."""
    file: str = ""
    """Name of the file that the source was in, where it was one."""
    constraints: Constraints = field(default_factory=Constraints)
    again: bool = False
    """The module of the conversation's last request is meant."""
    unread: str = ""
    """Words that were not understood."""


@dataclass(frozen=True)
class Status:
    """How far is a run?"""

    run: str | None = None


@dataclass(frozen=True)
class Explain:
    """What won, and why?"""

    subject: str | None = None
    """A run's or candidate's id, or the beginning of one."""


@dataclass(frozen=True)
class WhyFailed:
    """Why is there no winner, or why did a candidate fail?"""

    subject: str | None = None
    """A run's or candidate's id, or the beginning of one."""


@dataclass(frozen=True)
class Hint:
    """An idea for the agents."""

    text: str


@dataclass(frozen=True)
class Stop:
    """Stop a run's work; it can be resumed."""

    run: str | None = None


@dataclass(frozen=True)
class Resume:
    """Continue a run."""

    run: str | None = None
    constraints: Constraints = field(default_factory=Constraints)
    more: bool = False
    """The limits come on top of the run's own."""


@dataclass(frozen=True)
class Export:
    """Write the winner again."""

    folder: str | None = None
    run: str | None = None


@dataclass(frozen=True)
class Approve:
    """Accept the winner that waits for review."""

    note: str = ""


@dataclass(frozen=True)
class Reject:
    """Refuse the winner that waits for review."""

    note: str = ""


@dataclass(frozen=True)
class Mark:
    """Pin, kill or release a candidate."""

    candidate: str
    verdict: Verdict
    note: str = ""


@dataclass(frozen=True)
class RollBack:
    """Go back to an earlier winner."""

    candidate: str
    note: str = ""


@dataclass(frozen=True)
class ListRuns:
    """Which runs are there?"""


@dataclass(frozen=True)
class UseRun:
    """Talk about another run from now on."""

    run: str


@dataclass(frozen=True)
class Confirm:
    """Yes."""


@dataclass(frozen=True)
class Dismiss:
    """Never mind."""


@dataclass(frozen=True)
class Help:
    """What can be said here?"""


@dataclass(frozen=True)
class Unknown:
    """None of the above."""

    text: str


Intent = (
    Optimize | Status | Explain | WhyFailed | Hint | Stop | Resume | Export | Approve | Reject | Mark | RollBack
    | ListRuns | UseRun | Confirm | Dismiss | Help | Unknown
)  # fmt: skip


def read_intent(text: str) -> Intent:
    """The intent of one message."""
    explicit = phrases.EXPLICIT_HINT.match(text.strip())
    if explicit and (hint := explicit["hint"].strip()) and not phrases.PATH.search(hint):
        return Hint(hint)
    code, prose = split_code(text)
    plain = _undress(prose)
    if code is not None:
        return replace(_optimize(code, plain), file=file_of(text))
    for pattern, make in _COMMANDS:
        if match := pattern.fullmatch(plain):
            return make(match)
    if resumed := _resume(plain):
        return resumed
    if (
        (tried := phrases.TRY.fullmatch(plain))
        and not phrases.PATH.search(plain)
        and not phrases.OPTIMIZE.search(plain)
    ):
        return Hint(tried["hint"])
    if phrases.REFUSED.search(plain):
        return Unknown(text.strip())
    if phrases.OPTIMIZE.search(plain) or (phrases.PATH.search(plain) and not phrases.QUESTION.match(plain)):
        return _optimize(None, plain)
    return Unknown(text.strip())


def read_details(text: str) -> Optimize:
    """What a message says about a module and constraints, whatever it asks for: an answer to a question."""
    code, prose = split_code(text)
    return replace(_optimize(code, _undress(prose)), file=file_of(text))


def _optimize(code: str | None, plain: str) -> Optimize:
    target, rest = read_target(plain)
    facts = examine_source(code) if code is not None else None
    if facts is not None and target.class_name is None:
        named = [name for name in facts.modules if re.search(rf"\b{re.escape(name)}\b", rest)]
        if len(named) == 1 and len(facts.modules) > 1:
            target = TargetText(target.path, named[0], target.inputs, target.init)
        for name in named:
            rest = re.sub(rf"\b{re.escape(name)}\b", " ", rest)
    constraints, rest = read_constraints(rest)
    again = code is None and target.path is None and bool(phrases.AGAIN.search(plain))
    return Optimize(target, code, constraints=constraints, again=again, unread=_unread(rest))


def _unread(rest: str) -> str:
    """What is left of a request without the words that mean nothing here."""
    words = [word for word in re.findall(r"[^\s,.;:!?()\"'`]+", rest) if word.lower() not in phrases.FILLERS]
    return " ".join(words) if any(re.search(r"\w", word) for word in words) else ""


def _undress(prose: str) -> str:
    """One line without polite words, which mean nothing here."""
    line = " ".join(prose.split())
    plain = phrases.POLITE_START.sub("", line) or line
    # What is polite stands at the very end; a search for it in all of a long text would take long.
    head, tail = plain[:-_POLITE_TAIL], plain[-_POLITE_TAIL:]
    while (shorter := phrases.POLITE_END.sub("", tail)) not in ("", tail):
        tail = shorter
    return head + tail


def _resume(plain: str) -> Resume | None:
    verb = phrases.RESUME.match(plain)
    if verb is None:
        return None
    spoken = re.sub(r"\banother(?=\s)", "more a", plain[verb.end() :], flags=re.IGNORECASE)
    limits, more = phrases.MORE.subn(" ", spoken)
    constraints, rest = read_constraints(limits)
    return None if _unread(rest) else Resume(_lower(verb["run"]), constraints, more=more > 0)


def _lower(text: str | None) -> str | None:
    return text.lower() if text else None


def _subject(match: re.Match[str]) -> str | None:
    """The candidate or the run that a question names."""
    named = re.search(
        rf"(?<![\w-])(?:{phrases.CANDIDATE_ID}|{phrases.RUN_ID})(?![\w-])", match.string, re.IGNORECASE
    )
    return named[0].lower() if named else None


def _run_in(match: re.Match[str]) -> str | None:
    named = re.search(rf"(?<![\w-]){phrases.RUN_ID}(?![\w-])", match.string, re.IGNORECASE)
    return named[0].lower() if named else None


_MARKS = {"pin": Verdict.PINNED, "kill": Verdict.KILLED, "release": Verdict.RELEASED}
_COMMANDS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Intent]], ...] = (
    (phrases.DISMISS, lambda _: Dismiss()),
    (phrases.CONFIRM, lambda _: Confirm()),
    (phrases.HELP, lambda _: Help()),
    (phrases.LIST_RUNS, lambda _: ListRuns()),
    (phrases.APPROVE, lambda m: Approve(m["note"] or "")),
    (phrases.REJECT, lambda m: Reject(m["note"] or "")),
    (
        phrases.MARK,
        lambda m: Mark(m["candidate"].lower(), _MARKS[m["verb"].lower()], m["note"] or ""),
    ),
    (phrases.ROLL_BACK, lambda m: RollBack(m["candidate"].lower(), m["note"] or "")),
    (phrases.STOP, lambda m: Stop(_lower(m["run"] or m["other"]))),
    (phrases.EXPORT, lambda m: Export(m["folder"].strip("\"'`") if m["folder"] else None, _lower(m["run"]))),
    (phrases.WHY_FAILED, lambda m: WhyFailed(_subject(m))),
    (phrases.EXPLAIN, lambda m: Explain(_subject(m))),
    (phrases.STATUS, lambda m: Status(_run_in(m))),
    (phrases.USE_RUN, lambda m: UseRun(m["run"].lower())),
)
"""In this order; the first that is the whole message wins."""
