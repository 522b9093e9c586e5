from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

from tests.conformance.model_client import ScriptedModelConformance
from weft.core.ports import ModelClient
from weft.planner.choice import RoutedModel, StaticPredictor
from weft.testing import FakeModel, Reply


class TestRoutedModel(ScriptedModelConformance):
    fakes: dict[str, FakeModel]
    # A script is not held to the schema.
    test_a_wrong_schema_is_a_request_error = None  # type: ignore[assignment]

    @asynccontextmanager
    async def playing(self, script: Callable[[bool], Reply]) -> AsyncIterator[ModelClient]:
        self.fakes = {
            name: FakeModel(lambda request: script(request.schema is not None))
            for name in ("small", "large")
        }
        predictor = StaticPredictor({"small": 0.4, "large": 0.2})
        async with aclosing(RoutedModel(self.fakes, predictor=predictor)) as model:
            yield model

    def running(self) -> int:
        return sum(fake.running for fake in self.fakes.values())
