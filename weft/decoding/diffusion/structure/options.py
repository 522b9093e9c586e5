"""How a skeleton is laid out. Knows no schema and no model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StructureOptions:
    """Settings of skeletons.

    open_tokens: slots that a value of unknown length begins with; it grows by as many when it is
    full. string_tokens: the most a string grows to. depth: how deep a schema may nest before
    anything has to be chosen. window: slots that are written at once where attention is full; 0:
    the whole skeleton.

    Raises: `ValueError` for sizes out of range.
    """

    open_tokens: int = 8
    string_tokens: int = 128
    depth: int = 32
    window: int = 0

    def __post_init__(self) -> None:
        if min(self.open_tokens, self.string_tokens, self.depth) < 1 or self.window < 0:
            raise ValueError(f"no skeletons with {self}")
