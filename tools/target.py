"""The text a user gives to name a module, parsed into a Target. Nothing here runs the user's code.

Here: `file.py`, `file.py:ClassName`, input specifications such as `f32[16,1024],i64[16]:1000`, constructor
literals. Not here: building the module (tools.user_module).
Invariant: a Target holds the file's text, so that a run does not change when the file does.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from memory.errors import BadInput
from memory.records import DType, Target, TensorSpec

Literal = (
    None
    | bool
    | int
    | float
    | complex
    | str
    | bytes
    | list["Literal"]
    | tuple["Literal", ...]
    | dict[str, "Literal"]
)
Scalar = bool | int | float | str | None

_MAX_SOURCE_BYTES = 4 << 20
_ALIASES = {
    "float64": DType.F64,
    "float32": DType.F32,
    "float16": DType.F16,
    "bfloat16": DType.BF16,
    "int64": DType.I64,
    "int32": DType.I32,
    "int16": DType.I16,
    "int8": DType.I8,
    "uint8": DType.U8,
}
_TENSOR = re.compile(r"^([a-z]+[0-9]*)\[([0-9,\s]*)\](?::([0-9]+))?$")


@dataclass(frozen=True)
class TensorInput:
    """One tensor of an input specification."""

    spec: TensorSpec
    high: int = 2
    """Integer elements are drawn from 0 to `high - 1`; written `i64[16]:1000`."""


def parse_target(text: str, *, inputs: str | None = None, init: str | None = None) -> Target:
    """Read `path/file.py` (its class `Model`) or `file.py:ClassName`, and check what can be checked unrun.

    inputs: such as `f32[16,1024],i64[16]`; without it the file must define `get_inputs()`.
    init: a Python literal: a list is positional, a dict keyword, anything else the only argument.
    Raises: BadInput naming the file, the line where known and the remedy.
    """
    path, class_name = _split(text)
    source = _read(path)
    try:
        tree = ast.parse(source, filename=str(path))
    except SyntaxError as error:
        raise BadInput(f"{path}:{error.lineno}: syntax error: {error.msg}; correct the file") from error
    except ValueError as error:
        raise BadInput(f"{path}: cannot be parsed: {error}") from error
    names = _bound_names(tree)
    if class_name not in names and "*" not in names:
        raise BadInput(f"{path}: {no_class(class_name, _class_names(tree))}")
    if inputs is None and "get_inputs" not in names and "*" not in names:
        raise BadInput(
            f"{path}: defines no get_inputs(); add one that returns forward's arguments as a list, or give their"
            " shapes with --inputs 'f32[16,1024]'"
        )
    if inputs is not None:
        parse_inputs(inputs)
    if init is not None:
        parse_init(init)
    return Target(path=str(path), source=source, class_name=class_name, inputs=inputs, init=init)


def no_class(wanted: str, found: list[str]) -> str:
    """The complaint that a file lacks a class, with the ones it has."""
    listed = ", ".join(found) if found else "none"
    remedy = f"name one as FILE:{found[0]}" if found else "define an nn.Module class named Model"
    return f"defines no class {wanted!r} (classes found: {listed}); {remedy}"


def parse_inputs(text: str) -> tuple[TensorInput | Scalar, ...]:
    """Parse forward's arguments: tensors such as `f32[2,3]` and plain numbers, True, False or None.

    Raises: BadInput naming the item that cannot be read.
    """
    items = [item.strip() for item in re.split(r",(?![^\[]*\])", text)]
    if items == [""]:
        raise BadInput(
            "--inputs is empty; write one item for each argument of forward, such as 'f32[16,1024]'"
        )
    return tuple(_parse_item(item) for item in items)


def parse_init(text: str) -> tuple[tuple[Literal, ...], dict[str, Literal]]:
    """Constructor arguments (positional, keyword) of a Python literal. Raises BadInput for anything else."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise BadInput(
            f"--init {text!r} is not a Python literal; write a list such as '[1024, 1e-5]' or a dict such as"
            " '{\"features\": 1024}'"
        ) from error
    if isinstance(value, dict):
        if not all(isinstance(key, str) and key.isidentifier() for key in value):
            raise BadInput(f"--init {text!r}: a dict gives keyword arguments, so its keys must be names")
        return (), value
    return (tuple(value), {}) if isinstance(value, list | tuple) else ((value,), {})


def _parse_item(item: str) -> TensorInput | Scalar:
    match = _TENSOR.match(item)
    if match is None:
        try:
            value = ast.literal_eval(item)
        except (ValueError, SyntaxError) as error:
            raise BadInput(
                f"--inputs: cannot read {item!r}; write a tensor as dtype[sizes], such as f32[16,1024] or"
                " i64[16]:1000, or a plain number"
            ) from error
        if value is None or isinstance(value, bool | int | float | str):
            return value
        raise BadInput(f"--inputs: {item!r} is neither a tensor nor a plain number")
    name, sizes, high = match.groups()
    known = {**{d.value: d for d in DType}, **_ALIASES}
    if name not in known:
        raise BadInput(
            f"--inputs: unknown dtype {name!r} in {item!r}; known: {', '.join(d.value for d in DType)}"
        )
    dtype = known[name]
    if high is not None and (dtype.is_floating or dtype is DType.BOOL or int(high) < 1):
        raise BadInput(f"--inputs: {item!r}: ':{high}' bounds integers (0 to {high} exclusive, at least 1)")
    shape = tuple(int(size) for size in sizes.split(",") if size.strip())
    return TensorInput(TensorSpec.dense(shape, dtype), int(high) if high is not None else 2)


def _split(text: str) -> tuple[Path, str]:
    head, colon, tail = text.rpartition(":")
    if not colon or "/" in tail or tail.endswith(".py"):
        head, tail = text, "Model"
    if not tail.isidentifier():
        raise BadInput(f"target {text!r}: {tail!r} is not a class name; write FILE.py or FILE.py:ClassName")
    path = Path(head).expanduser()
    if not path.exists():
        raise BadInput(f"target {text!r}: no file {str(path)!r}; give the path of a Python file")
    if not path.is_file():
        raise BadInput(f"target {text!r}: {str(path)!r} is not a file; give the path of a Python file")
    return path.resolve(), tail


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _MAX_SOURCE_BYTES:
            raise BadInput(f"{path}: larger than {_MAX_SOURCE_BYTES >> 20} MiB; give a Python source file")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error


def _class_names(tree: ast.Module) -> list[str]:
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


def _bound_names(tree: ast.Module) -> set[str]:
    """Names that the module's top level may bind, whichever branch it takes; `*` for a star import."""
    names: set[str] = set()
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        pending.extend(ast.iter_child_nodes(node))
    return names
