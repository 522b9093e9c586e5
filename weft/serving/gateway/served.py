"""What a gateway serves: model clients by the names that clients of the gateway call them."""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.ports import ModelClient


@dataclass(frozen=True, slots=True)
class Served:
    """One model. `fields` are further fields of request bodies that its client understands.

    They are passed on in `ModelRequest.extra`. `created` is when it came, in Unix seconds.
    """

    name: str
    client: ModelClient
    fields: frozenset[str] = frozenset()
    description: str = ""
    created: int = 0

    def card(self) -> dict[str, object]:
        """The model as `/v1/models` lists it."""
        card: dict[str, object] = {
            "id": self.name,
            "object": "model",
            "created": self.created,
            "owned_by": "weft",
        }
        return {**card, "description": self.description} if self.description else card
