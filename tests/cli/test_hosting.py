"""What a gateway says when it is ready."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("starlette", reason="a gateway needs weft[gateway]")

from weft.cli.commands.gateway import _welcome


def test_models_that_are_served_as_they_are_are_named_too() -> None:
    inputs = SimpleNamespace(conversation=None, question="prompt")
    flow: Any = SimpleNamespace(model="ask", inputs=inputs, streams=True)
    gateway: Any = SimpleNamespace(
        address="http://127.0.0.1:1", flow_models=[flow], other_models=("forms",)
    )
    assert "\n  forms: the model as it is\n" in _welcome(gateway, with_key=False)
    assert "/v1/runs" not in _welcome(gateway, with_key=False)
    told = _welcome(gateway, with_key=False, submissions=True)
    assert "\n  submissions: POST http://127.0.0.1:1/v1/runs\n" in told
