"""A small document, and its two forms: Markdown, and one HTML file that needs nothing else. Pure.

Invariant: whatever stands in a block is text; neither form lets it become markup, a link or a script.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Heading:
    """A title; 1 is the document's own."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """Sentences."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """A table: columns whose name ends in a space are of numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Listing:
    """Text to be kept as it is."""

    text: str
    language: str = ""


@dataclass(frozen=True)
class Plot:
    """A drawing: SVG made by us, with escaped texts, which Markdown leaves out."""

    svg: str


Block = Heading | Paragraph | Items | Grid | Listing | Plot

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --soft: #646b73; --line: #d9dce0; --back: #ffffff; --box: #f5f6f8;
  --ours: #1b6ca8; --other: #8a9099; --floor: #2e7d32; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --soft: #9aa2ab; --line: #3a3f45; --back: #16181b;
  --box: #202428; --ours: #6bb3e8; --other: #8d949c; --floor: #7fc784; } }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: var(--ink); background: var(--back);
  font: 16px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; }
th.n { white-space: normal; }
th, td { padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
pre { background: var(--box); padding: .8rem; overflow-x: auto; font-size: .85rem; }
svg { max-width: 100%; height: auto; display: block; margin: 1rem 0; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; } svg .soft { fill: var(--soft); }
.ours { fill: var(--ours); stroke: var(--ours); } .other { fill: var(--other); stroke: var(--other); }
.floor { stroke: var(--floor); fill: var(--floor); }
svg path.axis { stroke: var(--line); fill: none; } .whisker { stroke: var(--ink); }
.line { fill: none; stroke-width: 2; }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def to_markdown(blocks: Sequence[Block]) -> str:
    """The document as Markdown, without its plots: their numbers stand in tables."""
    return "\n\n".join(text for block in blocks if (text := _markdown(block))) + "\n"


def to_html(blocks: Sequence[Block], title: str) -> str:
    """The document as one HTML file, plots included."""
    body = "\n".join(_html(block) for block in blocks)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def safe_markdown(text: str) -> str:
    """Text on one line that Markdown shows as it is."""
    joined = " ".join(text.split())
    # Where underscores, dots and the like mean nothing, they stay readable in the source.
    escaped = re.sub(r"([\\`*\[\]<>|~$&!]|(?<![\w])_|_(?![\w])|://|@|(?<=www)\.)", _escape, joined)
    # What begins a list, a title or a rule at the beginning of a line.
    return re.sub(r"^(?=[#+\-=:])", "\\\\", re.sub(r"^(\d+)(?=[.)](?:\s|$))", "&#8203;\\1", escaped))


def _escape(match: re.Match[str]) -> str:
    found = match[1]
    if found == "&":
        return "&amp;"
    return {"<": "&lt;", ">": "&gt;", "://": ":&#8203;//", "@": "&#8203;@", ".": "&#8203;."}.get(
        found, f"\\{found}"
    )


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {safe_markdown(block.text)}"
    if isinstance(block, Paragraph):
        return safe_markdown(block.text)
    if isinstance(block, Items):
        return "\n".join(f"- {safe_markdown(text)}" for text in block.texts)
    if isinstance(block, Listing):
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", block.text)), default=0))
        return f"{fence}{block.language}\n{block.text.rstrip()}\n{fence}"
    if isinstance(block, Grid):
        rule = ["---:" if name.endswith(" ") else "---" for name in block.columns]
        lines = [[safe_markdown(name) for name in block.columns], rule]
        lines += [[safe_markdown(cell) for cell in row] for row in block.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return ""


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{escape(block.text)}</h{block.level}>"
    if isinstance(block, Paragraph):
        return f"<p>{escape(block.text)}</p>"
    if isinstance(block, Items):
        return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in block.texts)}</ul>"
    if isinstance(block, Listing):
        return f"<pre><code>{escape(block.text)}</code></pre>"
    if isinstance(block, Grid):
        kinds = [' class="n"' if name.endswith(" ") else "" for name in block.columns]
        head = "".join(
            f"<th{k}>{escape(name.strip())}</th>" for name, k in zip(block.columns, kinds, strict=True)
        )
        rows = "".join(
            f"<tr>{''.join(f'<td{k}>{escape(cell)}</td>' for cell, k in zip(row, kinds, strict=True))}</tr>"
            for row in block.rows
        )
        return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    return block.svg
