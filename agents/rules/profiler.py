"""The profiler by rules: reads the verifier's profile and says what could relieve the bottleneck."""

from __future__ import annotations

from agents.schemas import Member, Reading, Scene
from memory.errors import WarpsmithError

_ADVICE = {
    "memory": "move fewer bytes: fuse neighbours, keep rows on chip, widen the accesses",
    "compute": "use a faster unit or do less arithmetic per element",
    "latency": "give each thread more independent work in flight",
    "launch": "launch fewer kernels: fuse, or replay the plan as a CUDA graph",
    "occupancy": "use fewer registers or less shared memory per block",
    "library": "the heavy step is a library call: fuse around it or replace it",
}


class RulesProfiler:
    """Needs no model: the numbers speak."""

    def read(self, member: Member, scene: Scene) -> Reading:  # noqa: ARG002
        """Raises WarpsmithError for a candidate that has no profile."""
        profile = member.evaluation.profile
        if profile is None:
            raise WarpsmithError(f"candidate {member.candidate.id} did not pass and has no profile to read")
        return Reading(profile.bottleneck, profile.explanation, _ADVICE[profile.bottleneck])
