"""Every code block of the tutorials runs: see `tests/docs/tutorial_run.py`."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("torch", reason="the tutorials need the `local` extra")

from tests.cli.command_line import go_into
from tests.docs.pages import DOCS, blocks
from tests.docs.tutorial_run import Lesson
from tests.serving.openai.scripted import EndpointServer, Script, chunk, says, usage

TUTORIALS: Final = DOCS / "tutorials"
ADDRESS: Final = "http://127.0.0.1:8000/v1"
Asked = Mapping[str, Any]


def prompt(asked: Asked) -> str:
    return str(asked["messages"][-1]["content"])


def support(asked: Asked) -> Script:
    """Looks the order up, then proposes a refund."""
    if any(message["role"] == "tool" for message in asked["messages"]):
        return says(json.dumps({"order": 17, "amount": 40, "reason": "It arrived broken."}))
    call = {"name": "find_order", "arguments": '{"order": 17}'}
    calls = [{"index": 0, "id": "call_1", "type": "function", "function": call}]
    return Script([chunk({"tool_calls": calls}), chunk(finish="tool_calls"), usage(9, 3)])


def librarian(asked: Asked) -> Script:
    """Cites the passage that says when the lighthouse opens."""
    cited = re.search(r"\[(\d)\] It opens", prompt(asked))
    if cited is None:
        return says("It opens from 10 to 17 o'clock.")
    return says(json.dumps({"answer": "From 10 to 17 o'clock.", "cites": [int(cited[1])]}))


def reviewer(asked: Asked) -> Script:
    """Right about nearly every review where it is told to classify, else about three in five."""
    text = prompt(asked)
    data = files("weft.cli.starter").joinpath("reviews/reviews.jsonl").read_text("utf-8")
    rows = map(json.loads, data.splitlines())
    gold = next(row["expected"] for row in rows if row["text"] in text)
    share = 0.95 if "classify" in text else 0.6
    draw = int.from_bytes(sha256(text.encode()).digest()[:4]) / 2**32
    other = {"positive": "negative", "negative": "positive"}[gold]
    return says(json.dumps({"reason": "-", "sentiment": gold if draw < share else other}))


SERVERS: Final[Mapping[str, Callable[[Asked], Script]]] = {
    "agent": support,
    "first-workflow": lambda asked: says(prompt(asked).splitlines()[-1].partition(".")[0] + "."),
    "optimise": reviewer,
    "rag": librarian,
    "testing": lambda asked: says(prompt(asked)),
    "thinking": lambda _: says("3 boxes of 4 pens are 12 pens. Answer: 12"),
    "vllm": lambda _: says("The capital of France is Paris."),
}
"""What answers in the place of a model, by tutorial."""
EMBEDDED: Final = ("first-workflow", "optimise", "rag", "thinking")
"""Those that are written for the embedded model."""


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return str(found.getsockname()[1])


def served(name: str, endpoints: EndpointServer) -> dict[str, str]:
    """What to write in a tutorial so that a scripted server answers all of its calls."""
    about = {"id": "qwen3-8b", "owned_by": "scripted", "max_model_len": 4096}
    address = endpoints.add(SERVERS[name], model=about).base_url
    model = json.dumps({"use": "openai", "model": "qwen3-8b", "base_url": address})
    return {
        "8080": free_port(),
        "budget: 3000calls": "budget: 900calls",
        ADDRESS: address,
        "{use: local, model: smollm2-135m-instruct}": model,
        '"local:smollm2-135m-instruct"': model,
        "--strategy": f"--model qwen3-8b --base-url {address} --strategy",
    }


@pytest.mark.parametrize("name", SERVERS)
def test_every_block_runs_against_a_scripted_server(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoints: EndpointServer
) -> None:
    go_into(tmp_path, monkeypatch)
    page = TUTORIALS / f"{name}.md"
    lesson = Lesson(page, tmp_path, served(name, endpoints))
    lesson.play()
    assert lesson.played == len(list(blocks(page))) > 3


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.parametrize("name", EMBEDDED)
def test_every_block_runs_on_the_embedded_model(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_into(tmp_path, monkeypatch)
    Lesson(TUTORIALS / f"{name}.md", tmp_path, {}, embedded=True).play()


def test_every_tutorial_is_played() -> None:
    assert {page.stem for page in TUTORIALS.glob("*.md")} - {"README"} == set(SERVERS)
