"""Which thread layouts suit a region, most promising first."""

from __future__ import annotations

from tools.recipes.columns import REGISTER_ITEMS as COLUMN_ITEMS
from tools.recipes.kernels import RegionPlan, Variant
from tools.recipes.rows import REGISTER_ITEMS as ROW_ITEMS
from tools.recipes.tiled import crossing

_FEW_ROWS = 132 * 2
"""Fewer rows than two blocks a multiprocessor of a large GPU leave it idle."""
_LONG_ROW = 16 * 1024
_WARP_ROW = 1024
_SHARED_BYTES = 200 * 1024


def options(plan: RegionPlan) -> tuple[Variant, ...]:
    """Variants that are correct and not hopeless at the captured shapes."""
    if not plan.solved.reduced:
        return (Variant.TILED, Variant.VECTOR) if crossing(plan) is not None else (Variant.VECTOR,)
    if plan.geometry.by_column:
        return _column_options(plan)
    rows, cols = plan.rows, plan.cols
    found: list[Variant] = []
    if rows < _FEW_ROWS and cols >= _LONG_ROW:
        found.append(Variant.SPLIT_ROW)
    if cols <= _WARP_ROW:
        found.append(Variant.WARP_PER_ROW)
    if 64 < cols <= 1024 * ROW_ITEMS:
        found.append(Variant.BLOCK_PER_ROW)
    if _LONG_ROW // 4 <= cols <= _SHARED_BYTES // 4:
        found.append(Variant.SHARED_ROW)
    if cols > _WARP_ROW:
        found.append(Variant.MULTI_PASS)
    if rows < 4 * _FEW_ROWS and cols >= _LONG_ROW and Variant.SPLIT_ROW not in found:
        found.append(Variant.SPLIT_ROW)
    return tuple(found)


def _column_options(plan: RegionPlan) -> tuple[Variant, ...]:
    if plan.cols <= 32 * COLUMN_ITEMS:
        return (Variant.COLUMNS, Variant.COLUMNS_MULTI_PASS)
    return (Variant.COLUMNS_MULTI_PASS,)


def permitted(plan: RegionPlan, variant: Variant) -> bool:
    """True where a variant is correct at the captured shapes, promising or not."""
    if variant in options(plan):
        return True
    if not plan.solved.reduced or plan.geometry.by_column:
        return False
    limits = {
        Variant.MULTI_PASS: None,
        Variant.SPLIT_ROW: None,
        Variant.WARP_PER_ROW: 4 * _WARP_ROW,
        Variant.BLOCK_PER_ROW: 1024 * ROW_ITEMS,
        Variant.SHARED_ROW: _SHARED_BYTES // 16,
    }
    limit = limits.get(variant, 0)
    return limit is None or plan.cols <= limit
