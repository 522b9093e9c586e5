"""Every code block of the tutorials runs: see `tests/docs/lesson.py`."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="the tutorials need the `local` extra")

from tests.cli.typing_in import go_into
from tests.docs.lesson import Lesson
from tests.docs.pages import DOCS, blocks
from tests.serving.openai.scripted import EndpointServer, Script, chunk, says, usage

TUTORIALS = DOCS / "tutorials"
EMBEDDED = ("first-workflow", "rag", "thinking")
"""Those that run on the embedded model."""
ADDRESS = "http://127.0.0.1:8000/v1"


def support(asked: dict[str, Any]) -> Script:
    """Looks the order up, then proposes a refund."""
    if any(message["role"] == "tool" for message in asked["messages"]):
        return says(json.dumps({"order": 17, "amount": 40, "reason": "It arrived broken."}))
    call = {"name": "find_order", "arguments": '{"order": 17}'}
    calls = [{"index": 0, "id": "call_1", "type": "function", "function": call}]
    return Script([chunk({"tool_calls": calls}), chunk(finish="tool_calls"), usage(9, 3)])


def capital(_: dict[str, Any]) -> Script:
    return says("The capital of France is Paris.")


def echo(asked: dict[str, Any]) -> Script:
    return says(asked["messages"][-1]["content"])


SCRIPTS = {"agent": support, "vllm": capital, "testing": echo}


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return str(found.getsockname()[1])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(page.stem, marks=[pytest.mark.model] if page.stem in EMBEDDED else [])
        for page in sorted(TUTORIALS.glob("*.md"))
        if page.stem != "README"
    ],
)
def test_every_block_of_a_tutorial_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoints: EndpointServer
) -> None:
    go_into(tmp_path, monkeypatch)
    instead = {"8080": free_port()}
    if name in SCRIPTS:
        model = {"id": "qwen3-8b", "owned_by": "scripted", "max_model_len": 4096}
        instead[ADDRESS] = endpoints.add(SCRIPTS[name], model=model).base_url
    page = TUTORIALS / f"{name}.md"
    lesson = Lesson(page, tmp_path, instead)
    lesson.play()
    assert lesson.played == len(list(blocks(page))) > 3
