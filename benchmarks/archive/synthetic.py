"""Made-up innovations for measuring the archive's speed and size. Nothing in them is ever a result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from random import Random

import numpy as np

from memory.embedding import HashEmbedder, Vectors
from memory.records import DType, Innovation, KernelStep, Program, Provenance

OPERATIONS = tuple(
    "_softmax native_layer_norm _fused_rms_norm mm addmm bmm convolution gelu silu relu sum mean amax cumsum"
    " max_pool2d_with_indices avg_pool2d native_group_norm scaled_dot_product_attention _log_softmax sigmoid add mul"
    " tanh exp div sub embedding gather cat transpose topk sort clamp where dropout pow rsqrt var".split()
)
DTYPES = (DType.F32, DType.F32, DType.F32, DType.F16, DType.BF16, DType.F64)
ARCHES = ("sm_90a", "sm_90a", "sm_90a", "sm_80", "sm_89", "sm_100a")
TECHNIQUES = (
    "vectorized loads",
    "warp shuffles",
    "shared memory tiles",
    "double buffering",
    "tensor cores",
    "online pass",
    "persistent blocks",
    "register blocking",
    "split reduction",
    "fused epilogue",
    "channels-last",
    "grid-stride loop",
    "unrolled by four",
    "async copies",
)
SOURCE_BYTES = 4000
HEADS = 997
"""Distinct beginnings of sources, the part that takes part in retrieval."""


def innovations(count: int, seed: int = 0) -> Iterator[Innovation]:
    """Distinct entries: one program and one problem each, sources of about SOURCE_BYTES."""
    for number in range(count):
        yield innovation(number, Random(f"{seed}/{number}"))


def innovation(number: int, random: Random) -> Innovation:
    """One made-up entry."""
    operations = tuple(dict.fromkeys(random.choices(OPERATIONS, k=random.randint(1, 5))))
    dtype, arch = random.choice(DTYPES), random.choice(ARCHES)
    techniques = tuple(dict.fromkeys(random.choices(TECHNIQUES, k=random.randint(1, 3))))
    rows, columns = random.randrange(1, 9999), random.randrange(1, 9999)
    words = ", ".join(operation.strip("_").replace("_", " ") for operation in operations)
    shape = f"{dtype.value}[{rows},{columns}]"
    eager_us, speedup = random.uniform(5, 5000), random.uniform(1.0, 6.0)
    step = KernelStep(entry="k", grid=("1", "1", "1"), block=("256", "1", "1"), args=("x", "y"))
    measured = random.random() < 0.5
    return Innovation(
        problem_hash=f"{number:064x}",
        problem_name=f"made-up-{number}",
        signature=f"{words}; dtype {dtype.value}; inputs {shape}; outputs {shape}; inference mode; aten operations"
        f" {', '.join(operations)}",
        operations=operations,
        dtype=dtype,
        arch=arch,
        program=Program(
            source=f"{source_head(number % HEADS)}\n// {number}\n", steps=(step,), outputs=("y",)
        ),
        idea=f"{techniques[0]} for {words}, one block for {random.randint(1, 64)} rows",
        techniques=techniques,
        best_us=eager_us / speedup,
        speedup=speedup,
        floor_fraction=random.uniform(0.05, 0.95),
        verification=random.choice(("trials", "soak")),
        provenance=Provenance(
            run_id=f"made-up-{number}",
            device="cuda:made-up" if measured else "simulator:h200",
            time_source="measured" if measured else "modelled",
            created=f"2026-01-{1 + number % 28:02d}T00:00:00+00:00",
            versions={"torch": "2"},
            trials=20,
        ),
    )


@cache
def source_head(number: int) -> str:
    """CUDA text of about SOURCE_BYTES, different from number to number."""
    random = Random(f"source/{number}")
    lines = ['extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y) {']
    size = len(lines[0])
    while size < SOURCE_BYTES:
        operation, technique = random.choice(OPERATIONS).strip("_"), random.choice(TECHNIQUES)
        name, call = f"{operation}_{random.randrange(999)}", technique.replace(" ", "_").replace("-", "_")
        lines.append(f"  float {name} = {call}(x[threadIdx.x + {random.randrange(4096)}]);")
        size += len(lines[-1]) + 1
    return "\n".join([*lines, "}"])


class Remembering:
    """The offline embedder, which computes the vector of a text that comes again once; its vectors are the same."""

    def __init__(self) -> None:
        self._embedder = HashEmbedder()
        self._known: dict[str, Vectors] = {}

    @property
    def name(self) -> str:
        """See Embedder."""
        return self._embedder.name

    def config(self) -> dict[str, int | float | str]:
        """See Embedder."""
        return self._embedder.config()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder."""
        return np.array([self._vector(text) for text in texts], dtype=np.float32)

    def _vector(self, text: str) -> Vectors:
        if not text.lstrip().startswith('extern "C"'):
            fresh: Vectors = self._embedder.embed([text])[0]
            return fresh
        if text not in self._known:
            self._known[text] = self._embedder.embed([text])[0]
        return self._known[text]
