"""What an API tells of one of its models."""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.ports.model import Capabilities


@dataclass(frozen=True, slots=True)
class ModelCard:
    """Limits and abilities of a model as its API reports them; None: it does not.

    `efforts` are the values of `reasoning_effort`, `thinking_modes` the ways in which thinking can
    be switched; `thinks`: it writes thoughts unless told otherwise; `budgets_thinking`: the tokens
    of a thought can be bounded.
    """

    max_output_tokens: int | None = None
    max_context_tokens: int | None = None
    structured_output: bool = True
    media: tuple[str, ...] = ()
    efforts: tuple[str, ...] | None = None
    thinking_modes: tuple[str, ...] | None = None
    thinks: bool | None = None
    budgets_thinking: bool = False

    def capabilities(self) -> Capabilities:
        """The capabilities of a client of this model."""
        return Capabilities(
            structured_output=self.structured_output,
            tools=True,
            max_context_tokens=self.max_context_tokens,
            media=self.media,
            thinking=self.budgets_thinking,
        )
