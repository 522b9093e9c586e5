"""What a gateway serves: model clients by the names that clients of the gateway call them."""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.ports import ModelClient, ModelRequest
from weft.decoding.diffusion.guard.priors import PriorLimits


@dataclass(frozen=True, slots=True)
class Served:
    """One model. `fields` are further fields of request bodies that its client understands.

    They are passed on in `ModelRequest.extra`. `created` is when it came, in Unix seconds.
    `priors`: limits on what schemas of callers put into an answer before the model has written any
    of it; None: they are not looked at. `runs`: behind an answer is a run; where that is recorded,
    the client calls the function `ModelRequest.extra["began"]` with its id.
    """

    name: str
    client: ModelClient
    fields: frozenset[str] = frozenset()
    description: str = ""
    created: int = 0
    priors: PriorLimits | None = None
    runs: bool = False

    def card(self) -> dict[str, object]:
        """The model as `/v1/models` lists it."""
        card: dict[str, object] = {
            "id": self.name,
            "object": "model",
            "created": self.created,
            "owned_by": "weft",
        }
        return {**card, "description": self.description} if self.description else card

    def check(self, request: ModelRequest) -> None:
        """Raises: `ModelRequestError` for a schema with too much text in it."""
        if self.priors is not None and request.schema is not None:
            self.priors.check_schema(request.schema)
