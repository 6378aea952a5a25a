"""Hypothesis strategies for the records, and small hand-made ones where a test needs to name what it uses.

Every strategy yields valid records only; `model_copy(update=...)` is the way to an invalid one.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from memory.events import AgentEvent, Review, Verdict
from memory.records import (
    Argument,
    BaselineTime,
    Buffer,
    Candidate,
    Diagnostic,
    DType,
    Evaluation,
    Graph,
    Innovation,
    KernelStep,
    LibraryStep,
    Node,
    Origin,
    Problem,
    Profile,
    Program,
    Provenance,
    Record,
    Run,
    RunStatus,
    ScalarArgument,
    SpecialArgument,
    Stage,
    StateEntry,
    Status,
    StepProfile,
    Target,
    TensorSpec,
    Timing,
    TrialError,
    Tunable,
    Work,
)

names = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,8}\Z")
texts = st.text(max_size=20)
hashes = st.binary(min_size=4, max_size=4).map(lambda raw: raw.hex() * 8)
expressions = st.sampled_from(["1", "N", "ceil_div(N, BLOCK)", "x.shape[0]", "min(M, 32) * 2"])
numbers = st.floats(allow_nan=False, allow_infinity=False)
microseconds = st.floats(min_value=1e-3, max_value=1e7)
counts = st.integers(min_value=0, max_value=2**40)
dtypes = st.sampled_from(DType)
stages = st.sampled_from(Stage)

tensor_specs = st.builds(TensorSpec.dense, st.lists(st.integers(0, 64), max_size=4).map(tuple), dtypes)
special_arguments = st.one_of(
    st.builds(SpecialArgument, float=st.sampled_from(["inf", "-inf", "nan"])),
    st.builds(SpecialArgument, text=texts),
    st.builds(SpecialArgument, dtype=dtypes),
    st.builds(SpecialArgument, expression=expressions),
)
scalar_values: SearchStrategy[Argument] = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**62), 2**62), numbers, special_arguments
)
arguments: SearchStrategy[Argument] = st.recursive(
    scalar_values, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4
)
keywords = st.dictionaries(names, scalar_values, max_size=2)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A chain of operations from one input and one parameter."""
    made = draw(st.lists(names, min_size=3, max_size=5, unique=True))
    source, weight, *outputs = made
    nodes, previous = [], source
    for output in outputs:
        op = draw(st.sampled_from(["aten.relu.default", "aten.add.Tensor", "aten._softmax.default"]))
        args = (previous, weight, *draw(st.lists(scalar_values, max_size=2)))
        nodes.append(Node(name=output, op=op, args=args, kwargs=draw(keywords), outputs=(output,)))
        previous = output
    return Graph(
        values={name: draw(tensor_specs) for name in made},
        inputs=(source,),
        state=(
            StateEntry(value=weight, target=draw(texts), kind=draw(st.sampled_from(["parameter", "buffer"]))),
        ),
        nodes=tuple(nodes),
        outputs=(previous,),
        updates=draw(st.sampled_from([{}, {weight: previous}])),
    )


targets = st.builds(Target, path=texts, source=texts, class_name=names, inputs=st.none() | texts)
works = st.builds(Work, flops=counts, min_bytes=counts)
problems = st.builds(
    Problem,
    name=texts,
    target=targets,
    training=st.booleans(),
    output_structure=st.sampled_from(["tensor", "tuple", "list"]),
    graph=graphs(),
    work=works,
    reduced_from=st.none() | st.dictionaries(names, st.lists(counts, max_size=3).map(tuple), max_size=2),
)


@st.composite
def tunables(draw: st.DrawFn, name: SearchStrategy[str] = names) -> Tunable:
    """A tunable with its value among its choices."""
    choices = draw(st.lists(st.integers(1, 1024), min_size=1, max_size=4, unique=True))
    return Tunable(name=draw(name), value=draw(st.sampled_from(choices)), choices=tuple(choices))


buffers = st.builds(
    Buffer, name=names, shape=st.lists(expressions, max_size=3).map(tuple), dtype=dtypes, zero=st.booleans()
)
scalar_arguments = st.one_of(
    st.builds(ScalarArgument, ctype=st.sampled_from(["int", "long long"]), value=expressions),
    st.builds(ScalarArgument, ctype=st.sampled_from(["float", "double"]), value=numbers),
)
kernel_steps = st.builds(
    KernelStep,
    entry=names,
    grid=st.tuples(expressions, expressions, expressions),
    block=st.tuples(expressions, expressions, expressions),
    shared_bytes=expressions,
    args=st.lists(names | scalar_arguments, max_size=3).map(tuple),
)
library_steps = st.builds(
    LibraryStep,
    op=st.sampled_from(["aten.mm.default", "aten.convolution.default"]),
    args=st.lists(arguments, max_size=3).map(tuple),
    kwargs=keywords,
    outputs=st.lists(st.none() | names, max_size=2).map(tuple),
)
steps = st.lists(kernel_steps | library_steps, max_size=2).map(tuple)
programs = st.builds(
    Program,
    source=texts,
    dims=st.dictionaries(names, expressions, max_size=2),
    tunables=st.lists(tunables(), max_size=2, unique_by=lambda t: t.name).map(tuple),
    buffers=st.lists(buffers, max_size=2).map(tuple),
    prepare=steps,
    steps=steps,
    outputs=st.lists(names, max_size=2).map(tuple),
    updates=st.dictionaries(names, names, max_size=1),
)

