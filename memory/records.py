"""The nouns of Warpsmith as frozen, validated, content-hashed records.

Here: what is stored, sent between processes and hashed. Not here: how any of it is computed.
Invariants: a record's identity covers every field that changes behaviour, prefixed with its class and schema
version; timing exists if and only if an evaluation PASSED; a time says whether it was measured or modelled.
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, model_validator
from typing_extensions import TypeAliasType

from memory.errors import BadInput

SCHEMA_VERSION = 1
"""Raised whenever a record's meaning changes; part of every content hash."""

IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]*$"
Identifier = Annotated[str, Field(pattern=IDENTIFIER, max_length=200)]
Expression = Annotated[str, Field(min_length=1, max_length=500)]
"""An integer expression over dims, tunables, `x.shape[i]` and `x.stride[i]`; see tools.expressions."""


class Record(BaseModel):
    """A frozen value with an identity. Equality is by value; identity is `content_hash`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    LABELS: ClassVar[frozenset[str]] = frozenset()
    """Fields that name or explain without changing behaviour; left out of the hash."""

    def content_hash(self) -> str:
        """SHA-256 hex digest of the class name, the schema version and every behaviour-affecting field."""
        text = json.dumps(_identity(self), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(f"{type(self).__name__}\n{SCHEMA_VERSION}\n{text}".encode()).hexdigest()


def _identity(value: object) -> object:
    """JSON form of a value without the labels of any record in it."""
    if isinstance(value, Record):
        kept = [name for name in type(value).model_fields if name not in value.LABELS]
        return {name: _identity(getattr(value, name)) for name in kept}
    if isinstance(value, tuple):
        return [_identity(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _identity(item) for key, item in value.items()}
    return value


class DType(StrEnum):
    """Element types a Program may use."""

    F64 = "f64"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    I64 = "i64"
    I32 = "i32"
    I16 = "i16"
    I8 = "i8"
    U8 = "u8"
    BOOL = "bool"

    @property
    def bytes(self) -> int:
        """Size of one element in bytes."""
        return _DTYPE_BYTES[self]

    @property
    def is_floating(self) -> bool:
        """True for f64, f32, f16 and bf16."""
        return self in (DType.F64, DType.F32, DType.F16, DType.BF16)


_DTYPE_BYTES = {
    DType.F64: 8,
    DType.F32: 4,
    DType.F16: 2,
    DType.BF16: 2,
    DType.I64: 8,
    DType.I32: 4,
    DType.I16: 2,
    DType.I8: 1,
    DType.U8: 1,
    DType.BOOL: 1,
}


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides, in elements, of a dense tensor of `shape`."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


class TensorSpec(Record):
    """Shape, dtype and strides of one tensor; no data."""

    shape: tuple[Annotated[int, Field(ge=0)], ...]
    dtype: DType
    strides: tuple[int, ...]
    """In elements, as PyTorch counts them."""

    @model_validator(mode="after")
    def _ranks_agree(self) -> TensorSpec:
        if len(self.shape) != len(self.strides):
            raise ValueError(f"shape {self.shape} and strides {self.strides} differ in rank")
        return self

    @property
    def elements(self) -> int:
        """Number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def bytes(self) -> int:
        """Bytes of the distinct elements (a broadcast dimension, stride 0, counts once)."""
        count = 1
        for size, stride in zip(self.shape, self.strides, strict=True):
            count *= size if stride != 0 or size == 0 else 1
        return count * self.dtype.bytes

    @property
    def is_contiguous(self) -> bool:
        """True where the elements lie row-major without gaps (sizes of 1 and empty tensors match any stride)."""
        if self.elements == 0:
            return True
        wanted = contiguous_strides(self.shape)
        return all(n == 1 or s == w for n, s, w in zip(self.shape, self.strides, wanted, strict=True))

    @staticmethod
    def dense(shape: tuple[int, ...], dtype: DType) -> TensorSpec:
        """A contiguous tensor's spec."""
        return TensorSpec(shape=shape, dtype=dtype, strides=contiguous_strides(shape))


# --- arguments of ATen operations -----------------------------------------------------------------------------


