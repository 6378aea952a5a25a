"""Rules against code that asks which compiler or which run it is in, and behaves differently there.

A program is verified through one compiler and shipped through another; text that can tell them apart could be right in
one and wrong in the other. So a conditional directive may ask only about the plan's own dims and tunables and macros
that the source defines, and no predefined macro or compiler intrinsic may be named at all.
Does not cover: differences of arithmetic between CPU and GPU (float to int conversion out of range, say).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.lint_findings import LintFinding
from tools.nvrtc_source import splice
from tools.nvrtc_syntax import mask_text

_DIRECTIVE = re.compile(r"^[ \t]*(?:#|%:)[ \t]*(?P<word>\w+)(?P<rest>[^\n]*)", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_]\w*")
_ASKING = frozenset(("if", "ifdef", "ifndef", "elif", "elifdef", "elifndef"))
_ALWAYS_KNOWN = frozenset(("defined", "true", "false", "and", "or", "not", "__CUDA_ARCH__"))
_PREDEFINED = re.compile(
    r"\b(?:__[A-Z]\w*|_[A-Z]\w*__|__\w+__|SIM_\w*|sim_\w*|__builtin_\w+|__sim\w*|linux|unix|__func__)\b"
)
_CUDA_WORDS = frozenset(
    "__CUDA_ARCH__ __global__ __device__ __shared__ __constant__ __restrict__ __launch_bounds__ __forceinline__ "
    "__noinline__ __managed__ __grid_constant__ __host__ __align__ __cluster_dims__ __maxnreg__ __inline__ "
    "__volatile__ __asm__ __attribute__ __declspec__ __builtin_align__ __nv_pure__".split()
)
_REMEDY = "the same text must mean the same to every compiler: ask about dims and tunables only"


def environment_findings(source: str, defines: tuple[tuple[str, str], ...]) -> list[LintFinding]:
    """Conditionals on anything but the plan's own macros, and names that compilers predefine."""
    text = mask_text(splice(source))
    return [*_conditionals(text, defines), *_predefined(text)]


def _conditionals(text: str, defines: tuple[tuple[str, str], ...]) -> Iterator[LintFinding]:
    known = set(_ALWAYS_KNOWN) | {name for name, _ in defines}
    for match in _DIRECTIVE.finditer(text):
        if match["word"] == "define":
            known |= set(_NAME.findall(match["rest"])[:1])
    for match in _DIRECTIVE.finditer(text):
        if match["word"] not in _ASKING:
            continue
        for name in _NAME.findall(match["rest"]):
            if name not in known:
                line = text.count("\n", 0, match.start()) + 1
                message = f"#{match['word']} asks about {name!r}, which is neither a dim, a tunable nor defined here"
                yield LintFinding("asks-environment", "severe", line, message, _REMEDY)


def _predefined(text: str) -> Iterator[LintFinding]:
    for match in _PREDEFINED.finditer(text):
        if match.group() not in _CUDA_WORDS:
            line = text.count("\n", 0, match.start()) + 1
            message = f"names {match.group()!r}, by which compilers can be told apart"
            yield LintFinding("asks-environment", "severe", line, message, _REMEDY)
