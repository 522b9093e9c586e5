"""What a node is, as text: two nodes with one identity compute the same from the same inputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Protocol

from weft.agents.tools import Tool
from weft.agents.tools.code import content_digest, function_digest, object_digest
from weft.agents.tools.module import is_file
from weft.engine.graph.node import NodeCache
from weft.workflow.document.spec.document import walk
from weft.workflow.document.spec.model_settings import ThinkSpec
from weft.workflow.document.spec.nodes import (
    BaseNode,
    CallNode,
    ModelNode,
    ReduceNode,
    ToolNode,
    WorkflowNode,
)
from weft.workflow.document.tool_servers import source_of
from weft.workflow.document.unit import Unit

_AROUND = frozenset(
    (
        *("description", "when", "after", "weight", "budget", "degrade", "cache"),
        *("retry", "timeout", "fallback", "default", "on_failure"),
    )
)
"""Fields that say what happens around the work, not what it computes."""


_NOT_SAID = frozenset(("description", "after", "weight", "budget", "cache", "retry", "timeout"))
"""Fields that change neither what a node comes to, nor what stands in for it."""


class Digests(Protocol):
    """What stands for the files and functions that a workflow names; None where nothing does."""

    def file(self, unit: Unit, path: str) -> str | None:
        """Of the content of a file, whose path starts at the folder of `unit`."""

    def function(self, unit: Unit, reference: str) -> str | None:
        """Of the code of a function, as `unit` refers to it."""


class CodeDigests:
    """Implements `Digests` by what the files are now."""

    def file(self, unit: Unit, path: str) -> str | None:
        try:
            return content_digest(unit.folder / path)
        except OSError:
            return None

    def function(self, unit: Unit, reference: str) -> str | None:
        known = unit.functions.get(reference)
        if known is not None:
            return object_digest(known.function if isinstance(known, Tool) else known)
        source, _, name = reference.rpartition(":")
        try:
            return function_digest(unit.folder / source if is_file(source) else source, name)
        except OSError:
            return None


class DigestSnapshot:
    """Implements `Digests` by those of `inner`, and remembers what it was asked for."""

    def __init__(self, inner: Digests) -> None:
        self._inner = inner
        self._files: dict[tuple[Unit, str], str | None] = {}
        self._functions: dict[tuple[Unit, str], str | None] = {}

    def file(self, unit: Unit, path: str) -> str | None:
        if (unit, path) not in self._files:
            self._files[unit, path] = self._inner.file(unit, path)
        return self._files[unit, path]

    def function(self, unit: Unit, reference: str) -> str | None:
        if (unit, reference) not in self._functions:
            self._functions[unit, reference] = self._inner.function(unit, reference)
        return self._functions[unit, reference]

    def hold(self, digests: Digests) -> bool:
        """Whether `digests` say the same of all of it."""
        return all(digests.file(*key) == known for key, known in self._files.items()) and all(
            digests.function(*key) == known for key, known in self._functions.items()
        )


def cache_of(step: BaseNode, unit: Unit, digests: Digests | None = None) -> NodeCache | None:
    """The cache policy of a node, or None when it has none.

    The identity holds the node's definition with everything inside it, the models and tools it
    names, and the code of their functions; `digests` stand for that, by default as it is now.
    """
    if step.cache is None:
        return None
    said = [_definition(step, _AROUND), *_declarations(step, unit, digests or CodeDigests())]
    return NodeCache(_hashed(said), step.cache.ttl)


def identity_of(step: BaseNode, unit: Unit, digests: Digests | None = None) -> str:
    """What the outcome of a node depends on, beside its inputs: as `cache_of`, with what stands in.

    `digests` are asked for everything that the node depends on; without them, files as they are.
    """
    said = _declarations(step, unit, digests or CodeDigests())
    return _hashed([_definition(step, _NOT_SAID), *said])


def value_identity(value: object) -> str:
    """The identity of a node that only computes `value`, a template."""
    return _hashed(["value", value])


def _hashed(said: list[object]) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _definition(step: BaseNode, besides: frozenset[str]) -> object:
    return step.model_dump(mode="json", by_alias=True, exclude=set(besides), exclude_unset=True)


def _declarations(step: BaseNode, unit: Unit, digests: Digests) -> Iterator[object]:
    declared = _DeclarationDigests(unit, digests)
    for _, inner in walk({"": step}):
        match inner:
            case ModelNode():
                yield from declared.asked(inner)
            case ToolNode():
                for choice in inner.choices:
                    yield from declared.tool(choice.tool)
            case CallNode():
                yield from declared.function(inner.call)
            case ReduceNode():
                yield from declared.function(inner.reduce)
            case WorkflowNode():
                included = unit.includes[inner.workflow]
                yield included.document.model_dump(mode="json", by_alias=True, exclude_unset=True)
                for other in included.document.nodes.values():
                    yield from _declarations(other, included, digests)


class _DeclarationDigests:
    """What the names in the nodes of one document stand for."""

    def __init__(self, unit: Unit, digests: Digests) -> None:
        self._unit = unit
        self._digests = digests

    def asked(self, step: ModelNode) -> Iterator[object]:
        """The model of a node, its strategy, and the tools that it is offered."""
        if step.model in self._unit.document.models:
            yield from self.model(step.model)
        yield from self.thinking(step.think)
        for text in step.tools:
            yield from self.tool(text)

    def model(self, name: str) -> Iterator[object]:
        """A declaration, those of the models behind it, and what a choice has learnt."""
        spec = self._unit.document.models[name]
        yield spec.model_dump(mode="json")
        for other in spec.behind:
            yield from self.model(other)
        yield from self.content(spec.predictor)
        yield from self.thinking(spec.think)

    def thinking(self, spec: ThinkSpec | None) -> Iterator[object]:
        """The functions and files that the settings of a strategy name."""
        if spec is None:
            return
        from weft.reasoning.strategies import STRATEGIES

        entry = STRATEGIES.get(spec.strategy)
        if entry is None:
            return
        for name, value in spec.settings.items():
            if isinstance(value, str) and name in entry.files:
                yield from self.content(value)
            elif isinstance(value, str) and name in entry.functions:
                yield from self.function(value)

    def tool(self, text: str) -> Iterator[object]:
        """The function behind a tool; of a source its declaration, and its document if any."""
        tools = self._unit.document.tools
        source = source_of(self._unit, text)
        if source is not None:
            declared = tools[source[0]]
            yield from (text, declared.model_dump(mode="json"))
            yield from self.content(declared.openapi.document if declared.openapi else None)
        else:
            yield from self.function(tools[text].use or text if text in tools else text)

    def content(self, path: str | None) -> Iterator[object]:
        """A digest of a file beside the workflow, where one is named and there."""
        found = None if path is None else self._digests.file(self._unit, path)
        if found is not None:
            yield found

    def function(self, path: str) -> Iterator[object]:
        """The import path, and a digest of the code."""
        yield path
        found = self._digests.function(self._unit, path)
        if found is not None:
            yield found
