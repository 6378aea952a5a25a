"""Texts to vectors, offline: what makes two kernels or two problems near each other in the archive.

Here: the Embedder port, the default embedder, and the field's synonyms. Not here: the vector store.
Invariant: the same text gives the same vector in every process and on every machine; only code below and `config`
decide it, and an archive refuses to mix two embedders.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

SYNONYMS = {
    "_softmax": "softmax",
    "_log_softmax": "logsoftmax",
    "log_softmax": "logsoftmax",
    "safe_softmax": "softmax",
    "_safe_softmax": "softmax",
    "layer_norm": "layernorm",
    "native_layer_norm": "layernorm",
    "group_norm": "groupnorm",
    "native_group_norm": "groupnorm",
    "rms_norm": "rmsnorm",
    "_fused_rms_norm": "rmsnorm",
    "batch_norm": "batchnorm",
    "native_batch_norm": "batchnorm",
    "_native_batch_norm_legit": "batchnorm",
    "_native_batch_norm_legit_no_training": "batchnorm",
    "_native_batch_norm_legit_functional": "batchnorm",
    "instance_norm": "instancenorm",
    "mm": "matmul",
    "addmm": "matmul",
    "bmm": "matmul",
    "baddbmm": "matmul",
    "gemm": "matmul",
    "gemv": "matmul",
    "mv": "matmul",
    "linear": "matmul",
    "matrix_multiply": "matmul",
    "matrix_multiplication": "matmul",
    "convolution": "conv",
    "_convolution": "conv",
    "conv1d": "conv",
    "conv2d": "conv",
    "conv3d": "conv",
    "sdpa": "attention",
    "scaled_dot_product_attention": "attention",
    "_scaled_dot_product_flash_attention": "attention",
    "_scaled_dot_product_flash_attention_for_cpu": "attention",
    "_scaled_dot_product_efficient_attention": "attention",
    "max_pool2d": "maxpool",
    "max_pool2d_with_indices": "maxpool",
    "max_pool": "maxpool",
    "avg_pool2d": "avgpool",
    "avg_pool": "avgpool",
    "average_pool": "avgpool",
    "swish": "silu",
    "hardswish": "hardsilu",
    "multiply": "mul",
    "divide": "div",
    "subtract": "sub",
    "reduction": "reduce",
    "row_wise": "rowwise",
    "per_row": "rowwise",
    "each_row": "rowwise",
    "column_wise": "columnwise",
    "per_column": "columnwise",
    "element_wise": "elementwise",
    "point_wise": "elementwise",
    "pointwise": "elementwise",
    "axis": "dimension",
    "dim": "dimension",
    "fp64": "f64",
    "float64": "f64",
    "double": "f64",
    "fp32": "f32",
    "float32": "f32",
    "single_precision": "f32",
    "fp16": "f16",
    "float16": "f16",
    "half": "f16",
    "half_precision": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "smem": "shared",
    "vectorised": "vectorized",
    "vectorise": "vectorized",
    "vectorize": "vectorized",
    "fusion": "fused",
    "fuse": "fused",
    "tensorcore": "tensorcores",
    "tensor_core": "tensorcores",
    "tensor_cores": "tensorcores",
}
"""Spellings of one thing; spaces and hyphens between words count as underscores."""

STOP_WORDS = frozenset(
    re.findall(
        "[a-z]+",
        "a an and are as at be by for from in into is it its of on or over per the then this to with x y z"
        " auto bool break case char const constexpr continue define else endif extern float global if ifdef ifndef"
        " include inline int long pragma restrict return short signed static struct template typename unsigned"
        " using void while c i j k n m idx blockdim blockidx griddim threadidx",
    )
)
"""English and CUDA words that stand in almost every text and so tell nothing apart."""

WORD = re.compile(r"[a-z_][a-z0-9_]*|[0-9]+")
SIZES = re.compile(r"(?<=\d)\s*[x×]\s*(?=\d)")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
LONGEST_PHRASE = 4
"""Words in the longest spelling that is worth looking for."""


class Embedder(Protocol):
    """Turns texts into vectors of length 1."""

    @property
    def name(self) -> str:
        """Name of the method; kept with the archive."""
        ...

    def config(self) -> dict[str, int | float | str]:
        """Everything besides the name that changes a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (texts, dimension), L2 normalised, row by row."""
        ...


class HashEmbedder:
    """Hashed words and character n-grams with sublinear counts; no model, no download.

    It finds the same words, spelt alike or listed in SYNONYMS. It does not know meaning: a paraphrase in other
    words is missed.
    """

    VERSION = 1
    """Raised whenever a vector would change: synonyms and stop words included."""

    def __init__(self, dimension: int = 1024, *, character_weight: float = 0.6) -> None:
        self._dimension = dimension
        self._character_weight = character_weight

    @property
    def name(self) -> str:
        """Name of the method."""
        return "warpsmith-hash"

    def config(self) -> dict[str, int | float | str]:
        """Dimension, weight of the character n-grams, version of the tables."""
        return {"dimension": self._dimension, "characters": self._character_weight, "version": self.VERSION}

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (texts, dimension); a text without words gets the first unit vector."""
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._vector(text)
        return vectors

    def _vector(self, text: str) -> Vectors:
        counts = Counter(words(text))
        sums: dict[int, float] = {}
        for word, count in counts.items():
            weight = 1.0 + math.log(count)
            for code, share in _features(word):
                factor = share if code & 1 else share * self._character_weight
                slot = (code >> 2) % self._dimension
                sums[slot] = sums.get(slot, 0.0) + weight * (factor if code & 2 else -factor)
        vector = np.zeros(self._dimension, dtype=np.float32)
        vector[list(sums)] = list(sums.values())
        length = float(np.linalg.norm(vector))
        if length == 0.0:  # cosine distance needs a direction
            vector[0] = length = 1.0
        return vector / np.float32(length)


