"""What a node is, as text: two nodes with one identity compute the same from the same inputs."""

from __future__ import annotations

import hashlib
import json

from weft.engine.node import Cache
from weft.workflow.document.leaves import ModelNode, ToolNode, WorkflowNode
from weft.workflow.document.step import Step
from weft.workflow.document.walk import walk
from weft.workflow.unit import Unit

_AROUND = frozenset(
    (
        *("description", "when", "after", "weight", "budget", "degrade", "cache"),
        *("retry", "timeout", "fallback", "default", "on_failure"),
    )
)
"""Fields that say what happens around the work, not what it computes."""


def cache_of(step: Step, unit: Unit) -> Cache | None:
    """The cache policy of a node, or None when it has none.

    The identity holds the node's definition with everything inside it, and the models and tools it
    names; not the code of Python functions.
    """
    if step.cache is None:
        return None
    text = json.dumps([_definition(step), _declarations(step, unit)], sort_keys=True)
    return Cache(hashlib.sha256(text.encode()).hexdigest(), step.cache.ttl)


def _definition(step: Step) -> object:
    return step.model_dump(mode="json", by_alias=True, exclude=set(_AROUND), exclude_unset=True)


def _declarations(step: Step, unit: Unit) -> list[object]:
    document = unit.document
    found: list[object] = []
    for _, inner in walk({"": step}):
        if isinstance(inner, ModelNode) and inner.model in document.models:
            found.append(document.models[inner.model].model_dump(mode="json"))
        elif isinstance(inner, ToolNode) and inner.tool in document.tools:
            found.append(document.tools[inner.tool].use)
        elif isinstance(inner, WorkflowNode):
            included = unit.includes[inner.workflow].document
            found.append(included.model_dump(mode="json", by_alias=True, exclude_unset=True))
    return found
