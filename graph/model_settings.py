"""Settings of the language models: who plays which role, how they are reached, what they may cost.

Here: fields and their translation into agents.endpoint.Endpoint. Invariant: the key is a secret that is neither
printed nor stored with a run; a resumed run takes it from the environment again.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings

from agents.allowance import Caps
from agents.endpoint import (
    Casting,
    Endpoint,
    ModelChoice,
    Role,
    by_role,
    effort_of,
    parse_models,
    temperature_of,
)
from agents.prices import Prices, read_prices

NO_KEY = "none"
"""What is sent where the operator names a server and no key: vLLM, Ollama and llama.cpp take anything."""


class ModelSettings(BaseSettings):
    """The part of `graph.settings.Settings` that is about models."""

    openai_api_key: SecretStr | None = Field(
        default=None, exclude=True, validation_alias=AliasChoices("openai_api_key", "OPENAI_API_KEY")
    )
    """Key of the endpoint."""
    openai_base_url: str | None = Field(
        default=None,
        exclude=True,
        validation_alias=AliasChoices("openai_base_url", "OPENAI_BASE_URL", "OPENAI_API_BASE"),
    )
    """URL of an OpenAI-compatible endpoint; None is OpenAI's own."""
    models: str = ""
    """An ensemble with weights, such as `gpt-5:0.6,o4-mini:0.4`; empty means that the agents are rules."""
    planner_models: str = ""
    """The planner's, where they are others; the same for the others."""
    coder_models: str = ""
    compiler_models: str = ""
    profiler_models: str = ""
    critic_models: str = ""
    interpreter_models: str = ""
    """Of free chat."""
    temperature: str = ""
    """For all roles or some: `0.7`, `0.7,compiler:0`; empty leaves it to the endpoint."""
    reasoning_effort: str = ""
    """For all roles or some: `medium`, `high,compiler:low`; empty leaves it to the endpoint."""
    model_timeout_s: float = Field(default=180.0, gt=0)
    """For one request."""
    model_retries: int = Field(default=4, ge=0, le=20)
    """Further requests after one that may succeed later."""
    retry_after_cap_s: float = Field(default=60.0, ge=0)
    """The longest pause that a server may ask for."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    model_parallel: int = Field(default=8, ge=1, le=256)
    """Requests under way at once."""
    max_output_tokens: int = Field(default=16_384, ge=256)
    """Of one answer."""
    model_tracing: bool = False
    """Send traces to the vendor's service that LANGSMITH_API_KEY names."""
    prices: Path | None = None
    """A price list like agents/prices.json; None takes that one."""
    max_cost_usd: float | None = Field(default=None, gt=0)
    """Cap on what a run's models cost."""
    max_tokens: int | None = Field(default=None, gt=0)
    """Cap on the tokens that a run's models read and write."""

    @cached_property
    def endpoint(self) -> Endpoint | None:
        """How models are reached; None where the agents are rules. Raises BadInput for a text that cannot be read."""
        casting = self._casting()
        if not casting or self.why_rules is not None:
            return None
        key = self.openai_api_key.get_secret_value() if self.openai_api_key else NO_KEY
        return Endpoint(
            casting=casting,
            api_key=key,
            base_url=self.openai_base_url or None,
            timeout_s=self.model_timeout_s,
            retries=self.model_retries,
            retry_after_cap_s=self.retry_after_cap_s,
            requests_per_minute=self.requests_per_minute,
            parallel=self.model_parallel,
            max_output_tokens=self.max_output_tokens,
            tracing=self.model_tracing,
        )

    @property
    def why_rules(self) -> str | None:
        """Why the agents are rules, in a few words; None where models play them."""
        has_key = self.openai_api_key is not None and bool(self.openai_api_key.get_secret_value())
        if not self.models:
            if any(getattr(self, f"{role.value}_models") for role in Role):
                return "models are named for some roles only; name the others' with WARPSMITH_MODELS"
            hint = "; name models with --models or WARPSMITH_MODELS" if has_key else ""
            return f"no model configured{hint}"
        if not has_key and not self.openai_base_url:
            return "no OPENAI_API_KEY, and no OPENAI_BASE_URL of a server that needs none"
        return None

    @property
    def caps(self) -> Caps:
        """What the models may use."""
        return Caps(tokens=self.max_tokens, cost_usd=self.max_cost_usd)

    @cached_property
    def price_list(self) -> Prices:
        """What tokens cost. Raises BadInput for a list that cannot be read."""
        return read_prices(self.prices)

    def _casting(self) -> dict[Role, Casting]:
        if not self.models:
            return {}
        general = parse_models(self.models)
        temperatures = by_role(self.temperature, temperature_of) if self.temperature else {}
        efforts = by_role(self.reasoning_effort, effort_of) if self.reasoning_effort else {}
        named: dict[Role, tuple[ModelChoice, ...]] = {
            role: parse_models(text) for role in Role if (text := getattr(self, f"{role.value}_models"))
        }
        return {
            role: Casting(named.get(role, general), temperatures.get(role), efforts.get(role))
            for role in Role
        }
