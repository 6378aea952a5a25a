"""Ensembles, roles and their settings as text: what is read, and what is refused in which words."""

from __future__ import annotations

import dataclasses
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.endpoint import (
    EFFORTS,
    Casting,
    Endpoint,
    ModelChoice,
    Role,
    by_role,
    effort_of,
    parse_models,
    temperature_of,
)
from memory.errors import BadInput


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("gpt-5", [("gpt-5", 1.0)]),
        ("gpt-5:0.6,o4-mini:0.4", [("gpt-5", 0.6), ("o4-mini", 0.4)]),
        (" gpt-5 : 2 , o3 ", [("gpt-5", 2.0), ("o3", 1.0)]),
        ("llama3:8b", [("llama3:8b", 1.0)]),
        ("llama3:8b:0.5", [("llama3:8b", 0.5)]),
        ("name:2:1", [("name:2", 1.0)]),
        ("org/model-7:3e-1", [("org/model-7", 0.3)]),
    ],
)
def test_an_ensemble_is_names_with_weights(text: str, choices: list[tuple[str, float]]) -> None:
    assert [(c.name, c.weight) for c in parse_models(text)] == choices


@pytest.mark.parametrize("text", ["", "a,,b", "a:0", "a:-1", "a:nan", "a:inf", ":0.5", "a:", ":"])
def test_a_part_that_is_no_model_with_a_weight_is_named(text: str) -> None:
    with pytest.raises(BadInput, match="no model with a weight above 0") as caught:
        parse_models(text)
    assert repr(text) in str(caught.value)


def test_a_value_without_a_role_holds_for_the_roles_not_named() -> None:
    values = by_role("0.7, compiler:0", float)
    assert values[Role.COMPILER] == 0.0
    assert {values[role] for role in Role if role is not Role.COMPILER} == {0.7}


def test_roles_that_nothing_is_said_about_are_absent() -> None:
    assert by_role("coder:1", float) == {Role.CODER: 1.0}


@pytest.mark.parametrize(
    ("text", "words"), [("manager:1", "names no role; roles: planner, coder"), ("1,2", "2 values without")]
)
def test_an_unknown_role_and_a_second_general_value_are_refused(text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        by_role(text, float)


@pytest.mark.parametrize("text", ["warm", "", "-0.1", "2.1", "nan", "inf"])
def test_a_temperature_is_a_number_from_0_to_2(text: str) -> None:
    assert (temperature_of("0"), temperature_of("2")) == (0.0, 2.0)
    with pytest.raises(BadInput, match="from 0 to 2"):
        temperature_of(text)


def test_an_unknown_effort_is_refused_with_those_there_are() -> None:
    assert [effort_of(text) for text in EFFORTS] == list(EFFORTS)
    with pytest.raises(BadInput, match="'maximal' is none of none, minimal, low"):
        effort_of("maximal")


@given(st.integers(0, 10_000))
def test_an_order_has_every_model_once_and_is_the_rngs(seed: int) -> None:
    casting = Casting(parse_models("a:0.5,b:2,c"))
    order = casting.order(Random(seed))
    assert sorted(order) == ["a", "b", "c"]
    assert casting.order(Random(seed)) == order


def test_a_heavier_model_comes_first_more_often() -> None:
    casting = Casting(parse_models("a:0.8,b:0.2"))
    firsts = [casting.order(Random(seed))[0] for seed in range(1000)]
    assert 740 < firsts.count("a") < 860


def test_every_model_of_every_role_is_named_once() -> None:
    general = Casting((ModelChoice("a", 1.0), ModelChoice("b", 1.0)))
    casting = {**dict.fromkeys(Role, general), Role.CRITIC: Casting((ModelChoice("c", 1.0),))}
    assert Endpoint(casting=casting, api_key="k").model_names() == ("a", "b", "c")


def test_the_key_is_in_no_repr_and_in_no_error() -> None:
    endpoint = Endpoint(casting=dict.fromkeys(Role, Casting(parse_models("a"))), api_key="sk-secret")
    assert "sk-secret" not in f"{endpoint!r} {endpoint}"
    with pytest.raises(dataclasses.FrozenInstanceError) as caught:
        endpoint.api_key = "other"  # type: ignore[misc]
    assert "sk-secret" not in str(caught.value)
