"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def above_zero(value: float | None) -> float | None:
    """Refuse a number that is not above 0, in the option's own name. Raises BadParameter."""
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value:g} is not above 0")
    return value


Target = Annotated[
    str, typer.Argument(help="path/file.py (class Model, get_inputs, get_init_inputs) or file.py:ClassName")
]
Inputs = Annotated[str | None, typer.Option(help='input tensors, such as "f32[16,1024],i64[16]"')]
Init = Annotated[str | None, typer.Option(help='constructor arguments as a Python literal, such as "[1024]"')]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object and no tables")]
Home = Annotated[
    Path | None, typer.Option(help="where runs, archive and caches live [default: ~/.warpsmith]")
]
Gpu = Annotated[
    str | None,
    typer.Option(
        "--gpu",
        "--arch",
        help="GPU to simulate: h200, h100, a100, l40s, rtx4090, b200 or an architecture such as sm_90a",
    ),
]
DeviceOption = Annotated[str | None, typer.Option("--device", help="auto, simulator or cuda [default: auto]")]
BaselinesOption = Annotated[
    str | None,
    typer.Option(
        "--baselines",
        help="what a winner must beat on a GPU: eager, compile too, or best of its modes too [default: eager]",
    ),
]
Models = Annotated[
    str | None,
    typer.Option(
        "--models",
        help='language models with weights, such as gpt-5:0.6,o4-mini:0.4; "" for rules [default: rules]',
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option("--max-cost", callback=above_zero, help="USD that the models may cost at most"),
]
MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens", min=1, help="tokens that the models may read and write at most"),
]
Pool = Annotated[
    str | None,
    typer.Option(
        "--pool", help="judge candidates on this machine (local) or on a Ray cluster (ray) [default: local]"
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        help="the cluster's head node, host:port [default: the cluster this machine is in, else one of its own]",
    ),
]
ArchiveUrl = Annotated[
    str | None,
    typer.Option(
        "--archive-url",
        help="a Chroma server for the archive, such as http://10.0.0.1:8000 [default: under --home]",
    ),
]
SeedWith = Annotated[
    list[str] | None,
    typer.Option(
        "--seed-with",
        help="id of an innovation that the first generation begins with, or enough of it; may be repeated",
    ),
]
DeviceBudget = Annotated[
    float | None,
    typer.Option(
        "--device-budget-s",
        callback=above_zero,
        help="seconds of searching on the device at most",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="no live progress")]
