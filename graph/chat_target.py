"""Which module a message names, with which arguments: path, class, inputs and constructor arguments. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from memory.errors import BadInput
from memory.records import DType
from tools.target import parse_inputs

_DTYPES = "float64|float32|float16|bfloat16|int64|int32|int16|int8|uint8|" + "|".join(
    sorted(d.value for d in DType)
)
_TENSOR = rf"(?:{_DTYPES})\s?\[[\d\s,x×]*\](?:\s?:\s?\d+)?"
_PLAIN = r"(?:True|False|None|-?\d+(?:\.\d+)?(?![\w.]))"
_TENSORS = rf"{_TENSOR}(?:\s*(?:,\s*and\s+|,|\band\b)\s*(?:{_TENSOR}|{_PLAIN}))*"
_INPUT_WORD = r"(?:--)?\binputs?(?:\s+(?:shapes?|tensors?|specs?))?\s*(?:of|are|is|=|:)?\s*"
_INPUTS = re.compile(
    rf"(?:{_INPUT_WORD})(?P<quote>[\"'`])(?P<quoted>[^\"'`]+)(?P=quote)|(?:{_INPUT_WORD})?(?<![\w.])(?P<plain>{_TENSORS})",
    re.IGNORECASE,
)
_SHAPE = re.compile(r"[\[(]?\s*(\d+(?:\s*[,x×]\s*\d+)*)\s*,?\s*[\])]?", re.IGNORECASE)
_INIT = re.compile(
    r"(?:--)?\b(?:init(?:ial)?|constructor)(?:\s+(?:args|arguments|with))?\s*[=:]?\s*(?:(?P<quote>[\"'`])(?P<quoted>.+?)(?P=quote)"
    r"(?=\s|$|[,.;])|(?P<open>[\[({])|(?P<number>-?\d+(?:\.\d+)?(?:e-?\d+)?)(?![\w.]))",
    re.IGNORECASE,
)
_PATH = re.compile(
    r"(?P<quote>[\"'`])(?P<quoted>[^\"'`]+\.[pP][yY])\s?(?::\s?(?P<quoted_class>[A-Za-z_]\w*))?(?P=quote)(?:\s?:\s?(?P<after>[A-Za-z_]\w*))?"
    r"|(?<![\w.])(?P<plain>[\w./~\\+@-]*\w\.[pP][yY])(?::(?P<class>[A-Za-z_]\w*)|\s:\s?(?P<spaced>[A-Z]\w*))?(?!\w)"
)
_CLASS = re.compile(
    r"\b(?:class|module|model)\s+`?(?P<a>[A-Z]\w*)`?(?:\s+(?:in|from|of|inside))?|`?\b(?P<b>[A-Z]\w*)`?\s+(?:in|from|of|inside)\s*$"
    r"|`?\b(?P<c>[A-Z]\w*)`?\s+(?:in|from|of|inside)\s+(?=~)"
)
_CLOSING = {"[": "]", "(": ")", "{": "}"}


@dataclass(frozen=True)
class TargetText:
    """A module as a message names it; None where it does not."""

    path: str | None = None
    class_name: str | None = None
    inputs: str | None = None
    """As `--inputs` takes them; not checked yet."""
    init: str | None = None
    """As `--init` takes it; not checked yet."""

    def over(self, older: TargetText) -> TargetText:
        """This one, and the older one where this says nothing."""
        return TargetText(
            self.path if self.path is not None else older.path,
            self.class_name if self.class_name is not None else older.class_name,
            self.inputs if self.inputs is not None else older.inputs,
            self.init if self.init is not None else older.init,
        )


def read_target(text: str) -> tuple[TargetText, str]:
    """The target in a line of prose, and the line without what was read."""
    init, text = _read_init(text)
    inputs, text = _read_inputs(text)
    target = TargetText(inputs=inputs, init=init)
    marker = "~"
    if match := _PATH.search(text):
        class_name = match["quoted_class"] or match["after"] or match["class"] or match["spaced"]
        target = replace(target, path=match["quoted"] or match["plain"], class_name=class_name)
        text = f"{text[: match.start()]}{marker}{text[match.end() :]}"
    if target.class_name is None and (match := _CLASS.search(text)):
        target = replace(target, class_name=match["a"] or match["b"] or match["c"])
        text = f"{text[: match.start()]} {text[match.end() :]}"
    return target, text.replace(marker, " ") if target.path else text


def shape_as_inputs(text: str) -> str | None:
    """The input specification that a bare shape such as `16x1024` stands for, in f32; None for other text."""
    match = _SHAPE.fullmatch(text.strip().rstrip(".!"))
    return f"f32[{','.join(re.findall(r'[0-9]+', match[1]))}]" if match else None


def _read_inputs(text: str) -> tuple[str | None, str]:
    match = _INPUTS.search(text)
    if match is None:
        return None, text
    given = match["quoted"] or match["plain"]
    rest = f"{text[: match.start()]} {text[match.end() :]}"
    return _tidy_inputs(given), rest


def _tidy_inputs(given: str) -> str:
    """Spelt as `--inputs` takes it: `F32 [16 x 1024] and i64[16]` is `f32[16,1024],i64[16]`."""

    def tensor(match: re.Match[str]) -> str:
        sizes = ",".join(re.findall(r"\d+", match[2]))
        return f"{match[1].lower()}[{sizes}]{re.sub(r'[^0-9:]', '', match[3] or '')}"

    spelt = re.sub(rf"({_DTYPES})\s?\[([^\]]*)\](\s?:\s?\d+)?", tensor, given, flags=re.IGNORECASE)
    joined = re.sub(r"\s*(?:,\s*and\s+|\band\b|,)\s*", ",", spelt.strip())
    try:
        parse_inputs(joined)
    except BadInput:
        return given.strip()
    return joined


def _read_init(text: str) -> tuple[str | None, str]:
    match = _INIT.search(text)
    if match is None:
        return None, text
    start, end = match.span()
    given = match["quoted"] or match["number"]
    if match["open"]:
        end = _closed_at(text, match.start("open"))
        given = text[match.start("open") : end]
    return given, f"{text[:start]} {text[end:]}"


def _closed_at(text: str, start: int) -> int:
    """Where the bracket that opens at `start` is closed; the text's end where it is not."""
    waiting: list[str] = []
    for position in range(start, len(text)):
        if text[position] in _CLOSING:
            waiting.append(_CLOSING[text[position]])
        elif waiting and text[position] == waiting[-1]:
            waiting.pop()
            if not waiting:
                return position + 1
    return len(text)
