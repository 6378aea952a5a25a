"""What a run's models may use, before it begins. Pure: a rough sum over the calls that its settings lead to.

Not here: what was used (memory.events.Spend), nor what stops it (agents.allowance).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agents.endpoint import Casting, Endpoint, Role
from agents.prices import Prices
from agents.slots import model_slots
from graph.settings import Settings

TYPICAL: Mapping[Role, tuple[int, int]] = {
    Role.PLANNER: (7000, 1500),
    Role.CODER: (11_000, 5000),
    Role.COMPILER: (9000, 5000),
    Role.PROFILER: (5000, 300),
    Role.CRITIC: (5000, 600),
}
"""Tokens read and written by one call, reasoning included; the prompts fill about half of their budgets."""
MENDED = 0.5
"""Repairs asked for by one program."""


@dataclass(frozen=True)
class Estimate:
    """Expected use of models by a whole run."""

    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None
    """None where a model has no known price."""
    unpriced: tuple[str, ...]

    def sentence(self, prices: Prices) -> str:
        """For the operator."""
        cost = f"the cost of {', '.join(self.unpriced)} is not known, so that only a cap on tokens holds"
        if self.cost_usd is not None:
            cost = f"${self.cost_usd:.2f} at the prices of {prices.date}"
        return (
            f"about {self.calls} model calls, {self.tokens_in / 1000:,.0f}k tokens read and "
            f"{self.tokens_out / 1000:,.0f}k written if every generation runs; {cost}"
        )


def estimate(settings: Settings, endpoint: Endpoint) -> Estimate:
    """What the run will use if it is not stopped early."""
    prices = settings.price_list
    calls = _calls(settings)
    read = sum(count * TYPICAL[role][0] for role, count in calls.items())
    written = sum(count * TYPICAL[role][1] for role, count in calls.items())
    unpriced = tuple(name for name in endpoint.model_names() if prices.of(name) is None)
    costs = [count * _mean_cost(endpoint.casting[role], role, prices) for role, count in calls.items()]
    total = round(sum(calls.values()))
    return Estimate(total, round(read), round(written), None if unpriced else sum(costs), unpriced)


def _calls(settings: Settings) -> dict[Role, float]:
    later = settings.generations - 1
    written = later * model_slots(settings.population)
    return {
        Role.PLANNER: later,
        Role.CODER: written,
        Role.COMPILER: written * MENDED,
        Role.PROFILER: settings.generations,
        Role.CRITIC: settings.generations,
    }


def _mean_cost(casting: Casting, role: Role, prices: Prices) -> float:
    """Of one call, over the ensemble's weights; 0 for the models without a price."""
    weights = sum(choice.weight for choice in casting.models)
    costs = (
        choice.weight * (prices.cost_usd(choice.name, *TYPICAL[role]) or 0.0) for choice in casting.models
    )
    return sum(costs) / weights
