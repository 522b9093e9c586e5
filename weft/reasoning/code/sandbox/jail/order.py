"""What the keeper is told, as one JSON document on its standard input. Values only."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from weft.reasoning.code.sandbox.limits import Limits


@dataclass(frozen=True, slots=True)
class Order:
    """Run `command` with `stdin` and `files` (by path below the box) within `limits`.

    `reads` are the paths that it may see; `box` is a directory for it, for when no mount namespace
    can hold one. `allow` names protections that may be missing. `parent` is the process to die
    with, `report` the file descriptor for the outcome. `probe`: set up everything and run nothing.
    """

    command: tuple[str, ...]
    stdin: bytes
    files: Mapping[str, bytes]
    environment: Mapping[str, str]
    reads: tuple[str, ...]
    limits: Limits
    allow: tuple[str, ...]
    parent: int = 0
    report: int = 2
    box: str = ""
    probe: bool = False

    def as_json(self) -> bytes:
        """As the keeper reads it."""
        plain: dict[str, Any] = {**asdict(self), "stdin": _encoded(self.stdin)}
        plain["files"] = {name: _encoded(content) for name, content in self.files.items()}
        return json.dumps(plain).encode()

    @staticmethod
    def from_json(text: bytes) -> Order:
        """What `as_json` wrote."""
        plain: dict[str, Any] = json.loads(text)
        plain["stdin"] = base64.b64decode(plain["stdin"])
        plain["files"] = {name: base64.b64decode(held) for name, held in plain["files"].items()}
        plain["limits"] = Limits(**plain["limits"])
        plain.update({name: tuple(plain[name]) for name in ("command", "reads", "allow")})
        return Order(**plain)


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
