"""The result of a recorded run: what its nodes came to, put together as its workflow says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weft.core.errors import SourceError
from weft.core.events import RunStatus
from weft.engine import RunResult
from weft.workflow.document import Document
from weft.workflow.loader import load_texts
from weft.workflow.result import FlowResult, flow_result, output_templates
from weft.workflow.runs.sources import texts_in
from weft.workflow.runs.story import Story
from weft.workflow.secrets import recorded_sources


def result_of(story: Story) -> FlowResult:
    """The run as `FlowRun.wait` gave it, or would have: an unfinished one counts as cancelled."""
    ended, trace = story.ended, story.trace
    status: RunStatus = "cancelled" if ended is None else ended.status
    result = RunResult(
        story.run,
        status,
        story.outcomes,
        trace.usage if ended is None else ended.usage,
        trace.wall_s,
        () if ended is None else ended.reasons,
        () if ended is None else ended.leaked,
    )
    document = recorded_document(story)
    if document is not None:
        return flow_result(output_templates(document), story.header.inputs, result)
    values: dict[str, Any] = {
        node: outcome.value for node, outcome in story.outcomes.items() if "/" not in node
    }
    return FlowResult.of(result, values, {})


def recorded_document(story: Story) -> Document | None:
    """The workflow itself; None where its record cannot be read without the program around it."""
    try:
        return load_texts(texts_in(recorded_sources(story.header)), Path.cwd()).document
    except (SourceError, StopIteration):
        return None