def canonical_word(word: str) -> str:
    """The spelling under which a word or ATen operation is compared: `native_layer_norm` is `layernorm`."""
    lowered = word.lower()
    return SYNONYMS.get(lowered, lowered)


def words(text: str) -> list[str]:
    """The words of a text in order: canonical, identifiers whole and in parts, without stop words."""
    lowered = SIZES.sub(" ", CAMEL.sub("_", text)).lower().replace("-", " ")
    tokens = WORD.findall(lowered)
    found: list[str] = []
    position = 0
    while position < len(tokens):
        taken, word = _longest_phrase(tokens, position)
        position += taken
        found += [part for part in (word, *_parts(word)) if part not in STOP_WORDS]
    return found


def _longest_phrase(tokens: list[str], position: int) -> tuple[int, str]:
    """How many tokens from `position` on make one known phrase, and its canonical word."""
    for length in range(LONGEST_PHRASE, 1, -1):
        phrase = "_".join(tokens[position : position + length])
        if position + length <= len(tokens) and phrase in SYNONYMS:
            return length, SYNONYMS[phrase]
    return 1, canonical_word(tokens[position])


@lru_cache(maxsize=20_000)
def _parts(word: str) -> tuple[str, ...]:
    """Parts of an identifier such as `row_max_kernel`; empty for a plain word."""
    if "_" not in word:
        return ()
    return tuple(canonical_word(part) for part in word.split("_") if part)


@lru_cache(maxsize=50_000)
def _features(word: str) -> tuple[tuple[int, float], ...]:
    """Hash codes and shares of a word: itself (lowest bit 1) and its character n-grams (lowest bit 0)."""
    whole = (zlib.crc32(f"w:{word}".encode()) | 1, 1.0)
    if word.isdigit():
        return (whole,)
    padded = f"<{word}>"
    grams = [padded[i : i + n] for n in (3, 4) for i in range(len(padded) - n + 1)]
    share = 1.0 / math.sqrt(len(grams)) if grams else 0.0
    return (whole, *((zlib.crc32(f"g:{gram}".encode()) & ~1, share) for gram in grams))
