"""Export: one Python file with the winner, the user's own module as its fallback, and the facts at its head.

Here: the file put together and written. Not here: its head's sentences (tools.export_report), the plan as data
(tools.export_data), the user's text (tools.export_text), the code that runs in it (tools.export_steps,
tools.export_match, tools.export_cuda, tools.export_session).
Invariants: the same arguments give the same text; the text parses; it imports with torch alone; the user's code
stands in it as code, not as a string.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from string import Template

from memory.disk import replacing
from memory.errors import BadInput
from memory.records import Problem, Program
from tools.binding import BindError, BoundPlan, bind
from tools.export_data import plan_json
from tools.export_report import ExportReport, head_text
from tools.export_text import UserSource, docstring, literal, qualified, runtime_text
from tools.nvrtc_source import compose

__all__ = ["ExportReport", "export_module", "write_export"]

_RULE = "# " + "-" * 98

_FILE = Template('''\
$head
$futures
$rule
# The original module: used for everything the kernels were not made for.
$rule

$user

$rule
# The kernels (CUDA C++, compiled by NVRTC at the first call) and the plan that launches them.
$rule

_WARPSMITH_SOURCE = $source

_WARPSMITH_PLAN = $plan

_WARPSMITH_INIT = $init
"""The constructor arguments that were verified, as a literal; None where get_init_inputs gives them."""

$rule
# What runs the plan.
$rule

$runtime

$rule
# The optimized module.
$rule

$module
''')

_MODULE = Template('''\
import functools as _warpsmith_functools


@_warpsmith_functools.cache
def _warpsmith_plan():
    return _WarpsmithPlan(_WARPSMITH_PLAN, _WARPSMITH_SOURCE)


def _warpsmith_init():
    return _warpsmith_captured_init(_WARPSMITH_INIT, globals().get("get_init_inputs"))


class ModelNew($base):
    """$base with faster CUDA kernels where they apply; see the head of this file."""

    warpsmith_fallback_reason = "forward has not been called"
    """Why the last call ran the original forward; None where the kernels ran."""
    _warpsmith_launcher = _WarpsmithCudaLauncher()
    _warpsmith_forward = staticmethod($base.forward)

    @_warpsmith_functools.wraps($base.__init__)
    def __init__(self, *args, **kwargs):
        objection = _warpsmith_constructor_objection($base, _warpsmith_init, args, kwargs)
        $base.__init__(self, *args, **kwargs)
        self._warpsmith_session = _WarpsmithSession(self, objection)

    @_warpsmith_functools.wraps($base.forward)
    def forward(self, *args, **kwargs):
        if _warpsmith_torch.compiler.is_compiling() or _warpsmith_torch.jit.is_tracing():
            return $base.forward(self, *args, **kwargs)
        session = self.__dict__.get("_warpsmith_session")
        if session is None:  # called by the constructor
            return $base.forward(self, *args, **kwargs)
        try:
            result = session.run(self, _warpsmith_plan(), args, kwargs)
        except _WarpsmithUnusable as reason:
            self.__dict__["warpsmith_fallback_reason"] = str(reason)
        else:
            self.__dict__["warpsmith_fallback_reason"] = None
            return result
        return $base.forward(self, *args, **kwargs)

    def warpsmith_forget(self):
        """Prepare the weights again at the next call: needed only after writing to them through `.data`."""
        self._warpsmith_session.forget()

    @staticmethod
    def _warpsmith_get_inputs():
        return globals()["get_inputs"]()

    def _apply(self, *args, **kwargs):
        # .to(), .half() and the like; the constructor itself may call them.
        if "_warpsmith_session" in self.__dict__:
            self._warpsmith_session.forget()
        return $base._apply(self, *args, **kwargs)
''')


def export_module(
    problem: Problem,
    program: Program,
    report: ExportReport,
    *,
    constants: Mapping[str, bytes] | None = None,
) -> str:
    """The text of a file whose `ModelNew` runs `program` in place of the problem's module.

    constants: content (row-major, little-endian) of tensors that forward makes from numbers in its code, by value
    name; plain tensor attributes are read from the module and need no entry.
    Raises: BadInput where the module cannot be exported, with the remedy.
    """
    if problem.reduced_from is not None:
        raise BadInput("a reduced twin cannot be exported; export the problem it was made from")
    user = UserSource(problem.target)
    try:
        plan = bind(program, problem)
    except BindError as error:
        raise BadInput(f"the program does not fit the problem's shapes: {error}") from error
    futures = ", ".join(user.futures)
    text = _FILE.substitute(
        head=docstring(head_text(problem, report, user.foreign_imports)),
        futures=f"\nfrom __future__ import {futures}\n" if futures else "",
        user=user.body.strip("\n"),
        source=literal(_kernel_text(plan)),
        plan=literal(plan_json(plan, problem, report.arch, constants or {})),
        init=repr(problem.target.init),
        runtime=qualified(runtime_text(), user.bound).strip(),
        module=qualified(_MODULE.substitute(base=problem.target.class_name), user.bound).strip(),
        rule=_RULE,
    )
    try:
        compile(text, "<export>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise BadInput(f"{problem.target.path}: cannot stand in a file with other code: {error}") from error
    return text


def _kernel_text(plan: BoundPlan) -> str:
    """What NVRTC compiled when the program was verified, defines included; empty for a plan without kernels."""
    return compose(plan.source, tuple(sorted(plan.defines.items()))).plain if plan.entries else ""


def write_export(path: Path, text: str) -> None:
    """Write the file whole or not at all. Raises BadInput where it cannot be, DiskFull where it does not fit."""
    final = path.expanduser().resolve()
    try:
        with replacing(final) as draft, draft.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise BadInput(
            f"cannot write {str(path)!r}: {error.strerror}; choose a path in an existing, writable folder"
        ) from error
