"""The Program: CUDA C++ and a launch plan that is data."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictFloat, model_validator

from memory.errors import BadInput
from memory.record import Argument, DType, Expression, Identifier, Record


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
    replay: bool = False
    """The steps are captured once as a CUDA graph and replayed at every call; inputs are copied in, results out."""

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
