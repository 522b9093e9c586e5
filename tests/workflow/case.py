"""Running workflows on fakes, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import weft
from weft.core.ports import ModelRequest
from weft.testing import FakeClock, FakeModel, FakeTools, MemoryStore, Reply
from weft.workflow import FlowResult

WHOLE = Path(__file__).parent / "whole"
HEAD = """\
name: case
inputs:
  topic: {type: string, default: rivers}
models:
  small: local:smollm2-135m-instruct
tools:
  search: ./tools.py:search
"""


def loads(nodes: str, outputs: str = 'a: "{{ a }}"', head: str = HEAD) -> weft.Flow:
    """The workflow with these nodes, beside the files of `whole`."""
    text = f"{head}nodes:\n{nodes}\noutputs:\n  {outputs}\n"
    return weft.loads(text, str(WHOLE / "case.yaml"))


def echo(request: ModelRequest) -> str:
    """Answers with the prompt in brackets."""
    return f"<{request.messages[-1].content}>"


async def search(query: str, limit: int = 3) -> list[dict[str, str]]:
    return [{"text": f"{query} {number}"} for number in range(limit)]


def run(
    flow: weft.Flow,
    script: Callable[[ModelRequest], Reply | str] = echo,
    /,
    *,
    clock: FakeClock | None = None,
    **values: Any,
) -> FlowResult:
    """Run on a fake model `small` and a fake tool `search`."""
    clock = clock or FakeClock()
    settings: dict[str, Any] = {
        "models": {"small": FakeModel(script)},
        "tools": FakeTools(search=search),
        "store": MemoryStore(clock),
        "clock": clock,
        **values,
    }
    return clock.run(flow.run(**settings))
