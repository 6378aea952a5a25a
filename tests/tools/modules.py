"""Small user modules as text, and the files they are written to."""

from __future__ import annotations

import textwrap
from pathlib import Path

from memory.records import Target
from tools.target import parse_target

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


def source_of(forward: str, inputs: str, *, init: str = "pass", arguments: str = "x") -> str:
    """A file in KernelBench's form: `Model`, with these bodies, and `get_inputs`."""
    return (
        f"{HEAD}\n\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"{textwrap.indent(init, ' ' * 8)}\n\n    def forward(self, {arguments}):\n"
        f"{textwrap.indent(forward, ' ' * 8)}\n\n\ndef get_inputs():\n    return {inputs}\n"
    )


def written(folder: Path, source: str) -> Path:
    """The file that holds this source."""
    path = folder / "user_file.py"
    path.write_text(source)
    return path


def target_of(folder: Path, forward: str, inputs: str, *, init: str = "pass", arguments: str = "x") -> Target:
    """The parsed target of such a file."""
    return parse_target(str(written(folder, source_of(forward, inputs, init=init, arguments=arguments))))
