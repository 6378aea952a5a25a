"""Code inside a message: found, completed and examined without running it. Pure.

Not here: what the rest of the message says (graph.chat_intents), building the module (tools.user_module).
Covers: fenced blocks, and plain text with `class X(nn.Module)` in it. Does not cover: code that cannot be told from
prose, such as a statement that reads like a sentence.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(
    r"(?P<fence>`{3,})[ \t]*(?P<language>[\w+.-]*)(?:[ \t]+(?P<file>[\w.-]+\.py))?[ \t]*\r?\n"
    r"(?P<body>.*?)(?:^[ \t]*(?P=fence)`*|\Z|(?P=fence)`*)",
    re.DOTALL | re.MULTILINE,
)
_PYTHON = ("", "python", "py", "python3", "pycon", "torch", "pytorch")
_MODULE_CLASS = re.compile(r"^[ \t]*class\s+\w+\s*\([^)]*Module[^)]*\)\s*:", re.MULTILINE)
_MIDLINE_CLASS = re.compile(r"(?<=[:\s])class\s+\w+\s*\([^)]*Module[^)]*\)\s*:[ \t]*$", re.MULTILINE)
_CODE_LINE = re.compile(
    r"\s*$|[ \t]+\S|import\s+\w|from\s+[\w.]+\s+import\s|class\s+\w+\s*[(:]|(?:async\s+)?def\s+\w+\s*\(|@\w|#|[)\]}]"
    r"|(?:if|for|while|with|else|elif|try|except|finally)\b.*:\s*(?:#.*)?$"
    r"|[A-Za-z_][\w.]*(?:\s*:\s*[\w\[\], .]+)?\s*=[^=]"
    r"|\"\"\"|'''"
)
FIRST_LINE = re.compile(
    r"(?:import\s+[\w.]+(?:\s+as\s+\w+)?(?:\s*,.*)?\s*$|from\s+[\w.]+\s+import\s|class\s+\w+\s*[(:]|def\s+\w+\s*\(|@\w)"
)
"""How a line of code begins that no sentence begins with."""
_IMPORTS = {
    "torch": "import torch",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
    "math": "import math",
    "np": "import numpy as np",
}
"""What people leave out when they paste a class."""
_MAX_TAIL_LINES = 60


@dataclass(frozen=True)
class SourceFacts:
    """What a file defines."""

    modules: tuple[str, ...]
    """Classes that derive from a Module, in order."""
    candidates: tuple[str, ...]
    """Those that no other class of the file uses: what a person means by 'this module'."""
    has_inputs: bool
    has_init: bool
    needs: dict[str, tuple[str, ...]]
    """Class -> constructor arguments without a default."""


def split_code(text: str) -> tuple[str | None, str]:
    """The Python code in a message, None where there is none, and the text around it."""
    fences = [m for m in _FENCE.finditer(text) if m["language"].lower() in _PYTHON]
    blocks = [textwrap.dedent(m["body"]).strip("\n") for m in fences]
    if any(_looks_like_code(block) for block in blocks):
        prose = text
        for match in reversed(fences):
            prose = f"{prose[: match.start()]}\n{prose[match.end() :]}"
        return "\n\n".join(blocks) + "\n", prose
    return _split_plain(text)


def fenced(code: str, file: str = "") -> str:
    """A file's text as a fenced block, whatever fences are in it; file: its name, kept where it is a plain one."""
    longest = max((len(run) for run in re.findall(r"`{3,}", code)), default=2)
    fence = "`" * (longest + 1)
    name = f" {file}" if re.fullmatch(r"[\w.-]+\.py", file) else ""
    return f"{fence}python{name}\n{code.rstrip()}\n{fence}"


def file_of(text: str) -> str:
    """The name of the file that a message's code came from; empty where it was typed or pasted."""
    return next((match["file"] for match in _FENCE.finditer(text) if match["file"]), "")


def segments(text: str) -> Iterator[tuple[bool, str]]:
    """A message in its order: (True, code of a block) and (False, words between blocks)."""
    end = 0
    for match in _FENCE.finditer(text):
        if before := text[end : match.start()].strip():
            yield False, before
        yield True, match["body"].rstrip()
        end = match.end()
    if rest := text[end:].strip():
        yield False, rest


