"""The compiler agent by rules: which failures are worth another attempt, and what to say about them."""

from __future__ import annotations

from agents.rules import tuner
from agents.schemas import CoderTask, Draft, RepairRequest
from memory.records import Evaluation, Status

MAX_REPAIRS = 2
_RESOURCE_RULES = frozenset(("shared_memory", "block_range", "grid_range", "memory"))

_INSTRUCTIONS = {
    Status.SCHEMA_ERROR: "The launch plan does not fit the problem or the kernels. Correct the named places.",
    Status.LINT_ERROR: "The source uses something that is not allowed. Remove it as each remedy says.",
    Status.COMPILE_ERROR: "The source does not compile. Mend the named lines and change nothing else.",
    Status.SANITIZER_ERROR: "The kernel touches memory it must not, or races. Guard the named accesses.",
    Status.RUNTIME_ERROR: "The kernel failed at run time. Find the faulting access or launch and mend it.",
    Status.OUT_OF_MEMORY: "The program needs more memory than there is. Use smaller buffers or tiles.",
    Status.INCORRECT: "The values are wrong. The pattern of the errors says where to look.",
}


class RulesCompiler:
    """Asks for at most `max_repairs` repairs of one proposal."""

    def __init__(self, max_repairs: int = MAX_REPAIRS) -> None:
        self._max_repairs = max_repairs

    def review(self, evaluation: Evaluation, attempt: int) -> RepairRequest | None:
        """None for a pass, a hang, a suspicious time, or once the attempts are used up."""
        instruction = _INSTRUCTIONS.get(evaluation.status)
        if instruction is None or attempt > self._max_repairs:
            return None
        # Warnings too: static analysis often names the line that a wrong value or a race comes from.
        found = sorted(evaluation.diagnostics, key=lambda d: not d.severe)
        return RepairRequest(
            attempt, evaluation.status, tuple(found), instruction + _passed_before(evaluation)
        )

    def mend(self, task: CoderTask, draft: Draft, request: RepairRequest) -> Draft | None:  # noqa: ARG002
        """Rules can mend one thing: a resource that ran out, by stepping every tunable down."""
        exhausted = request.status is Status.OUT_OF_MEMORY or any(
            d.severe and d.rule in _RESOURCE_RULES for d in request.diagnostics
        )
        values = tuner.smaller(draft.program)
        if not exhausted or not values:
            return None
        idea = f"{draft.idea}; needs less: {tuner.describe(values)}"
        return Draft(draft.program.with_values(values), draft.origin, idea, draft.techniques)


def _passed_before(evaluation: Evaluation) -> str:
    """Inputs on which the program was right: what fails only for large values, or only for NaN, is told by them."""
    within: dict[str, bool] = {}
    for found in evaluation.errors:
        right = found.error is not None and found.error <= found.allowed
        within[found.distribution] = within.get(found.distribution, True) and right
    passed = [name for name, right in within.items() if right]
    return f" Before that it passed {', '.join(passed)} inputs." if passed else ""
