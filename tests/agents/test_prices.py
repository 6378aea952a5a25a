"""What tokens cost: listed names, dated snapshots, lists of the operator's own, and what is not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.prices import Price, Prices, list_prices, read_prices
from memory.errors import BadInput

PRICES = Prices(
    date="2026-01-01",
    source="made up",
    models={"big": Price(input=2.0, output=8.0), "big-mini": Price(input=0.5, output=1.0)},
)


def test_a_call_costs_its_tokens_at_both_prices() -> None:
    assert PRICES.cost_usd("big", 1_000_000, 500_000) == 2.0 + 4.0
    assert PRICES.cost_usd("big", 0, 0) == 0.0


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("big", 2.0),
        ("big-2025-08-07", 2.0),
        ("big-mini", 0.5),
        ("big-mini-2025-04-14", 0.5),
        ("big-pro", None),
        ("bigger", None),
        ("mini", None),
        ("", None),
    ],
)
def test_a_dated_snapshot_has_the_price_of_its_name_and_a_relative_has_none(
    model: str, price: float | None
) -> None:
    found = PRICES.of(model)
    assert (found.input if found else None) == price


def test_what_is_not_known_costs_none_and_never_0() -> None:
    assert PRICES.cost_usd("unheard-of", 10, 10) is None
    assert PRICES.cost_usd("big", None, 10) is None
    assert PRICES.cost_usd("big", 10, None) is None


def test_the_shipped_list_says_its_date_and_source_and_has_no_free_model() -> None:
    listed = list_prices()
    assert len(listed.date) == 10 and "list prices" in listed.source
    assert all(price.input > 0 and price.output > price.input for price in listed.models.values())
    assert read_prices(None) is listed


def test_an_operators_own_list_is_read_in_place_of_the_shipped_one(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(PRICES.model_dump_json())
    assert read_prices(path) == PRICES


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("not json", "the file"),
        ('{"date": "d", "source": "s"}', "models"),
        ('{"date": "d", "source": "s", "models": {"m": {"input": -1, "output": 2}}}', "models.m.input"),
        ('{"date": "d", "source": "s", "models": {"m": {"input": 1}}}', "models.m.output"),
        ('{"date": "d", "source": "s", "models": {}, "currency": "EUR"}', "currency"),
    ],
)
def test_a_list_that_cannot_be_read_is_refused_with_the_place(tmp_path: Path, body: str, place: str) -> None:
    path = tmp_path / "prices.json"
    path.write_text(body)
    with pytest.raises(BadInput, match=r"agents/prices\.json shows the form") as caught:
        read_prices(path)
    assert f"{path}: {place}:" in str(caught.value)


def test_a_list_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nowhere\.json: No such file"):
        read_prices(tmp_path / "nowhere.json")
