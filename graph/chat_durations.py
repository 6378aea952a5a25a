"""Numbers and lengths of time in words: '90 s', 'ten minutes', 'an hour and a half', '1h30m'. Pure."""

from __future__ import annotations

import re

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_WORDS = {word: value for value, word in enumerate(_ONES)} | {w: 20 + 10 * i for i, w in enumerate(_TENS)}
_ONE = "|".join(sorted(_ONES, key=len, reverse=True))
_WORD = rf"(?:(?:a|one)\s+hundred|(?:{'|'.join(_TENS)})(?:[\s-]+(?:{_ONE}))?|{_ONE})"
DIGITS = r"\d{1,3}(?:,\d{3})+(?!\d)|\d+(?:[.,]\d+)?"
COUNT = rf"(?:{DIGITS}|{_WORD}|an?\s+single|a)"

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
UNIT = r"(?:seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?)(?![a-z_])"
_SPOKEN_UNIT = r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?)(?![a-z_])"
START = r"(?<![\w.\-])(?<!\d,)"
_AMOUNT_START = rf"(?:{START}|(?<=\d[hmHM]))"
"""The second half of '1h30m' touches the first."""
_HOURS_MINUTES = re.compile(rf"{START}(\d+)\s*h\s*(\d{{1,2}})(?![\w.,]|\s*{UNIT})", re.IGNORECASE)
_DURATION = re.compile(
    rf"{_AMOUNT_START}(?:"
    rf"(?P<part>half\s+an?|half|(?:a\s+)?quarter\s+of\s+an?|three\s+quarters\s+of\s+an?|a\s+couple(?:\s+of)?)"
    rf"\s+(?P<part_unit>{_SPOKEN_UNIT})"
    rf"|(?P<digits>{DIGITS})\s*-?\s*(?P<digits_unit>{UNIT})"
    rf"|(?P<number>{DIGITS}|{_WORD}|an?)(?P<half>\s+and\s+a\s+half)?[\s-]+(?P<unit>{_SPOKEN_UNIT})"
    rf")(?P<more_half>\s+and\s+a\s+half(?!\s+{_SPOKEN_UNIT}))?",
    re.IGNORECASE,
)
_JOINED = re.compile(r"\s*(?:,|and|,\s*and|&|\+)?\s*", re.IGNORECASE)
VAGUE = re.compile(rf"\b(?:a\s+few|some|several|many)\s+{_SPOKEN_UNIT}", re.IGNORECASE)


def durations_s(text: str) -> list[float]:
    """Every duration in a text, in seconds; '1 h 30 min' and 'an hour and a half' are one."""
    return [seconds for _, _, seconds in find_durations(text)]


def number(text: str) -> float:
    """The value of digits or of an English number up to a hundred. Raises ValueError for anything else."""
    words = text.lower().replace("-", " ").split()
    if len(words) == 1 and words[0][0].isdigit():
        grouped = re.fullmatch(r"\d{1,3}(?:,\d{3})+", words[0])
        return float(words[0].replace(",", "" if grouped else "."))
    if words[-1:] == ["hundred"]:
        return 100.0
    if words[:1] in (["a"], ["an"]):
        return 1.0
    if not words or any(word not in _WORDS for word in words):
        raise ValueError(f"{text!r} is no number")
    return float(sum(_WORDS[word] for word in words))


def find_durations(text: str) -> list[tuple[int, int, float]]:
    """Start, end and seconds of every duration, with neighbours such as '1 h' and '30 min' joined."""
    compact = [
        (m.start(), m.end(), int(m[1]) * 3600.0 + int(m[2]) * 60.0, 60.0)
        for m in _HOURS_MINUTES.finditer(text)
    ]
    rest = _HOURS_MINUTES.sub(lambda m: "~" * len(m[0]), text)
    spoken = [(m.start(), m.end(), *_seconds(m)) for m in _DURATION.finditer(rest) if m["digits_unit"] != "M"]
    joined: list[tuple[int, int, float, float]] = []
    for start, end, seconds, unit in sorted((*compact, *spoken)):
        last = joined[-1] if joined else None
        if last is not None and unit < last[3] and _JOINED.fullmatch(text[last[1] : start]):
            joined[-1] = (last[0], end, last[2] + seconds, unit)
        else:
            joined.append((start, end, seconds, unit))
    return [(start, end, seconds) for start, end, seconds, _ in joined]


def _seconds(match: re.Match[str]) -> tuple[float, float]:
    """Seconds of a duration, and of its unit."""
    part = (match["part"] or "").lower()
    unit = _UNITS[(match["part_unit"] or match["digits_unit"] or match["unit"])[0].lower()]
    if part:
        amount = 2.0 if "couple" in part else 0.75 if "three" in part else 0.25 if "quarter" in part else 0.5
    else:
        amount = number(match["digits"] or match["number"])
    halves = bool(match["half"]) + bool(match["more_half"])
    return (amount + 0.5 * halves) * unit, unit
