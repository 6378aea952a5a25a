"""Symbolic sizes: products, exact quotients, equalities and definitions."""

from __future__ import annotations

from tools.recipes.blueprints import recipe_of
from tools.recipes.catalog import catalog
from tools.recipes.kernels import Variant
from tools.recipes.regrouping import pair_groups, regroup
from tools.recipes.sizes import SizeTable, number


def table() -> SizeTable:
    """A table with no names taken."""
    return SizeTable(set())


def test_products_compare_whatever_their_order() -> None:
    sizes = table()
    a, b = sizes.shape("x", 0, 4), sizes.shape("x", 1, 6)
    assert a * b == b * a
    assert (a * b).value == 24
    assert (a * b).divide(a) == b
    assert a.divide(b) is None


def test_a_promised_quotient_multiplies_back() -> None:
    sizes = table()
    channels = sizes.shape("x", 1, 12)
    inside = sizes.quotient(channels, number(4))
    assert inside.value == 3
    assert sizes.same(number(4) * inside, channels)
    assert sizes.definitions(inside.text) == {"Q0": "(x.shape[1])//(4)"}


def test_equal_sizes_stay_equal_and_numbers_prove_nothing() -> None:
    sizes = table()
    x, y = sizes.shape("x", 0, 8), sizes.shape("y", 0, 8)
    sizes.equate(x, number(8))
    assert not sizes.same(x, number(8))
    sizes.equate(x, y)
    assert sizes.same(x, y)


def test_a_reshape_pairs_the_dimensions_that_hold_the_same_elements() -> None:
    assert pair_groups((2, 12, 5), (2, 3, 4, 5)) == [((0,), (0,)), ((1,), (1, 2)), ((2,), (3,))]
    assert pair_groups((6, 4), (2, 3, 4)) == [((0,), (0, 1)), ((1,), (2,))]
    assert pair_groups((1, 7), (7, 1)) == [((1,), (0,))]


def test_a_reshape_keeps_symbols_that_it_can_name() -> None:
    sizes = table()
    batch, length, width = (sizes.shape("x", i, n) for i, n in enumerate((4, 6, 8)))
    flat = regroup(sizes, (batch, length, width), (24, 8))
    assert flat == (batch * length, width)
    assert regroup(sizes, flat, (4, 6, 2, 4))[:2] == (batch, length)


def test_every_variant_has_a_recipe() -> None:
    names = {recipe.name for recipe in catalog()}
    assert {recipe_of(variant) for variant in Variant} | {"channels_last", "library", "window"} == names
