"""Rules that need no syntax tree: directives, forbidden names, and ways of spelling a name so that rules miss it.

Text is looked at with line splices joined and comments blanked; strings are looked into only for inline PTX.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.lint_findings import LintFinding
from tools.nvrtc_source import file_directives, forbidden_directives, splice
from tools.nvrtc_syntax import mask_text

ALLOWED_HEADERS = re.compile(
    r"""cuda_(?:fp16|bf16|fp8|fp6|fp4)\.h | mma\.h | cuda_pipeline\.h | cuda_awbarrier\.h | math_constants\.h
    | vector_types\.h | vector_functions\.h | cuda_runtime\.h | cuda\.h
    | cooperative_groups\.h | cooperative_groups/(?:\w+/)*\w+\.h
    | cuda/(?:pipeline|barrier|atomic|semaphore|latch|functional|annotated_ptr|warp|ptx|cmath|numeric|bit|mdspan)
    | cuda/std/(?!chrono\b|ctime\b)\w+ | cub/(?:block|warp|thread)/\w+\.cuh""",
    re.VERBOSE,
)
ALLOWED_PRAGMAS = re.compile(
    r"unroll|nounroll|once|nv_exec_check_disable|nv_diagnostic|nv_diag_(?:suppress|default|warning|remark)"
)
ALLOWED_ATTRIBUTES = re.compile(
    r"aligned|always_inline|noinline|unused|may_alias|nodiscard|maybe_unused|fallthrough|likely|unlikely"
)
_HEADERS_IN_WORDS = (
    "cuda_fp16.h, cuda_bf16.h, cuda_fp8.h, mma.h, cooperative_groups.h, cuda/std/*, cub/block/*"
)

_DIRECTIVE = re.compile(r"^[ \t]*(?:#|%:)[ \t]*(?P<word>\w*)(?P<rest>[^\n]*)", re.MULTILINE)
_OPERATOR_PRAGMA = re.compile(r"\b(?:_Pragma|__pragma)\b")
_ATTRIBUTE = re.compile(
    r"\b__attribute(?:__)?\b(?:\s{0,20}\(\((?P<body>[^;{}]{0,200}?)\)\))?|\[\s{0,20}\[(?:(?P<cxx>[^\[\]]{0,200})\]\])?"
)
_PASTE = re.compile(r"##|%:%:|\?\?=")
_ESCAPED_NAME = re.compile(r"\\[uU][0-9a-fA-F]{4}")
_RESERVED = re.compile(
    r"(?:__\w+|const|constexpr|static|extern|volatile|if|else|for|while|return|int|float|double|void|char|bool|short"
    r"|long|unsigned|signed|struct|class|template|typename|sizeof|threadIdx|blockIdx|blockDim|gridDim)$"
)
_HOST_QUALIFIER = re.compile(r"\b__host__\b")
_HOST_NAMES = re.compile(
    r"\b(?:system|popen|posix_spawnp?|exec[lv]p?e?|fork|vfork|dlopen|dlsym|mprotect|mmap|syscall|ptrace|setenv|putenv)\b"
)
_HOST_CALLS = re.compile(
    r"(?<![\w.>])(?:fopen|open|openat|creat|unlink|remove|rename|socket|connect|getenv|exit|_exit|abort|kill|raise|signal"
    r"|sigaction|setjmp|longjmp|pthread_\w+|atexit|sleep|usleep)\s*\("
)
_RUNTIME_API = re.compile(
    r"\b(?:cuda|cu)(?:Malloc|Free|Memcpy|Memset|Launch|Stream|Event|Graph|Device|Get|Set)\w*\s*\("
)
_LAUNCH = re.compile(r"<<<")
_TIME = re.compile(
    r"\b(?:clock64|clock_hi|__globaltimer|globaltimer(?:_lo|_hi)?|chrono)\b|(?<![\w.>])clock\s*\("
)
_TIME_IN_PTX = re.compile(r"%(?:clock(?:64|_hi)?|globaltimer(?:_lo|_hi)?)\b")
_ASM = re.compile(r"\b(?:asm|__asm__|__asm)\b")
_LOOSE_END = re.compile(r"\\[ \t\v\f]+\r?$", re.MULTILINE)
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z)')

_WORDS: tuple[tuple[str, re.Pattern[str], str, str], ...] = (
    ("token-pasting", _PASTE, "builds names out of pieces", "write the name out, or use a template"),
    ("escaped-name", _ESCAPED_NAME, "spells a name with character escapes", "use plain ASCII identifiers"),
    ("host-code", _HOST_QUALIFIER, "marks host code", "write device code only: `__device__` alone"),
    ("host-call", _HOST_NAMES, "names a host system function", "a kernel cannot call the operating system"),
    ("host-call", _HOST_CALLS, "calls a host system function", "a kernel cannot call the operating system"),
    (
        "runtime-api",
        _RUNTIME_API,
        "calls the CUDA runtime",
        "declare buffers and launches in the plan instead",
    ),
    ("device-launch", _LAUNCH, "launches a kernel from device code", "make it a step of the plan"),
    ("reads-time", _TIME, "reads a clock", "results and speed must not depend on the time: remove it"),
)


def text_findings(source: str) -> list[LintFinding]:
    """Findings of every textual rule."""
    text = mask_text(splice(source))
    found = [*_includes(source), *_directives(text), *_attributes(text), *_inline_ptx(source, text)]
    for match in _LOOSE_END.finditer(source):
        message = "a backslash followed by blanks: compilers disagree on whether the line goes on"
        found.append(
            LintFinding("loose-splice", "severe", _line(source, match.start()), message, "remove the blanks")
        )
    for rule, pattern, what, remedy in _WORDS:
        for match in pattern.finditer(text):
            line = _line(text, match.start())
            found.append(LintFinding(rule, "severe", line, f"`{match.group().strip('( ')}` {what}", remedy))
    return found


def _includes(source: str) -> Iterator[LintFinding]:
    remedy = f"include only {_HEADERS_IN_WORDS}, by a literal `<name>`"
    refused = dict(forbidden_directives(source))
    for line, why in refused.items():
        yield LintFinding("include", "severe", line, why, remedy)
    for item in file_directives(source):
        if item.line not in refused and item.header and not ALLOWED_HEADERS.fullmatch(item.header):
            message = f"<{item.header}> is not on the list of allowed headers"
            yield LintFinding("include", "severe", item.line, message, remedy)


def _directives(text: str) -> Iterator[LintFinding]:
    for match in _DIRECTIVE.finditer(text):
        line, word, rest = _line(text, match.start()), match["word"], match["rest"].strip()
        if word == "line" or word.isdigit():
            yield LintFinding("line-directive", "severe", line, "#line falsifies line numbers", "remove it")
        elif re.search(r'R"', rest):
            message = "a raw string in a directive can hide the lines after it"
            yield LintFinding("raw-string", "severe", line, message, "use an ordinary string")
        elif word == "pragma":
            yield from _pragma(rest.split("(")[0].split()[:1], line)
        elif (
            word in ("define", "undef") and (name := re.match(r"\w+", rest)) and _RESERVED.match(name.group())
        ):
            message = f"`#{word} {name.group()}` changes a reserved name"
            yield LintFinding("reserved-name", "severe", line, message, "choose another macro name")
    for match in _OPERATOR_PRAGMA.finditer(text):
        # The string's inside is masked: an operator pragma is never needed, the directive says the same.
        message = "the pragma operator hides its text"
        yield LintFinding("pragma", "severe", _line(text, match.start()), message, "write a `#pragma` line")


def _pragma(words: list[str], line: int) -> Iterator[LintFinding]:
    if not words or not ALLOWED_PRAGMAS.fullmatch(words[0]):
        message = f"`#pragma {' '.join(words)}` is not allowed"
        yield LintFinding("pragma", "severe", line, message, "only `#pragma unroll`, `once` and `nv_diag_*`")


def _attributes(text: str) -> Iterator[LintFinding]:
    for match in _ATTRIBUTE.finditer(text):
        listing = match["body"] if match["body"] is not None else match["cxx"]
        if listing is None:
            listing = "unreadable"
        for name in re.findall(r"([A-Za-z_][\w:]*)\s*(?:\([^()]*\))?", re.sub(r"\([^()]*\)", "", listing)):
            plain = name.split("::")[-1].strip("_")
            if not ALLOWED_ATTRIBUTES.fullmatch(plain):
                message = f"attribute `{name}` is not allowed"
                remedy = "a kernel needs no attributes but launch bounds and alignment"
                yield LintFinding("attribute", "severe", _line(text, match.start()), message, remedy)


def _inline_ptx(source: str, text: str) -> Iterator[LintFinding]:
    """Inline assembly is allowed on a GPU, the simulator cannot run it; a clock read inside it is severe."""
    for match in _ASM.finditer(text):
        message = "inline PTX runs on a GPU only; the simulator cannot check it"
        remedy = "use an intrinsic or a header's wrapper where there is one"
        yield LintFinding("inline-ptx", "warning", _line(text, match.start()), message, remedy)
    spliced = splice(source)
    for string in _STRING.finditer(spliced):
        for match in _TIME_IN_PTX.finditer(string.group()):
            line = _line(spliced, string.start())
            remedy = "results and speed must not depend on the time: remove it"
            yield LintFinding("reads-time", "severe", line, f"`{match.group()}` reads a clock", remedy)


def _line(text: str, position: int) -> int:
    # A directive's match may begin on the newline before it.
    return text.count("\n", 0, position) + 1
