"""The recipes by name: what each is for, in words, for people, documentation and the archive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Recipe:
    """One kernel family in one thread layout."""

    name: str
    family: Literal["pointwise", "rows", "columns", "windows", "library"]
    pattern: str
    """The operations it serves, in words."""
    idea: str
    """Why it is fast, in one sentence."""
    techniques: tuple[str, ...]
    tunables: dict[str, tuple[int, ...]]
    """Widest ranges, by the name behind the region's prefix (`R0_BLOCK`)."""


_BLOCKS = (64, 128, 256, 512, 1024)
_VECTORS = (1, 2, 4, 8)
_ROWS = (
    "sums, means, extrema, products, variances, norms, softmax, log-softmax, logsumexp, layer, RMS, group, instance "
    "and batch normalisation and losses over dimensions that are innermost in memory, with the elementwise "
    "operations around and between them"
)

_RECIPES = (
    Recipe(
        name="pointwise",
        family="pointwise",
        pattern="any chain of elementwise operations, casts, selections and broadcasts, through transposes and slices",
        idea="One sweep over memory: intermediates stay in registers and every access is up to 16 bytes wide.",
        techniques=("elementwise fusion", "vectorized loads"),
        tunables={"BLOCK": _BLOCKS, "VEC": _VECTORS, "ITEMS": (1, 2, 4, 8)},
    ),
    Recipe(
        name="tiled",
        family="pointwise",
        pattern="elementwise chains that read along one dimension and write along another: transposed copies, "
        "channels-last results of convolutions",
        idea="A tile goes through shared memory, so that loads and stores both move whole cache lines.",
        techniques=("elementwise fusion", "shared memory transpose"),
        tunables={"BY": (4, 8, 16, 32)},
    ),
    Recipe(
        name="warp_per_row",
        family="rows",
        pattern=f"{_ROWS}; rows of up to about 1,000 elements",
        idea="Part of a warp owns a row in registers, so that reductions are a few shuffles and no barrier.",
        techniques=("reduction fusion", "warp shuffle", "register caching", "vectorized loads"),
        tunables={"BLOCK": (64, 128, 256, 512), "LANES": (4, 8, 16, 32), "VEC": _VECTORS},
    ),
    Recipe(
        name="block_per_row",
        family="rows",
        pattern=f"{_ROWS}; rows of up to 32,768 elements",
        idea="A block owns a row in registers: memory is read once however many reductions follow each other.",
        techniques=("reduction fusion", "block reduction", "register caching", "vectorized loads"),
        tunables={"BLOCK": _BLOCKS, "VEC": _VECTORS},
    ),
    Recipe(
        name="shared_row",
        family="rows",
        pattern=f"{_ROWS}; rows of 4,096 to 51,200 elements",
        idea="A block owns a row in shared memory, which holds longer rows than its registers do.",
        techniques=("reduction fusion", "block reduction", "shared memory caching", "vectorized loads"),
        tunables={"BLOCK": _BLOCKS, "VEC": _VECTORS},
    ),
    Recipe(
        name="multi_pass",
        family="rows",
        pattern=f"{_ROWS}; rows too long to keep",
        idea="Every sweep reads the row again, mostly from L2, and nothing but the result is written.",
        techniques=("reduction fusion", "block reduction", "multi-pass", "vectorized loads"),
        tunables={"BLOCK": _BLOCKS, "VEC": _VECTORS},
    ),
    Recipe(
        name="split_row",
        family="rows",
        pattern=f"{_ROWS}; few long rows, such as a mean over everything or batch statistics",
        idea="Many blocks share a row and leave partial results for the next kernel, so that the whole chip works.",
        techniques=("reduction fusion", "split reduction", "multi-kernel", "vectorized loads"),
        tunables={
            "BLOCK": (128, 256, 512, 1024),
            "VEC": _VECTORS,
            "SPLITS": (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
        },
    ),
    Recipe(
        name="columns",
        family="columns",
        pattern="the same over a dimension that is not innermost, such as softmax over channels; up to 1,024 elements",
        idea="Neighbouring threads own neighbouring rows, so that loads coalesce, and keep elements in registers.",
        techniques=("reduction fusion", "coalesced column reduction", "register caching"),
        tunables={"BX": (32, 64, 128, 256), "BY": (1, 2, 4, 8, 16, 32), "VEC": (1, 2, 4)},
    ),
    Recipe(
        name="columns_multi_pass",
        family="columns",
        pattern="the same over long dimensions that are not innermost",
        idea="Neighbouring threads own neighbouring rows and read their elements again in every sweep, coalesced.",
        techniques=("reduction fusion", "coalesced column reduction", "multi-pass"),
        tunables={"BX": (32, 64, 128, 256), "BY": (1, 2, 4, 8, 16, 32), "VEC": (1, 2, 4)},
    ),
    Recipe(
        name="window",
        family="windows",
        pattern="maximum and average pools in one to three dimensions, padded, dilated and rounding up, and depthwise "
        "convolutions; with the elementwise operations and reductions that follow",
        idea="A pool is to what follows it what a load is: its result stays in a register, and overlapping windows "
        "meet in the L1 cache.",
        techniques=("sliding window", "elementwise fusion", "reduction fusion"),
        tunables={},
    ),
    Recipe(
        name="channels_last",
        family="library",
        pattern="convolutions in two and three dimensions, with the elementwise operations, pools and reductions "
        "around them",
        idea="Convolutions take and give each pixel's channels side by side, as tensor cores want them; the kernels "
        "around them read and write that layout, so that nothing is converted in a pass of its own.",
        techniques=("channels-last convolutions", "shared memory transpose"),
        tunables={},
    ),
    Recipe(
        name="library",
        family="library",
        pattern="every operation without a recipe: matrix products, convolutions, attention, recurrent layers",
        idea="cuBLAS, cuDNN and PyTorch's kernels are hard to beat one by one; only what lies between is fused.",
        techniques=("library calls",),
        tunables={},
    ),
)


def catalog() -> tuple[Recipe, ...]:
    """Every recipe."""
    return _RECIPES
