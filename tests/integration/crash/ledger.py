"""Tools that act on the world: a file to which each effect adds a line. Knows no run."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from weft.core.values import ToolSpec

_KEYED = {"type": "object", "properties": {"key": {"type": "string"}}}


class LedgerTools:
    """Implements `ToolRunner`: `look` only looks, `write` adds its key to the ledger.

    `acted` is called between an effect and its result: the worst moment to die.
    """

    def __init__(self, ledger: Path, acted: Callable[[], None] = lambda: None) -> None:
        self._ledger = ledger
        self._acted = acted

    def specs(self) -> tuple[ToolSpec, ...]:
        return (
            ToolSpec("look", "", _KEYED, effect="pure"),
            ToolSpec("write", "", _KEYED, effect="once"),
        )

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        key = str(arguments["key"])
        if name == "write":
            file = os.open(self._ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.write(file, f"{key}\n".encode())
            os.close(file)
            self._acted()
        return receipt(key)


def receipt(key: str) -> int:
    """What `write` returns."""
    return zlib.crc32(key.encode())


def entries(ledger: Path) -> Counter[str]:
    """How often each key was written."""
    return Counter(ledger.read_text().splitlines()) if ledger.exists() else Counter()
