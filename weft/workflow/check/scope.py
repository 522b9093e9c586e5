"""Which names exist at a place of a document. Knows no templates and no types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from weft.workflow.source import Path


@dataclass(frozen=True, slots=True)
class Symbol:
    """What a name stands for. `stands_in_for`: the node that this one only replaces."""

    kind: Literal["input", "node", "item"]
    path: Path
    stands_in_for: str | None = None


@dataclass(slots=True)
class Scope:
    """The names of one level; those of the levels around it are visible too."""

    outer: Scope | None = None
    symbols: dict[str, Symbol] = field(default_factory=dict)

    def find(self, name: str) -> Symbol | None:
        """What `name` stands for here."""
        if name in self.symbols:
            return self.symbols[name]
        return self.outer.find(name) if self.outer is not None else None

    def visible(self) -> Iterator[str]:
        """All names, the nearest first."""
        yield from self.symbols
        if self.outer is not None:
            yield from self.outer.visible()
