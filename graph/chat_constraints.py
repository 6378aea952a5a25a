"""Constraints in plain words: 'an H100, within 1e-5, ten minutes' becomes values. Pure.

Not here: what the message wants (graph.chat_intents), lengths of time (graph.chat_durations). Invariant: nothing is
guessed silently. What was named twice, or cannot be used, becomes a remark; what was read is taken out of the text, so
that the rest can be shown as not understood.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeVar

from graph.chat_durations import COUNT, DIGITS, START, UNIT, VAGUE, find_durations, number
from tools.gpus import GPUS

Device = Literal["simulator", "cuda"]
V = TypeVar("V", bound=float | int | str)

_BUDGET = re.compile(r"--budget(?:-s)?[\s=]+(\d+(?:\.\d+)?)(?![\w.])", re.IGNORECASE)

_MINUS = r"[-−–]"
_END = rf"(?!\d|\.\d)(?!\s*-?\s*{UNIT})"
_TINY = rf"(?:\d+(?:\.\d*)?\s*e\s*{_MINUS}\s*\d+|(?:\d+(?:\.\d+)?\s*[x×*]\s*)?10\s*(?:\^|\*\*)\s*\(?{_MINUS}\s*\d+\)?)"
_FRACTION = r"(?:\d+(?:\.\d+)?\s*(?:%|percent\b)|0?\.\d+)"
_JOIN = r"(?:\s*(?:of|at|most|is|be|below|under|within|to|than|less|[=:<≤~]))*\s*"
_WITHIN = r"within|accura(?:cy|te)|precis(?:ion|e)|errors?|under|below|up\s+to|tighter"
_TOLERANCES = (
    re.compile(
        rf"(?:--)?\b(?:r?tol(?:erance)?){_JOIN}(?P<value>{_TINY}|{_FRACTION}|\d+(?:\.\d+)?){_END}",
        re.IGNORECASE,
    ),
    re.compile(rf"\b(?:{_WITHIN}){_JOIN}(?P<value>{_TINY}|{_FRACTION}){_END}", re.IGNORECASE),
    re.compile(
        rf"{START}(?P<value>{_TINY}|{_FRACTION})\s+(?:relative\s+)?(?:tolerance|errors?|accuracy)\b",
        re.IGNORECASE,
    ),
    re.compile(rf"{START}(?P<value>{_TINY})", re.IGNORECASE),
)
_ABSOLUTE = re.compile(r"\babsolute(?:ly)?\b|\batol\b", re.IGNORECASE)

_VARIANT = r"s?(?:[ -](?:sxm\d?|pcie|nvl))?(?:[ -]\d+\s?gb)?"
_KNOWN_GPUS = {
    "h200": r"h-?200|(?<!\d )h 200",
    "h100": r"h-?100|(?<!\d )h 100",
    "a100": r"a-?100|(?<=an )a 100",
    "l40s": r"l[ -]?40[ -]?s",
    "rtx4090": r"(?:geforce\s+)?(?:rtx[ -]?)?4090",
    "b200": r"b[ -]?200",
}
_GPU = re.compile(
    r"(?<![\w.])(?:(?:--(?:gpu|arch)|\bgpu)\s*[=: ]\s*(?P<given>(?=\w*\d)\w+)|"
    + "|".join(f"(?P<{name}>{pattern})" for name, pattern in _KNOWN_GPUS.items())
    + r"|sm[_ -]?(?P<arch>\d{2,3}a?)|compute\s+capability\s+(?P<major>\d+)\.(?P<minor>\d)"
    + r"|(?P<family>hopper|ampere|ada|blackwell)"
    + r"|(?P<other>[vpb]100|t4|l40|l4|a10g?|a[348]0|a6000|a800|h20|h800|gb?h?200|b300"
    + r"|(?:rtx|gtx)[ -]?\d{3,4}|mi\d{3}x?)"
    + rf"){_VARIANT}(?![\w])",
    re.IGNORECASE,
)
_FAMILIES = {"hopper": "sm_90a", "ampere": "sm_80", "ada": "sm_89", "blackwell": "sm_100"}

_DEVICES: tuple[tuple[Device, re.Pattern[str]], ...] = (
    (
        "simulator",
        re.compile(
            r"--device[ =]simulator|\b(?:without|no|not\s+on|don'?t\s+use)\s+(?:(?:a|an|the|my|any|real)\s+)*gpu\b|"
            r"\b(?:(?:on|in|with|using|use)\s+(?:the\s+)?)?(?:simulat(?:or|ion|ed?|e\s+it))\b",
            re.IGNORECASE,
        ),
    ),
    (
        "cuda",
        re.compile(
            r"--device[ =]cuda|\b(?:on|for|with|using|use)\s+"
            r"(?:(?:my|the|this|a|our|real|own|machine'?s|computer'?s)\s+)+(?:gpu|graphics\s+card|hardware)\b|\breal\s+(?:gpu|hardware)\b|\b(?:on|use)\s+cuda\b",
            re.IGNORECASE,
        ),
    ),
)
_NOT_SIMULATOR = re.compile(
    r"\b(?:not|no|without|don'?t\s+use)\s+(?:on\s+|in\s+|the\s+|a\s+)*simulat\w+", re.IGNORECASE
)
_POPULATION = re.compile(
    rf"(?:--)?\bpopulation(?:\s+size)?\s*(?:of|to|is|=|:)?\s*(?P<a>{COUNT})(?!\w)"
    rf"|{START}(?P<b>{COUNT})\s+(?:candidates?|programs?|kernels?)\s+(?:per|a|each|in\s+(?:each|every))\s+generation",
    re.IGNORECASE,
)
_GENERATIONS = re.compile(
    rf"(?:--)?\bgenerations?\s*(?:of|to|is|=|:)?\s*(?P<a>{DIGITS})(?!\w)"
    rf"|{START}(?P<b>{COUNT})[\s-]+(?:generations?|gens?|rounds?)\b",
    re.IGNORECASE,
)
_NO_REVIEW = re.compile(
    r"--no-review|\b(?:without|no)\s+(?:a\s+)?review\b|\bdon'?t\s+ask\s+me\b", re.IGNORECASE
)
_REVIEW = re.compile(
    r"--review|\bwith\s+(?:a\s+)?review\b|\blet\s+me\s+(?:review|approve|decide)(?:\s+it)?\b"
    r"|\bask\s+me\s+(?:first|before\s+\w+)|\bi(?:'ll|\s+will|\s+want\s+to)\s+(?:approve|review)(?:\s+it)?\b",
    re.IGNORECASE,
)
_SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


@dataclass(frozen=True)
class Constraints:
    """What a message says about how to search; None where it says nothing."""

    gpu: str | None = None
    """A name or an architecture, as `--gpu` takes them; it need not be a known one."""
    device: Device | None = None
    tolerance: float | None = None
    """Relative, above 0 and below 1."""
    wall_s: float | None = None
    """Seconds of searching."""
    generations: int | None = None
    population: int | None = None
    review: bool | None = None
    remarks: tuple[str, ...] = ()
    """What was named twice or cannot be used, for the answer to say."""

    def over(self, older: Constraints) -> Constraints:
        """These, and the older ones where these say nothing."""
        return Constraints(
            gpu=self.gpu if self.gpu is not None else older.gpu,
            device=self.device if self.device is not None else older.device,
            tolerance=self.tolerance if self.tolerance is not None else older.tolerance,
            wall_s=self.wall_s if self.wall_s is not None else older.wall_s,
            generations=self.generations if self.generations is not None else older.generations,
            population=self.population if self.population is not None else older.population,
            review=self.review if self.review is not None else older.review,
            remarks=tuple(dict.fromkeys((*older.remarks, *self.remarks))),
        )

    @property
    def given(self) -> bool:
        """True where any is set."""
        return Constraints(remarks=self.remarks) != self


def read_constraints(text: str) -> tuple[Constraints, str]:
    """The constraints in a text without code or paths, and the text without what was read."""
    reader = _Reader(text)
    tolerance = reader.tolerance()
    gpu = reader.gpu()
    wall_s = reader.wall_s()
    device = reader.device()
    population = reader.count(_POPULATION, "population")
    generations = reader.count(_GENERATIONS, "generations")
    review = reader.review()
    found = Constraints(
        gpu, device, tolerance, wall_s, generations, population, review, tuple(reader.remarks)
    )
    return found, reader.text


def small_number(text: str) -> float:
    """The value of a tolerance as people write it: 1e-5, 1 e -5, 10^-5, 0.01, 1 %. Raises ValueError."""
    plain = re.sub(r"[−–]", "-", text.lower()).replace(" ", "").replace("**", "^").strip("()")
    power = re.fullmatch(r"(?:(\d+(?:\.\d+)?)[x×*])?10\^\(?(-\d+)\)?", plain)
    if power:
        return float(f"{power[1] or 1}e{power[2]}")
    percent = re.fullmatch(r"(\d+(?:\.\d+)?)(?:%|percent)", plain)
    return float(percent[1]) / 100 if percent else float(plain)


class _Reader:
    """Takes what it reads out of the text."""

    def __init__(self, text: str) -> None:
        self.text = text.translate(_SUPERSCRIPTS).replace("10-", "10^-") if "⁻" in text else text
        self.remarks: list[str] = []

    def tolerance(self) -> float | None:
        found: list[float] = []
        for pattern in _TOLERANCES:
            for match in self._take(pattern):
                value = small_number(match["value"])
                if 0 < value < 1:
                    found.append(value)
                else:
                    self.remarks.append(
                        f"a tolerance of {match['value'].strip()} is not between 0 and 1; not used"
                    )
        if found and self._take(_ABSOLUTE):
            self.remarks.append("tolerances are relative here, not absolute")
        return self._one(found, "tolerances", "g")

    def wall_s(self) -> float | None:
        for match in self._take(VAGUE):
            self.remarks.append(f"{match[0]!r} is no number of seconds; not used")
        found = [float(match[1]) for match in self._take(_BUDGET)]
        for start, end, seconds in reversed(find_durations(self.text)):
            self.text = f"{self.text[:start]} {self.text[end:]}"
            found.insert(0, seconds)
        usable = [seconds for seconds in found if seconds > 0]
        if len(usable) < len(found):
            self.remarks.append("a search of 0 s finds nothing; not used")
        return self._one(usable, "lengths of the search, in seconds", "g")

    def gpu(self) -> str | None:
        found: list[str] = []
        for match in self._take(_GPU):
            named = next((name for name in _KNOWN_GPUS if match[name]), None)
            if named is None and match["major"]:
                named = f"sm_{match['major']}{match['minor']}"
            elif named is None and match["arch"]:
                named = f"sm_{match['arch'].lower()}"
            elif named is None and match["family"]:
                named = _FAMILIES[match["family"].lower()]
            found.append(named or re.sub(r"[ -]", "", (match["given"] or match["other"]).lower()))
        assert set(_KNOWN_GPUS) <= set(GPUS)
        return self._one(found, "GPUs", "")

    def device(self) -> Device | None:
        found: list[Device] = ["cuda" for _ in self._take(_NOT_SIMULATOR)]
        for device, pattern in _DEVICES:
            found.extend(device for _ in self._take(pattern))
        return self._one(found, "devices", "")

    def count(self, pattern: re.Pattern[str], name: str) -> int | None:
        found: list[int] = []
        for match in self._take(pattern):
            text = match["a"] or match["b"]
            value = number(re.sub(r"\s+single$", "", text, flags=re.IGNORECASE))
            if value >= 1 and value.is_integer():
                found.append(int(value))
            else:
                self.remarks.append(f"{name} has to be a whole number from 1 on, not {text}; not used")
        return self._one(found, f"values of {name}", "")

    def review(self) -> bool | None:
        refused, wanted = self._take(_NO_REVIEW), self._take(_REVIEW)
        return False if refused else True if wanted else None

    def _take(self, pattern: re.Pattern[str]) -> list[re.Match[str]]:
        found = list(pattern.finditer(self.text))
        self.text = pattern.sub(" ", self.text)
        return found

    def _one(self, found: list[V], what: str, form: str) -> V | None:
        distinct = list(dict.fromkeys(found))
        if len(distinct) > 1:
            said = " and ".join(format(value, form) for value in distinct)
            self.remarks.append(f"you named several {what}: {said}; I took {distinct[0]:{form}}")
        return distinct[0] if distinct else None
