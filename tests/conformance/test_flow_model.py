from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import weft
from tests.conformance.model_client import ModelClientConformance
from weft.core.ports import ModelClient
from weft.testing import FakeModel, Reply
from weft.workflow.apps.flow_model import FlowModel

FLOW = """
name: talk
inputs: {question: string}
models: {m: local:x}
nodes:
  draft: {model: m, prompt: "{{ question }}"}
outputs: {answer: "{{ draft }}"}
"""


class TestFlowModel(ModelClientConformance):
    fake: FakeModel
    # A workflow says itself how long its models' answers may be.
    test_max_tokens_bounds_the_answer = None  # type: ignore[assignment]
    test_the_completion_comes_last_and_holds_all_deltas = None  # type: ignore[assignment]

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[ModelClient]:
        self.fake = FakeModel([Reply("red green blue " * 20, per_token_s=0.001)])
        async with aclosing(FlowModel(weft.loads(FLOW), {"m": self.fake})) as model:
            yield model

    def running(self) -> int:
        return self.fake.running
