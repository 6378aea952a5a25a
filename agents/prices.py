"""What tokens cost: list prices in a data file with its date, and sums over them.

Not here: what was spent (memory.events.Spend). Invariant: a model without a known price costs None, never 0.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import Field, ValidationError

from memory.errors import BadInput
from memory.records import Record

MILLION = 1_000_000


class Price(Record):
    """USD for a million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """USD for so many tokens."""
        return (tokens_in * self.input + tokens_out * self.output) / MILLION


class Prices(Record):
    """A price list."""

    date: str
    """When it was read, ISO 8601."""
    source: str
    models: dict[str, Price]
    """By model name; a dated snapshot such as `gpt-5-2025-08-07` has the price of the name it begins with."""

    def of(self, model: str) -> Price | None:
        """The model's price; None where it is not listed."""
        names = [name for name in self.models if model == name or model.startswith(f"{name}-20")]
        return self.models[max(names, key=len)] if names else None

    def cost_usd(self, model: str, tokens_in: int | None, tokens_out: int | None) -> float | None:
        """Cost of a call; None where the price or the tokens are unknown."""
        price = self.of(model)
        if price is None or tokens_in is None or tokens_out is None:
            return None
        return price.of(tokens_in, tokens_out)


@cache
def list_prices() -> Prices:
    """The price list that ships with Warpsmith."""
    return Prices.model_validate_json(files("agents").joinpath("prices.json").read_bytes())


def read_prices(path: Path | None) -> Prices:
    """A price list from a file of the same form, or the shipped one. Raises BadInput naming the field."""
    if path is None:
        return list_prices()
    try:
        return Prices.model_validate_json(path.expanduser().read_bytes())
    except OSError as error:
        raise BadInput(f"cannot read the price list {path}: {error.strerror}") from error
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors()[0]["loc"]) or "the file"
        raise BadInput(
            f"price list {path}: {place}: {error.errors()[0]['msg']}; agents/prices.json shows the form"
        ) from error