def complete_imports(code: str) -> tuple[str, tuple[str, ...]]:
    """The code with the imports that its names lack, and those imports. Code that does not parse stays as it is."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return code, ()
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            bound.add(node.name)
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    missing = tuple(line for name, line in _IMPORTS.items() if name in used - bound)
    if not missing or "*" in bound:
        return code, ()
    return _with_imports(code, tree, missing), missing


def examine_source(code: str) -> SourceFacts | None:
    """What a file defines; None where it does not parse."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return None
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    modules = tuple(name for name in classes if _is_module(name, classes))
    used = {
        inner.id
        for name, node in classes.items()
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and inner.id != name
    }
    functions = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
    assigned = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    imported = {
        alias.asname or alias.name
        for n in ast.walk(tree)
        if isinstance(n, ast.ImportFrom | ast.Import)
        for alias in n.names
    }
    names = functions | assigned | imported
    return SourceFacts(
        modules=modules,
        candidates=tuple(name for name in modules if name not in used) or modules,
        has_inputs="get_inputs" in names or "*" in names,
        has_init="get_init_inputs" in names or "*" in names,
        needs={name: _required(classes[name]) for name in modules},
    )


def _looks_like_code(block: str) -> bool:
    return bool(
        _MODULE_CLASS.search(block) or re.search(r"^\s*(?:class|def|import|from)\s+\w", block, re.MULTILINE)
    )


def _split_plain(text: str) -> tuple[str | None, str]:
    if not _MODULE_CLASS.search(text):
        if not (midline := _MIDLINE_CLASS.search(text)):
            return None, text
        text = f"{text[: midline.start()]}\n{text[midline.start() :]}"
    lines = text.splitlines()
    indents = [len(line) - len(line.lstrip()) for line in lines if FIRST_LINE.match(line.lstrip())]
    indent = min(indents)
    first = next(
        i
        for i, line in enumerate(lines)
        if len(line) - len(line.lstrip()) == indent and FIRST_LINE.match(line.lstrip())
    )
    body = [line[indent:] if line[:indent].isspace() else line for line in lines[first:]]
    end = _code_end(body)
    return "\n".join(body[:end]).rstrip() + "\n", "\n".join(
        [*lines[:first], *lines[first + len(body[:end]) :]]
    )


def _code_end(lines: list[str]) -> int:
    """Number of lines, from the first on, that are code: what parses, or else what looks like it."""
    for end in range(len(lines), max(0, len(lines) - _MAX_TAIL_LINES), -1):
        # One word of prose parses, as a name.
        if _CODE_LINE.match(lines[end - 1]) and _parses("\n".join(lines[:end])):
            return end
    return next((i for i, line in enumerate(lines) if not _CODE_LINE.match(line)), len(lines))


def _parses(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError):
        return False
    return True


def _with_imports(code: str, tree: ast.Module, missing: tuple[str, ...]) -> str:
    """Imports stand behind a docstring and `from __future__`, which have to come first."""
    last = 0
    for node in tree.body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (docstring or future):
            break
        last = node.end_lineno or 0
    lines = code.splitlines()
    return "\n".join([*lines[:last], *missing, "", *lines[last:]]) + "\n"


def _is_module(name: str, classes: dict[str, ast.ClassDef], depth: int = 0) -> bool:
    bases = [ast.unparse(base) for base in classes[name].bases]
    if any(base.split(".")[-1].endswith("Module") or base.startswith("nn.") for base in bases):
        return True
    return depth < 20 and any(
        _is_module(base, classes, depth + 1) for base in bases if base in classes and base != name
    )


def _required(node: ast.ClassDef) -> tuple[str, ...]:
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            positional = [*item.args.posonlyargs, *item.args.args][1:]
            plain = positional[: len(positional) - len(item.args.defaults)]
            pairs = zip(item.args.kwonlyargs, item.args.kw_defaults, strict=True)
            keyword = [argument for argument, default in pairs if default is None]
            return tuple(argument.arg for argument in (*plain, *keyword))
    return ()
