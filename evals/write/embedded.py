"""Two small workflows by the embedded model: one honest row of what it can do as an author."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from weft.core.errors import AgentError
from weft.workflow import Models
from weft.workflow.apps.tool_sources import ToolSources
from weft.workflow.apps.write import write_flow, written_by
from weft.workflow.author.intention import Intention, IntentionField
from weft.workflow.author.program import WriteOptions
from weft.workflow.runtime.models.factory import DEFAULT_MODEL

_TOOLS: Final = '''
import weft


@weft.tool(pure=True)
def search(query: str) -> list[str]:
    """Find the titles of pages on a topic."""
    return [query]


@weft.tool(pure=True)
def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())
'''
_QUERIES: Final = (
    ("Count the words of a text.", Intention((IntentionField("text"),), (IntentionField("n"),))),
    (
        "Find pages on a topic and count the words of each title.",
        Intention((IntentionField("topic"),), (IntentionField("counts"),)),
    ),
)


def rows(quick: bool) -> list[dict[str, Any]]:
    """Share of drafts that came about and of accepted ones, and what they took."""
    return asyncio.run(_rows(_QUERIES[:1] if quick else _QUERIES))


async def _rows(queries: tuple[tuple[str, Intention], ...]) -> list[dict[str, Any]]:
    drafts, accepted, seconds, tokens = [], [], [], []
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "tools.py").write_text(_TOOLS, "utf-8")
        async with Models() as models:
            for number, (query, meant) in enumerate(queries):
                begun = time.monotonic()
                question = write_flow(
                    query,
                    ToolSources([f"{place}/tools.py"]),
                    DEFAULT_MODEL,
                    Path(place) / f"flow{number}.yaml",
                    WriteOptions(meant, max_tokens=320),
                )
                run = question.start(models)
                result = await run.wait()
                try:
                    accepted.append(not written_by(result, run.id).remaining)
                    drafts.append(True)
                except AgentError:
                    accepted.append(False)
                    drafts.append(False)
                seconds.append(time.monotonic() - begun)
                tokens.append(result.usage.completion_tokens)
    figures = {
        "workflows": (len(queries), "workflows"),
        "drafts": (fmean(drafts), "share"),
        "accepted": (fmean(accepted), "share"),
        "tokens": (fmean(tokens), "tokens"),
        "s": (fmean(seconds), "s"),
    }
    return [
        {"case": "small", "system": "smollm2-135m-instruct", "metric": k, "value": v, "unit": u}
        for k, (v, u) in figures.items()
    ]
