"""The names of a document, level by level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from weft.workflow.document.source import KeyPath


@dataclass(frozen=True, slots=True)
class DocumentSymbol:
    """A name of a document. `replaces`: the node that this one is a fallback of, if any."""

    kind: Literal["input", "state", "node", "item", "break"]
    path: KeyPath
    replaces: str | None = None


@dataclass(slots=True)
class SymbolTable:
    """The names of one level; names of outer levels are visible too."""

    outer: SymbolTable | None = None
    symbols: dict[str, DocumentSymbol] = field(default_factory=dict)

    def find(self, name: str) -> DocumentSymbol | None:
        """The symbol `name`, here or in an outer level."""
        if name in self.symbols:
            return self.symbols[name]
        return self.outer.find(name) if self.outer is not None else None

    def visible(self) -> Iterator[str]:
        """All names, innermost first."""
        yield from self.symbols
        if self.outer is not None:
            yield from self.outer.visible()