class SpecialArgument(Record):
    """An argument that plain JSON cannot carry: exactly one field is set."""

    float: str | None = None
    """`inf`, `-inf` or `nan`."""
    text: str | None = None
    """A string argument of the operation, such as `"none"` for gelu's `approximate`."""
    dtype: DType | None = None
    memory_format: (
        Literal["contiguous_format", "channels_last", "channels_last_3d", "preserve_format"] | None
    ) = None
    expression: Expression | None = None
    """An integer expression over the Program's dims and tunables."""

    @model_validator(mode="after")
    def _one_field(self) -> SpecialArgument:
        if len([v for v in self.model_dump().values() if v is not None]) != 1:
            raise ValueError("set exactly one of float, text, dtype, memory_format, expression")
        if self.float is not None and self.float not in ("inf", "-inf", "nan"):
            raise ValueError(
                f"float must be 'inf', '-inf' or 'nan', not {self.float!r}; write others as numbers"
            )
        return self


Argument = TypeAliasType(
    "Argument",
    "StrictBool | StrictInt | StrictFloat | Identifier | SpecialArgument | tuple[Argument, ...] | None",
)
"""An operation's argument. A string names a tensor; numbers, booleans, null and lists are themselves."""


# --- the Problem ----------------------------------------------------------------------------------------------


class Node(Record):
    """One ATen operation of the captured graph."""

    name: Identifier
    op: str
    """Qualified overload, such as `aten.addmm.default`."""
    args: tuple[Argument, ...] = ()
    kwargs: dict[str, Argument] = {}
    outputs: tuple[Identifier | None, ...]
    """Names of the values it makes, in the schema's order; None where a result is unused or absent."""


class StateEntry(Record):
    """A parameter, buffer or constant of the module, as the graph names it."""

    value: Identifier
    """Name in `Graph.values`."""
    target: str
    """Name in the module's `state_dict`, such as `norm.weight`; for constants, the exporter's own name."""
    kind: Literal["parameter", "buffer", "constant"]


class Graph(Record):
    """The captured forward as functional ATen operations in execution order."""

    values: dict[Identifier, TensorSpec]
    inputs: tuple[Identifier, ...]
    """Tensor inputs of `forward`, in order."""
    state: tuple[StateEntry, ...] = ()
    nodes: tuple[Node, ...]
    outputs: tuple[Identifier, ...]
    updates: dict[Identifier, Identifier] = {}
    """Buffers that forward changes (batch-norm statistics): state value -> the value it holds afterwards."""

    @model_validator(mode="after")
    def _names_resolve(self) -> Graph:
        known = set(self.inputs) | {s.value for s in self.state}
        for node in self.nodes:
            missing = [r for r in references((*node.args, *node.kwargs.values())) if r not in known]
            if missing:
                raise ValueError(f"node {node.name!r} reads {missing[0]!r} before it is made")
            known |= {o for o in node.outputs if o is not None}
        for name in (*self.outputs, *self.updates, *self.updates.values()):
            if name not in known:
                raise ValueError(f"{name!r} is returned or updated but never made")
        unknown = known - set(self.values)
        if unknown:
            raise ValueError(f"no tensor spec for {sorted(unknown)[0]!r}")
        return self


def references(arguments: tuple[Argument, ...]) -> list[str]:
    """Tensor names in `arguments`, in order, lists included."""
    names: list[str] = []
    for argument in arguments:
        if isinstance(argument, str):
            names.append(argument)
        elif isinstance(argument, tuple):
            names.extend(references(argument))
    return names


class Target(Record):
    """How to build the user's module again: the file's text, the class, and where its arguments come from."""

    LABELS: ClassVar[frozenset[str]] = frozenset({"path"})

    path: str
    """Absolute path the text was read from; its folder is importable to the module."""
    source: str
    class_name: Identifier
    inputs: str | None = None
    """Input specification such as `f32[16,1024],i64[16]`; None where the file's `get_inputs` is used."""
    init: str | None = None
    """Constructor arguments as a Python literal list or dict; None where `get_init_inputs` is used."""


