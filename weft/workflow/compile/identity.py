"""What a node is, as text: two nodes with one identity compute the same from the same inputs."""

from __future__ import annotations

import hashlib
import json

from weft.engine.node import Cache
from weft.reasoning.strategies import STRATEGIES
from weft.workflow.document.leaves import CallNode, ModelNode, ReduceNode, ToolNode, WorkflowNode
from weft.workflow.document.step import Step
from weft.workflow.document.thinking import ThinkSpec
from weft.workflow.document.walk import walk
from weft.workflow.sources import source_of
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

    The identity holds the node's definition with everything inside it, the models and tools it
    names, and the content of the Python files beside the workflow that they come from; not the
    code of installed packages.
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
            found += _model(inner.model, unit)
            found += _thinking(inner.think, unit)
        elif isinstance(inner, ToolNode):
            for choice in inner.choices:
                found += _tool(choice.tool, unit)
        elif isinstance(inner, CallNode):
            found += _function(inner.call, unit)
        elif isinstance(inner, ReduceNode):
            found += _function(inner.reduce, unit)
        elif isinstance(inner, WorkflowNode):
            included = unit.includes[inner.workflow].document
            found.append(included.model_dump(mode="json", by_alias=True, exclude_unset=True))
    return found


def _model(name: str, unit: Unit) -> list[object]:
    """The declaration of a model, those of the models behind it, and what a choice has learnt."""
    spec = unit.document.models[name]
    found: list[object] = [spec.model_dump(mode="json")]
    for other in spec.behind:
        found += _model(other, unit)
    return found + _content(spec.predictor, unit) + _thinking(spec.think, unit)


def _thinking(spec: ThinkSpec | None, unit: Unit) -> list[object]:
    """The functions and files that the settings of a strategy name."""
    entry = None if spec is None else STRATEGIES.get(spec.strategy)
    if spec is None or entry is None:
        return []
    found: list[object] = []
    for name, value in spec.settings.items():
        if isinstance(value, str) and name in entry.files:
            found += _content(value, unit)
        elif isinstance(value, str) and name in entry.functions:
            found += _function(value, unit)
    return found


def _tool(text: str, unit: Unit) -> list[object]:
    """The function behind a tool; of a source its declaration, and the document if it has one."""
    tools = unit.document.tools
    source = source_of(unit, text)
    if source is not None:
        declared = tools[source[0]]
        described = declared.openapi.document if declared.openapi is not None else None
        return [text, declared.model_dump(mode="json"), *_content(described, unit)]
    return [*_function(tools[text].use or text if text in tools else text, unit)]


def _content(path: str | None, unit: Unit) -> list[object]:
    """A digest of a file beside the workflow, where one is named and there."""
    file = None if path is None else unit.folder / path
    if file is None or not file.is_file():
        return []
    return [hashlib.sha256(file.read_bytes()).hexdigest()]


def _function(path: str, unit: Unit) -> list[str]:
    """The import path, and a digest of the file if it is one beside the workflow."""
    file = unit.folder / path.rpartition(":")[0]
    if not path.startswith(".") or not file.is_file():
        return [path]
    return [path, hashlib.sha256(file.read_bytes()).hexdigest()]
