"""Python text for exported files: the user's own source, our runtime's source, and strings as literals.

Here: text in, text out. Not here: what the text says (tools.export, tools.export_report).
Invariants: a literal evaluates to exactly the string it was made from; the user's code keeps its meaning and its
line breaks; nothing that the user's file binds can change what the runtime's names mean.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.util
import io
import keyword
import sys
import tokenize
from pathlib import Path

from memory.errors import BadInput
from memory.records import Target

RUNTIME_PARTS = ("export_steps", "export_match", "export_cuda", "export_session")
"""Modules of this package whose text travels, in order."""
_PREFIXES = ("_warpsmith", "_Warpsmith", "_WARPSMITH")
_OURS = "ModelNew"


def literal(text: str) -> str:
    """A Python expression equal to `text`: a raw triple-quoted string where one can hold it and hide nothing."""
    if all(c in "\n\t" or c.isprintable() for c in text):
        for quotes in ('"""', "'''"):
            candidate = f"r{quotes}\n{text}{quotes}"
            if quotes not in text and not text.endswith(("\\", quotes[0])):
                # The line break after the quotes is cut off again: code is easier to read from column 0.
                return f"{candidate}[1:]"
    lines = text.splitlines(keepends=True) or [""]
    return "(\n" + "".join(f"    {line!a}\n" for line in lines) + ")"


def docstring(text: str) -> str:
    """`text` as a docstring: what cannot be printed is shown as its escape, quotes and backslashes stay themselves."""
    shown = "".join(c if c == "\n" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    escaped = shown.replace("\\", "\\\\").replace('"', '\\"')
    return f'"""{escaped}\n"""'


def one_line(text: str) -> str:
    """`text` with every run of white space, line breaks included, as one space."""
    return " ".join(text.split())


class UserSource:
    """A user's file, parsed. Raises BadInput where an export could not carry it."""

    def __init__(self, target: Target) -> None:
        self.target = target
        text = target.source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        self._text = text.rstrip() + "\n"
        try:
            self._tree = ast.parse(self._text)
            self._text.encode()
        except (SyntaxError, ValueError) as error:
            raise BadInput(f"{target.path}: cannot be parsed: {error}; correct the file") from error
        self.bound = _bound_names(self._tree)
        taken = sorted(n for n in self.bound if n == _OURS or n.startswith(_PREFIXES))
        if taken:
            raise BadInput(f"{target.path}: defines {taken[0]!r}, which an exported file needs; rename it")

    @property
    def futures(self) -> tuple[str, ...]:
        """Names imported from `__future__`; they must come before everything else in a file."""
        names = (alias.name for node in self._future_nodes() for alias in node.names)
        return tuple(dict.fromkeys(names))

    @property
    def body(self) -> str:
        """The text with each `from __future__` statement replaced by `pass`, line numbers unchanged."""
        lines = self._text.encode().split(b"\n")
        for node in reversed(self._future_nodes()):
            assert node.end_lineno is not None and node.end_col_offset is not None
            first, last = node.lineno - 1, node.end_lineno - 1
            after = lines[last][node.end_col_offset :]
            kept = [lines[first][: node.col_offset] + b"pass" + after]
            lines[first : last + 1] = kept + [b""] * (last - first)
        return b"\n".join(lines).decode()

    @property
    def foreign_imports(self) -> tuple[str, ...]:
        """Top-level modules it imports besides Python's own and torch."""
        names: set[str] = set()
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add("." * node.level + (node.module or ""))
        tops = {name if name.startswith(".") else name.partition(".")[0] for name in names}
        return tuple(sorted(tops - set(sys.stdlib_module_names) - {"torch"}))

    def takes_exactly(self, count: int) -> bool:
        """True where the class's own forward can be seen to take `count` positional arguments and no other."""
        for node in self._tree.body:
            if isinstance(node, ast.ClassDef) and node.name == self.target.class_name:
                found = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "forward"]
                if len(found) != 1:
                    return False
                a = found[0].args
                return len(a.posonlyargs) + len(a.args) == count + 1 and not (
                    a.vararg or a.kwonlyargs or a.kwarg
                )
        return False

    def _future_nodes(self) -> list[ast.ImportFrom]:
        return [n for n in self._tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]


@functools.cache
def runtime_text() -> str:
    """The runtime's text: its parts without this project's imports."""
    imports: dict[str, None] = {"import builtins as _warpsmith_builtins": None}
    bodies: list[str] = []
    for name in RUNTIME_PARTS:
        text = _own_source(name)
        nodes = [n for n in ast.parse(text).body if isinstance(n, ast.Import | ast.ImportFrom)]
        ours = [n for n in nodes if any((a.asname or "").startswith(_PREFIXES) for a in n.names)]
        imports |= dict.fromkeys(ast.unparse(node) for node in ours)
        last = max(node.end_lineno or 0 for node in nodes)
        bodies.append("".join(text.splitlines(keepends=True)[last:]).strip())
    return "\n".join(imports) + "\n\n" + "\n\n\n".join(bodies) + "\n"


def qualified(text: str, bound: set[str]) -> str:
    """Python text of ours in which the builtins that a file with these names hides are reached another way."""
    hideable = {name for name in dir(builtins) if not keyword.iskeyword(name)}
    shadowed = hideable if "*" in bound else bound & hideable
    if not shadowed:
        return text
    edits: list[tuple[int, int]] = []
    previous = ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and token.string in shadowed and previous not in (".", "import", "as"):
            edits.append((token.start[0] - 1, token.start[1]))
        previous = token.string
    lines = text.splitlines(keepends=True)
    for row, column in reversed(edits):
        lines[row] = f"{lines[row][:column]}_warpsmith_builtins.{lines[row][column:]}"
    return "".join(lines)


def _own_source(name: str) -> str:
    spec = importlib.util.find_spec(f"tools.{name}")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).read_text(encoding="utf-8")


def _bound_names(tree: ast.Module) -> set[str]:
    """Names the module's top level may bind, whichever branch it takes; `*` for a star import."""
    names: set[str] = set()
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
            names |= {n for inner in ast.walk(node) if isinstance(inner, ast.Global) for n in inner.names}
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names.add(node.name)
        pending.extend(ast.iter_child_nodes(node))
    return names
