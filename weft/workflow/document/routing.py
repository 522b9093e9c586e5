"""A choice among models as a document declares it. Chooses nothing."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from weft.workflow.document.part import Name, Part
from weft.workflow.document.quantity import Duration


class PriceSpec(Part):
    """US dollars per million tokens."""

    prompt: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="Of a million tokens of prompts."
    )
    completion: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="Of a million tokens of answers."
    )


class AmongSpec(Part):
    """What is known of one model of a choice; what is not said costs nothing."""

    loss: float | None = Field(
        default=None,
        allow_inf_nan=False,
        description="The loss to expect, such as 1 - accuracy, in a unit that all of them share.",
    )
    price: PriceSpec | None = Field(default=None, description="US dollars per million tokens.")
    latency: Duration | None = Field(default=None, description="The time of a usual answer.")
    size: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="Billions of parameters."
    )


class WeightsSpec(Part):
    """How much loss a cost is worth, as a share of the dearest model's cost."""

    money: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="What the price of a call is worth."
    )
    latency: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="What the time of an answer is worth."
    )
    size: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        description="What the number of parameters is worth.",
    )


def _named(value: object) -> object:
    """A list of names stands for models of which nothing is known."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return {name: {} for name in value}
    return value


Among = Annotated[
    dict[Name, AmongSpec],
    BeforeValidator(_named, json_schema_input_type=list[Name] | dict[Name, AmongSpec]),
    Field(min_length=1),
]
"""Models of the document by name, each with what is known of it."""
