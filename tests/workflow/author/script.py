"""A request, its tools, and a scripted author that writes a good workflow for it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from weft.core.ports import ModelRequest
from weft.testing import FakeModel
from weft.testing.script import Reply

QUERY = "Find pages on a topic, summarise each, and say whether there are many."
TOOLS = '''
import weft

@weft.tool(pure=True)
def search(query: str, limit: int = 5) -> list[str]:
    """Find the titles of pages."""
    return [f"{query} {number}" for number in range(limit)]

@weft.tool(pure=True)
def shorten(text: str) -> str:
    """Shorten a text."""
    return text[:20]
'''
MEANT = {
    "input": [{"name": "topic", "type": "string", "description": "What to look for."}],
    "output": [{"name": "notes", "type": "list of strings"}, {"name": "verdict", "type": "string"}],
}
SKELETON: dict[str, Any] = {
    "nodes": [
        {"id": "hits", "kind": "tool", "tool": "search", "needs": ["topic"], "does": "Find pages."},
        {"id": "notes", "kind": "map", "item": "hit", "needs": ["hits"]},
        {"id": "draft", "kind": "model", "answer": "string", "inside": "notes", "needs": ["hit"]},
        {"id": "short", "kind": "tool", "tool": "shorten", "inside": "notes", "needs": ["draft"]},
        {"id": "kept", "kind": "branch", "cases": ["true", "false"], "needs": ["hits"]},
        {"id": "many", "kind": "value", "inside": "kept/true", "needs": ["topic"]},
        {"id": "few", "kind": "loop", "item": "text", "inside": "kept/false", "needs": ["topic"]},
        {"id": "again", "kind": "value", "inside": "few", "needs": ["text"]},
    ],
    "outputs": [{"output": "notes", "node": "notes"}, {"output": "verdict", "node": "kept"}],
}
FIELDS: dict[str, dict[str, Any]] = {
    "hits": {"with": {"query": "{{ topic }}", "limit": 3}},
    "notes": {"map": "{{ hits }}"},
    "draft": {"prompt": "Summarise this page:\n{{ hit }}"},
    "short": {"with": {"text": "{{ draft }}"}},
    "kept": {"branch": "{{ hits | length > 2 }}"},
    "many": {"value": "Many pages on {{ topic }}."},
    "few": {"start": "{{ topic }}", "until": "{{ text | length > 9 }}", "max": 3},
    "again": {"value": "{{ text }}!"},
}
_NODE = re.compile(r"(Write the node|Repair the part) `([^`]+)`")

Answer = Callable[[str], object]


def prompt_of(request: ModelRequest) -> str:
    """The prompt of a node; in a request for a repair, too."""
    return str(request.messages[0].content)


def layer_of(prompt: str) -> str:
    """The layer that a prompt asks for: a word, `write ID` or `repair ADDRESS`."""
    if found := _NODE.search(prompt):
        return f"{found[1].partition(' ')[0].lower()} {found[2]}"
    starts = {"Say what": "intention", "Write the steps": "bullets", "Draw the": "skeleton"}
    return next(layer for start, layer in starts.items() if prompt.startswith(start))


def good_answer(layer: str) -> Any:
    """What a good author answers to a layer's prompt."""
    fixed: dict[str, Any] = {
        "intention": MEANT,
        "bullets": {"bullets": ["Find pages.", "Summarise each.", "Say whether there are many."]},
        "skeleton": SKELETON,
    }
    return fixed[layer] if layer in fixed else FIELDS[layer.rpartition(" ")[2].rpartition("/")[2]]


def author(answers: Mapping[str, Any] | None = None) -> FakeModel:
    """A good author, but for the `answers` by layer: one, or a list of them in turn."""
    given = {key: list(a) if isinstance(a, list) else [a] for key, a in (answers or {}).items()}

    def reply(request: ModelRequest) -> str | Reply:
        layer = layer_of(prompt_of(request))
        turns = given.get(layer)
        answer = good_answer(layer) if not turns else turns.pop(0) if len(turns) > 1 else turns[0]
        return answer if isinstance(answer, str | Reply) else json.dumps(answer)

    return FakeModel(reply)


def layers(model: FakeModel) -> list[str]:
    """The layers that a model was asked for, in order."""
    return [layer_of(prompt_of(request)) for request in model.requests]