origins = st.builds(
    Origin,
    kind=st.sampled_from(["recipe", "tuner", "model", "archive", "outside"]),
    agent=texts,
    detail=texts,
    prompt_hash=st.none() | hashes,
)
candidates = st.builds(
    Candidate,
    id=texts,
    run_id=texts,
    program_hash=hashes,
    generation=counts,
    parents=st.lists(texts, max_size=2).map(tuple),
    origin=origins,
    idea=texts,
    techniques=st.lists(texts, max_size=2).map(tuple),
)

diagnostics = st.builds(
    Diagnostic,
    stage=stages,
    rule=texts,
    message=texts,
    line=st.none() | counts,
    excerpt=texts,
    severe=st.booleans(),
)
trial_errors = st.builds(
    TrialError, distribution=texts, output=texts, error=numbers, eager_error=numbers, allowed=numbers
)


@st.composite
def intervals(draw: st.DrawFn) -> dict[str, float]:
    """A median between its bounds."""
    low, median, high = sorted(draw(st.tuples(microseconds, microseconds, microseconds)))
    return {"low_us": low, "median_us": median, "high_us": high}


@st.composite
def timings(draw: st.DrawFn) -> Timing:
    """A timing with the eager baseline and perhaps another."""
    others = draw(st.lists(st.sampled_from(["compile", "compile_best"]), max_size=1))
    return Timing(
        source=draw(st.sampled_from(["measured", "modelled"])),
        device=draw(texts),
        floor_us=draw(microseconds),
        baselines=tuple(BaselineTime(name=name, **draw(intervals())) for name in ("eager", *others)),
        rounds=draw(st.none() | counts),
        **draw(intervals()),
    )


profiles = st.builds(
    Profile,
    steps=st.lists(
        st.builds(
            StepProfile,
            name=texts,
            authored=st.booleans(),
            us=numbers,
            limiter=texts,
            dram_bytes=numbers,
            flops=numbers,
        ),
        max_size=2,
    ).map(tuple),
    bottleneck=st.sampled_from(["memory", "compute", "latency", "launch", "occupancy", "library"]),
    explanation=texts,
    floor_fraction=numbers,
    authored_share=numbers,
)


@st.composite
def evaluations(draw: st.DrawFn) -> Evaluation:
    """A passed evaluation with its timing, or a failed one with its reason."""
    status = draw(st.sampled_from(Status))
    passed = status is Status.PASSED
    return Evaluation(
        program_hash=draw(hashes),
        problem_hash=draw(hashes),
        policy_hash=draw(hashes),
        device=draw(texts),
        status=status,
        stage=draw(stages),
        diagnostics=tuple(draw(st.lists(diagnostics, min_size=0 if passed else 1, max_size=2))),
        errors=tuple(draw(st.lists(trial_errors, max_size=2))),
        timing=draw(timings()) if passed else None,
        profile=draw(st.none() | profiles) if passed else None,
        seconds=draw(st.dictionaries(texts, numbers, max_size=2)),
    )


provenances = st.builds(
    Provenance,
    run_id=texts,
    device=texts,
    time_source=st.sampled_from(["measured", "modelled"]),
    created=texts,
    versions=st.dictionaries(texts, texts, max_size=2),
    trials=counts,
)
innovations = st.builds(
    Innovation,
    problem_hash=hashes,
    problem_name=texts,
    signature=texts,
    operations=st.lists(texts, max_size=2).map(tuple),
    dtype=dtypes,
    arch=texts,
    program=programs,
    idea=texts,
    techniques=st.lists(texts, max_size=2).map(tuple),
    best_us=microseconds,
    speedup=numbers,
    floor_fraction=numbers,
    verification=st.sampled_from(["trials", "soak"]),
    provenance=provenances,
)
runs = st.builds(
    Run,
    id=texts,
    problem_hash=hashes,
    device=texts,
    settings=st.dictionaries(texts, texts, max_size=2),
    seed=st.integers(),
    created=texts,
    status=st.sampled_from(RunStatus),
    best_candidate=st.none() | texts,
)
events = st.builds(
    AgentEvent,
    id=texts,
    run_id=texts,
    at=texts,
    role=texts,
    agent=st.just("rules"),
    generation=counts,
    candidate_id=st.none() | texts,
    prompt=texts,
    reply=texts,
    prompt_hash=st.none() | hashes,
    tokens_in=st.none() | counts,
    tokens_out=st.none() | counts,
    cost_usd=st.none() | st.floats(0, 1e6),
    latency_s=st.floats(0, 1e6),
    decision=texts,
    failure=st.none() | texts,
)
reviews = st.builds(Review, candidate_id=texts, verdict=st.sampled_from(Verdict), note=texts, at=texts)

RECORDS: dict[type[Record], SearchStrategy[Any]] = {
    TensorSpec: tensor_specs,
    SpecialArgument: special_arguments,
    Graph: graphs(),
    Target: targets,
    Work: works,
    Problem: problems,
    Tunable: tunables(),
    Buffer: buffers,
    ScalarArgument: scalar_arguments,
    KernelStep: kernel_steps,
    LibraryStep: library_steps,
    Program: programs,
    Origin: origins,
    Candidate: candidates,
    Diagnostic: diagnostics,
    TrialError: trial_errors,
    Timing: timings(),
    Profile: profiles,
    Evaluation: evaluations(),
    Provenance: provenances,
    Innovation: innovations,
    Run: runs,
    AgentEvent: events,
    Review: reviews,
}
"""A strategy for every record that is stored, sent or hashed on its own."""