class Work(Record):
    """What one forward must do at least, and does in eager PyTorch."""

    flops: Annotated[int, Field(ge=0)]
    """Floating-point operations; one fused multiply-add counts 2."""
    min_bytes: Annotated[int, Field(ge=0)]
    """Each input and parameter that is read, once, plus each output, once."""


class Problem(Record):
    """The user's module with its example inputs and captured graph."""

    LABELS: ClassVar[frozenset[str]] = frozenset({"name"})

    name: str
    target: Target
    training: bool
    """The module's `training` flag as its author left it."""
    output_structure: Literal["tensor", "tuple", "list"]
    graph: Graph
    work: Work
    reduced_from: dict[str, tuple[int, ...]] | None = None
    """For a scaled-down twin: the original shapes of the inputs that were shrunk."""

    @property
    def dtype(self) -> DType:
        """The widest floating dtype among inputs, state and outputs, or the first output's dtype."""
        graph = self.graph
        names = (*graph.inputs, *(s.value for s in graph.state), *graph.outputs)
        found = [graph.values[n].dtype for n in names if graph.values[n].dtype.is_floating]
        return max(found, key=lambda d: d.bytes) if found else graph.values[graph.outputs[0]].dtype


# --- the Program ----------------------------------------------------------------------------------------------


class Tunable(Record):
    """A named integer compiled in as a `#define`; the numeric genome."""

    name: Identifier
    value: int
    choices: tuple[int, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _value_is_a_choice(self) -> Tunable:
        if self.value not in self.choices:
            raise ValueError(
                f"tunable {self.name}: value {self.value} is not among its choices {self.choices}"
            )
        return self


class Buffer(Record):
    """A tensor the Program makes: an intermediate, a prepared weight or an output."""

    name: Identifier
    shape: tuple[Expression, ...]
    dtype: DType
    layout: Literal["contiguous", "any"] = "contiguous"
    """`any`: whatever a library call returns (a view); such a buffer may not be given to a kernel."""
    zero: bool = False
    """Filled with zeros before the steps of every call (for atomics)."""


ScalarType = Literal["int", "unsigned int", "long long", "unsigned long long", "float", "double"]


class ScalarArgument(Record):
    """A number given to a kernel by value."""

    ctype: ScalarType
    value: Expression | StrictFloat
    """An integer expression for integer types; a number for `float` and `double`."""

    @model_validator(mode="after")
    def _kind_fits(self) -> ScalarArgument:
        if self.ctype not in ("float", "double") and isinstance(self.value, float):
            raise ValueError(f"a {self.ctype} argument takes an integer expression, not {self.value!r}")
        return self


class KernelStep(Record):
    """One kernel launch."""

    kind: Literal["kernel"] = "kernel"
    entry: Identifier
    grid: tuple[Expression, Expression, Expression]
    block: tuple[Expression, Expression, Expression]
    shared_bytes: Expression = "0"
    """Dynamic shared memory."""
    args: tuple[Identifier | ScalarArgument, ...]
    """A string names a tensor and passes its data pointer."""


class LibraryStep(Record):
    """One allowed ATen operation."""

    kind: Literal["library"] = "library"
    op: str
    args: tuple[Argument, ...] = ()
    kwargs: dict[str, Argument] = {}
    outputs: tuple[Identifier | None, ...]


Step = Annotated[KernelStep | LibraryStep, Field(discriminator="kind")]


class Program(Record):
    """CUDA C++ source and a launch plan that is data: what an agent writes."""

    source: str
    dims: dict[Identifier, Expression] = {}
    """Named sizes over the problem's shapes, compiled in as `#define`s and usable in expressions."""
    tunables: tuple[Tunable, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    prepare: tuple[Step, ...] = ()
    """Run once per set of weights: may read state, not inputs."""
    steps: tuple[Step, ...]
    outputs: tuple[Identifier, ...]
    updates: dict[Identifier, Identifier] = {}
    """Module buffers written back after the steps: state value -> buffer that holds the new content."""

    @property
    def entries(self) -> tuple[str, ...]:
        """Kernel names launched, each once, in first-use order."""
        steps = (*self.prepare, *self.steps)
        return tuple(dict.fromkeys(s.entry for s in steps if isinstance(s, KernelStep)))

    def with_values(self, values: dict[str, int]) -> Program:
        """The same program at another point of its tunables. Raises BadInput for an unknown name."""
        unknown = set(values) - {t.name for t in self.tunables}
        if unknown:
            raise BadInput(
                f"no tunable named {sorted(unknown)[0]!r}; this program has {self.tunable_values()}"
            )
        changed = tuple(
            Tunable(name=t.name, value=values.get(t.name, t.value), choices=t.choices) for t in self.tunables
        )
        return self.model_copy(update={"tunables": changed})

    def tunable_values(self) -> dict[str, int]:
        """Current value of every tunable."""
        return {t.name: t.value for t in self.tunables}


# --- Candidate and Evaluation ---------------------------------------------------------------------------------


class Origin(Record):
    """Who made a candidate."""

    kind: Literal["recipe", "tuner", "model", "archive", "outside"]
    agent: str
    detail: str = ""
    """Recipe names, the model's name, or the innovation's id."""
    prompt_hash: str | None = None


class Candidate(Record):
    """A Program in a run."""

    LABELS: ClassVar[frozenset[str]] = frozenset({"idea"})

    id: str
    run_id: str
    program_hash: str
    generation: Annotated[int, Field(ge=0)]
    parents: tuple[str, ...] = ()
    origin: Origin
    idea: str
    """One sentence."""
    techniques: tuple[str, ...] = ()


class Status(StrEnum):
    """Verdict of the verifier; everything but PASSED is a failure and carries its reason in the diagnostics."""

    PASSED = "passed"
    SCHEMA_ERROR = "schema_error"
    LINT_ERROR = "lint_error"
    COMPILE_ERROR = "compile_error"
    SANITIZER_ERROR = "sanitizer_error"
    RUNTIME_ERROR = "runtime_error"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    INCORRECT = "incorrect"
    SUSPICIOUS = "suspicious"


class Stage(StrEnum):
    """Stages of an evaluation in order; the first failure ends it."""

    SCHEMA = "schema"
    LINT = "lint"
    COMPILE = "compile"
    SANITIZE = "sanitize"
    CORRECTNESS = "correctness"
    TIMING = "timing"


class Diagnostic(Record):
    """One finding about a candidate, phrased so that its author can act on it."""

    stage: Stage
    rule: str
    """Short kind, such as `out_of_bounds`, `unknown_buffer` or `wrong_values`."""
    message: str
    line: int | None = None
    excerpt: str = ""
    severe: bool = True


class TrialError(Record):
    """Error of one output in one trial, against the float64 oracle."""

    distribution: str
    output: str
    error: float | None
    """Largest |out - oracle| / max(|oracle|, rms(oracle)) over the elements; None where no number can say it
    (a NaN or infinity where the oracle is finite, a wrong integer)."""
    eager_error: float
    """The same measure for eager PyTorch in the problem's own precision."""
    allowed: float
    """max(tolerance, factor * eager_error)."""


class BaselineTime(Record):
    """Time of a baseline on the same device as the candidate's."""

    name: Literal["eager", "compile", "compile_best"]
    median_us: Annotated[float, Field(gt=0)]
    low_us: Annotated[float, Field(gt=0)]
    high_us: Annotated[float, Field(gt=0)]


class Timing(Record):
    """Time of one forward, in µs. Modelled and measured times never mix in one record."""

    source: Literal["measured", "modelled"]
    device: str
    median_us: Annotated[float, Field(gt=0)]
    low_us: Annotated[float, Field(gt=0)]
    high_us: Annotated[float, Field(gt=0)]
    floor_us: Annotated[float, Field(ge=0)]
    baselines: tuple[BaselineTime, ...]
    rounds: int | None = None
    """Timed repetitions; None for a modelled time."""

    @property
    def eager_us(self) -> float:
        """The eager baseline's median."""
        return next(b.median_us for b in self.baselines if b.name == "eager")

    @property
    def speedup(self) -> float:
        """Eager's median over ours."""
        return self.eager_us / self.median_us

    @property
    def improved(self) -> bool:
        """True where even our slow end beats eager's fast end."""
        eager = next(b for b in self.baselines if b.name == "eager")
        return self.high_us < eager.low_us

    @model_validator(mode="after")
    def _has_eager_and_order(self) -> Timing:
        if not any(b.name == "eager" for b in self.baselines):
            raise ValueError("a timing needs the eager baseline")
        if not self.low_us <= self.median_us <= self.high_us:
            raise ValueError(
                f"interval [{self.low_us}, {self.high_us}] does not hold the median {self.median_us}"
            )
        return self


class StepProfile(Record):
    """Where the time of one step goes."""

    name: str
    """Kernel entry or ATen operation."""
    authored: bool
    """True for a kernel of the Program, False for a library call."""
    us: float
    limiter: str
    """Term that dominates: dram, l2, compute, latency, launch, shared, atomics."""
    dram_bytes: float
    flops: float
    occupancy: float | None = None
    """Theoretical, 0 to 1."""
    registers: int | None = None
    shared_bytes: int | None = None
    spill_bytes: int | None = None
    load_sectors_per_request: float | None = None
    """Ideal: 4 for 4-byte, 16 for 16-byte accesses per lane."""
    bank_conflicts: float | None = None


class Profile(Record):
    """The profiler's summary of a passed candidate."""

    steps: tuple[StepProfile, ...]
    bottleneck: Literal["memory", "compute", "latency", "launch", "occupancy", "library"]
    explanation: str
    """One sentence with the numbers."""
    floor_fraction: float
    """Floor over time, 0 to 1."""
    authored_share: float
    """Share of device time in the Program's own kernels, 0 to 1."""


class Evaluation(Record):
    """What the verifier says of a program on a problem and device."""

    LABELS: ClassVar[frozenset[str]] = frozenset({"seconds"})

    program_hash: str
    problem_hash: str
    policy_hash: str
    device: str
    status: Status
    stage: Stage
    """The last stage entered."""
    diagnostics: tuple[Diagnostic, ...] = ()
    errors: tuple[TrialError, ...] = ()
    timing: Timing | None = None
    profile: Profile | None = None
    seconds: dict[str, float] = {}
    """Wall time by stage."""

    @model_validator(mode="after")
    def _timing_iff_passed(self) -> Evaluation:
        if (self.timing is not None) != (self.status is Status.PASSED):
            raise ValueError(
                f"timing exists if and only if the status is passed, and it is {self.status.value}"
            )
        if self.status is not Status.PASSED and not self.diagnostics:
            raise ValueError(f"an evaluation that is {self.status.value} must say why")
        return self


# --- Innovation and Run ---------------------------------------------------------------------------------------


class Provenance(Record):
    """Where an innovation comes from."""

    run_id: str
    device: str
    time_source: Literal["measured", "modelled"]
    created: str
    """ISO 8601, UTC."""
    versions: dict[str, str]
    trials: int
    """Random trials it passed."""


class Innovation(Record):
    """A verified winner in the archive."""

    LABELS: ClassVar[frozenset[str]] = frozenset(
        {"idea", "provenance", "speedup", "floor_fraction", "best_us"}
    )

    problem_hash: str
    problem_name: str
    signature: str
    """The problem in words: operations, shapes, dtypes."""
    operations: tuple[str, ...]
    dtype: DType
    arch: str
    program: Program
    idea: str
    techniques: tuple[str, ...]
    best_us: float
    speedup: float
    floor_fraction: float
    verification: Literal["trials", "soak"]
    provenance: Provenance


class RunStatus(StrEnum):
    """State of a run."""

    RUNNING = "running"
    IMPROVED = "improved"
    NOT_IMPROVED = "not_improved"
    FAILED = "failed"


class Run(Record):
    """One optimization of one problem under one settings object and one budget."""

    id: str
    problem_hash: str
    device: str
    settings: dict[str, str]
    """Resolved settings, secrets masked."""
    seed: int
    created: str
    status: RunStatus = RunStatus.RUNNING
    best_candidate: str | None = None
