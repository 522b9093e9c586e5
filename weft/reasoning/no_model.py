"""What stands in the place of a model where a strategy is made, but not asked anything."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from weft.core.errors import InternalError
from weft.core.ports import Capabilities, ModelEvent, ModelRequest


class NoModel:
    """Implements `ModelClient`. Whoever asks it anything gets an `InternalError`."""

    model = "no model"

    async def capabilities(self) -> Capabilities:
        raise InternalError("a strategy looks at its model before it is asked")

    def generate(
        self,
        request: ModelRequest,  # noqa: ARG002 - the port's signature
    ) -> AsyncGenerator[ModelEvent, None]:
        raise InternalError("a strategy asks its model before it is asked")

    async def aclose(self) -> None:
        """There is nothing to close."""
