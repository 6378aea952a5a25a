"""The nouns of Warpsmith as frozen, validated, content-hashed records: the one place to import them from.

Here: what is stored, sent between processes and hashed. Not here: how any of it is computed.
Invariants: a record's identity covers every field that changes behaviour, prefixed with its class and schema
version; timing exists if and only if an evaluation PASSED; a time says whether it was measured or modelled.
"""

from memory.evaluation_records import (
    BaselineTime,
    Candidate,
    Diagnostic,
    Evaluation,
    Origin,
    Profile,
    Stage,
    Status,
    StepProfile,
    Timing,
    TrialError,
)
from memory.problem_records import (
    Graph,
    Node,
    Problem,
    StateEntry,
    Target,
    Work,
    references,
)
from memory.program_records import (
    Buffer,
    KernelStep,
    LibraryStep,
    Program,
    ScalarArgument,
    ScalarType,
    Step,
    Tunable,
)
from memory.record import (
    IDENTIFIER,
    SCHEMA_VERSION,
    Argument,
    DType,
    Expression,
    Identifier,
    Record,
    SpecialArgument,
    TensorSpec,
    contiguous_strides,
)
from memory.run_records import (
    Innovation,
    Provenance,
    Run,
    RunStatus,
)

__all__ = [
    "IDENTIFIER",
    "SCHEMA_VERSION",
    "Argument",
    "BaselineTime",
    "Buffer",
    "Candidate",
    "DType",
    "Diagnostic",
    "Evaluation",
    "Expression",
    "Graph",
    "Identifier",
    "Innovation",
    "KernelStep",
    "LibraryStep",
    "Node",
    "Origin",
    "Problem",
    "Profile",
    "Program",
    "Provenance",
    "Record",
    "Run",
    "RunStatus",
    "ScalarArgument",
    "ScalarType",
    "SpecialArgument",
    "Stage",
    "StateEntry",
    "Status",
    "Step",
    "StepProfile",
    "Target",
    "TensorSpec",
    "Timing",
    "TrialError",
    "Tunable",
    "Work",
    "contiguous_strides",
    "references",
]
