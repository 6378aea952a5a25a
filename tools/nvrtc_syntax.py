"""CUDA C++ as a syntax tree, and the object-like macros expanded that hide types, bounds and qualifiers.

The parser is tree-sitter's: it never fails, a broken part becomes an ERROR node and the rest stays readable. Every
function here keeps line numbers. Not here: a preprocessor; both branches of an `#if` are seen, function-like macros
stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser, Query, QueryCursor

# Whatever is left open is taken to run on to where it must end: looking for a close that is not there again and
# again would cost quadratic time on hostile text.
_QUOTED = r"""(?:"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z)|'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z))"""
_REMARK = r"(?://[^\n]*|/\*.*?(?:\*/|\Z))"
_TOKEN = re.compile(
    rf"""(?P<skip>{_REMARK}|(?:u8|[uUL])?R"(?P<raw>[^()\\\s]{{0,16}})\(.*?(?:\)(?P=raw)"|\Z)|{_QUOTED})
    |(?P<directive>^[ \t]*(?:\#|%:)(?:\\\r?\n|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|{_REMARK}
      |\.?\d(?:'?[\w.])*|[A-Za-z_]\w*|[^\n])*)
    |(?P<number>\.?\d(?:'?[\w.])*)
    |(?P<word>[A-Za-z_]\w*)""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+(?P<name>[A-Za-z_]\w*)(?:[ \t]+(?P<body>.*))?$", re.DOTALL)
_QUOTED_OR_COMMENT = re.compile(rf"{_QUOTED}|{_REMARK}", re.DOTALL)
_UNKNOWN_ATTRIBUTE = re.compile(
    r"\b(?:__cluster_dims__|__block_size__|__maxnreg__|__attribute__|__declspec|alignas|__align__)\s*"
    r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|\[\[[^\[\]]*\]\]"
)
_MAX_BODY_CHARS = 200
_MAX_NESTING = 6
_MAX_GROWTH_CHARS = 500_000


_MAX_QUERIED = 10_000
"""Nodes; a query over as many takes 0.1 s at worst."""
_REMEMBERED = 16
"""Texts whose readings are kept: one candidate's rules ask for the same again and again."""


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_cuda.language()))


@lru_cache(_REMEMBERED)
def parse_cuda(source: str) -> Node:
    """The root of the syntax tree; positions are 0-based rows.

    Blanked out first: attributes the grammar does not know, which would turn a kernel into an ERROR node, and
    comments, since tree-sitter takes quadratic time over unclosed ones.
    """
    text = _TOKEN.sub(_without_comments, source)
    return _parser().parse(_UNKNOWN_ATTRIBUTE.sub(_spaces, text).encode()).root_node


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, in source order."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(current.children))


def nodes_of(root: Node, *kinds: str) -> list[Node]:
    """Those nodes that `walk` gives whose type is one of `kinds`, in its order.

    Asked of the parser's own library, for making an object of every node takes longer than parsing; but its queries
    take quadratic time over hostile trees, so large ones are walked.
    """
    if root.descendant_count > _MAX_QUERIED:
        return [node for node in walk(root) if node.type in kinds]
    found = QueryCursor(_query(kinds)).captures(root).get("found", [])
    # Where two begin at one place the outer one comes first.
    return sorted(found, key=lambda node: (node.start_byte, -node.end_byte, -node.descendant_count))


@cache
def _query(kinds: tuple[str, ...]) -> Query:
    language = _parser().language
    assert language is not None
    return Query(language, " ".join(f"({kind}) @found" for kind in kinds))


def text_of(node: Node | None) -> str:
    """The source text of a node; empty for None."""
    return node.text.decode(errors="replace") if node is not None and node.text is not None else ""


def depth_of(root: Node) -> int:
    """How deep the tree is, counted without recursion."""
    deepest, stack = 0, [(root, 1)]
    while stack:
        node, level = stack.pop()
        deepest = max(deepest, level)
        stack.extend((child, level + 1) for child in node.children)
    return deepest


def line_at(node: Node) -> int:
    """The 1-based line a node starts on."""
    return node.start_point.row + 1


@lru_cache(_REMEMBERED)
def mask_text(source: str) -> str:
    """The source with comments and the insides of strings blanked out, line by line of the same length."""

    def blank(match: re.Match[str]) -> str:
        whole = match.group()
        if match["skip"] is None or whole.startswith("/"):
            return _without_comments(match)
        inside = "".join(c if c == "\n" else " " for c in whole[1:-1])
        return whole[0] + inside + whole[-1] if len(whole) > 1 else whole

    return _TOKEN.sub(blank, source)


@lru_cache(_REMEMBERED)
def expand_macros(source: str, defines: tuple[tuple[str, str], ...] = ()) -> str:
    """Replace object-like macros, those of `defines` and those the source defines, outside strings and directives.

    A macro the source defines more than once keeps its first body.
    """
    macros = {name: value for name, value in defines if "(" not in name}
    for match in _TOKEN.finditer(source):
        if match["directive"] is not None and (define := _DEFINE.match(match["directive"])):
            body = _QUOTED_OR_COMMENT.sub(
                lambda m: m.group() if m.group()[0] in "\"'" else " ", define["body"] or ""
            )
            body = body.replace("\\\n", " ").replace("\\\r\n", " ")
            body = " ".join(body.split())
            if len(body) <= _MAX_BODY_CHARS:
                macros.setdefault(define["name"], body)

    known: dict[str, str] = {}
    budget = _MAX_GROWTH_CHARS

    def replace(match: re.Match[str]) -> str:
        nonlocal budget
        if not match["word"] or match["word"] not in macros or budget < 0:
            return match.group()
        body = _expand(match["word"], macros, known, frozenset())
        budget -= len(body)
        return body

    return _TOKEN.sub(replace, source)


def _expand(word: str, macros: dict[str, str], known: dict[str, str], busy: frozenset[str]) -> str:
    """The macro's body with the macros in it replaced. Each macro is worked out once: no billion laughs."""
    if word in known:
        return known[word]
    if word not in macros or word in busy or len(busy) > _MAX_NESTING:
        return word
    body = re.sub(
        r'"(?:\\.|[^"\\])*"|[A-Za-z_]\w*',
        lambda m: (
            m.group() if m.group().startswith('"') else _expand(m.group(), macros, known, busy | {word})
        ),
        macros[word],
    )
    known[word] = body if len(body) <= _MAX_BODY_CHARS * 4 else word
    return known[word]


def _without_comments(match: re.Match[str]) -> str:
    """One token of `_TOKEN` with spaces for what is a comment of it."""
    if match["directive"] is not None:
        return _QUOTED_OR_COMMENT.sub(
            lambda m: m.group() if m.group()[0] in "\"'" else _spaces(m), match.group()
        )
    is_comment = match["skip"] is not None and match.group().startswith("/")
    return _spaces(match) if is_comment else match.group()


def _spaces(match: re.Match[str]) -> str:
    return "".join(c if c == "\n" else " " for c in match.group())
