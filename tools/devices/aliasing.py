"""Which library results must not share memory with their arguments. Pure.

A library call may return a view (a reshape, a permutation) of its argument. That is free and right as long as nobody
writes the memory again; where a later step does, the result needs memory of its own.
"""

from __future__ import annotations

from tools.binding import BoundKernel, BoundLibrary, BoundPlan, BoundStep
from tools.signature import Signature, kernel_signatures


def must_own(plan: BoundPlan) -> tuple[bool, ...]:
    """Per step, prepare first: whether a library call's results must be copied. False for kernels.

    Covers: kernels and library calls that write, later, a tensor that the result may be a view of, or the result
    itself. A kernel whose signature cannot be read counts as writing every tensor it is given.
    """
    signatures = kernel_signatures(plan.source)
    steps = (*plan.prepare, *plan.steps)
    written_later: list[set[str]] = []
    later: set[str] = set()
    for step in reversed(steps):
        written_later.append(set(later))
        later |= _written(step, signatures)
    written_later.reverse()
    origins: dict[str, set[str]] = {}
    owned: list[bool] = []
    for step, rewritten in zip(steps, written_later, strict=True):
        if isinstance(step, BoundKernel):
            owned.append(False)
            continue
        sources = set(step.reads).union(*(origins.get(name, set()) for name in step.reads))
        outputs = {name for name in step.outputs if name is not None}
        owned.append(bool((sources | outputs) & rewritten))
        for name in outputs:
            origins[name] = sources
    return tuple(owned)


def _written(step: BoundStep, signatures: dict[str, Signature]) -> set[str]:
    if isinstance(step, BoundLibrary):
        return {name for name in step.outputs if name is not None}
    signature = signatures.get(step.entry)
    params = signature.params if signature and len(signature.params) == len(step.args) else None
    return {
        argument
        for index, argument in enumerate(step.args)
        if isinstance(argument, str) and (params is None or not params[index].const)
    }
