"""The compiler agent by rules: which failures are worth another attempt, and what to say about them."""

from __future__ import annotations

from agents.schemas import RepairRequest
from memory.records import Evaluation, Status

MAX_REPAIRS = 2

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
        severe = tuple(d for d in evaluation.diagnostics if d.severe)
        return RepairRequest(attempt, evaluation.status, severe, instruction)
