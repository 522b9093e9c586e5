"""What is known of one row of a batch besides its tokens. Knows no vLLM."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

LABEL = "weft_node"
"""The request's extra argument that names the node of the program that asks."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """What the answer is held to, as llguidance reads it."""

    kind: Literal["json", "lark", "regex"]
    text: str


@dataclass(frozen=True, slots=True)
class RowFacts:
    """`request` is the same in every step. `prompt_tokens` of its tokens were not generated."""

    request: str
    label: str = ""
    prompt_tokens: int = 0
    constraint: Constraint | None = None


class Batch(Protocol):
    """The engine's running batch, asked anew in every step."""

    def rows(self) -> Sequence[RowFacts]:
        """One for each row, in the order of the step's arrays. May raise anything."""

    def living(self) -> Container[str]:
        """The requests that have not ended, those without a row in this step included."""
