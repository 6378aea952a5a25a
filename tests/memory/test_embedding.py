"""The offline embedder: deterministic, normalised, and blind only to what it says it is blind to."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.embedding import SYNONYMS, HashEmbedder, canonical_word, words

ROOT = Path(__file__).parents[2]
DIGEST = (
    "import zlib; from memory.embedding import HashEmbedder;"
    "print(zlib.crc32(HashEmbedder().embed(['softmax over the last dimension', 'row_max <kernel> 4096']).tobytes()))"
)


def likeness(a: str, b: str) -> float:
    """Cosine of two texts."""
    first, second = HashEmbedder().embed([a, b])
    return float(first @ second)


@settings(max_examples=50, deadline=None)
@given(texts=st.lists(st.text(max_size=60), max_size=4))
def test_vectors_have_length_one_whatever_the_text(texts: list[str]) -> None:
    vectors = HashEmbedder(256).embed(texts)
    assert vectors.shape == (len(texts), 256)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_a_text_has_the_same_vector_alone_and_in_company() -> None:
    embedder = HashEmbedder()
    alone, company = embedder.embed(["softmax"]), embedder.embed(["relu", "softmax"])
    assert np.array_equal(alone[0], company[1])


def test_two_processes_with_two_hash_seeds_agree() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            check=True,
            capture_output=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("layer norm", "native_layer_norm"),
        ("LayerNorm", "layer-norm"),
        ("_softmax", "softmax"),
        ("gemm", "addmm"),
        ("matrix multiplication", "mm"),
        ("convolution", "conv2d"),
        ("row-wise", "row wise"),
        ("fp32", "float32"),
        ("half precision", "fp16"),
        ("4096x4096", "4096 4096"),
        ("4096 × 4096", "[4096,4096]"),
        ("scaled dot product attention", "sdpa"),
    ],
)
def test_spellings_of_one_thing_are_one(a: str, b: str) -> None:
    assert likeness(a, b) > 0.999


def test_spellings_of_two_things_are_two() -> None:
    for a, b in (("fp32", "fp16"), ("softmax", "relu"), ("4096", "1024"), ("matmul", "conv")):
        assert likeness(a, b) < 0.5


def test_identifiers_are_found_by_their_parts_and_typing_errors_by_their_letters() -> None:
    assert "softmax" in words("fusedSoftmaxKernel")
    assert "max" in words("row_max")
    assert likeness("softmax", "softmaxx") > likeness("softmax", "convolution") + 0.1


def test_synonyms_lead_to_words_that_stay_as_they_are() -> None:
    for spelling, word in SYNONYMS.items():
        assert canonical_word(word) == word, spelling


def test_a_source_embeds_in_a_few_milliseconds() -> None:
    text = (ROOT / "memory" / "records.py").read_text()
    sources = [text[start : start + 2000] for start in range(0, 20_000, 2000)]
    embedder = HashEmbedder()
    took: list[float] = []
    for _ in range(3):
        start = time.perf_counter()
        embedder.embed(sources)
        took.append((time.perf_counter() - start) / len(sources))
    assert min(took) < 0.003
