"""Identities of nodes: nodes of one identity compute the same results from the same inputs."""

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
        *("description", "when", "after", "weight", "budget", "degrade", "cache", "on", "writes"),
        *("retry", "retry_on", "repair", "timeout", "fallback", "default", "on_failure"),
    )
)
"""Fields about the execution of a node, not about what it computes."""


_IRRELEVANT = frozenset(("description", "after", "weight", "budget", "cache", "retry", "on"))
_IRRELEVANT |= {"retry_on", "repair", "timeout", "writes"}
"""Fields that change neither a node's result nor its replacement."""
_OF_CALLS = {"breaker"}
"""Fields of a declaration about when its calls are made."""


class Digests(Protocol):
    """Digests of the files and functions that a workflow names; None where there is none."""

    def file(self, unit: Unit, path: str) -> str | None:
        """The digest of a file's content; its path is relative to the folder of `unit`."""

    def function(self, unit: Unit, reference: str) -> str | None:
        """The digest of a function's code; `reference` as in `unit`."""


class CodeDigests:
    """Implements `Digests` with those of the current files."""

    def file(self, unit: Unit, path: str) -> str | None:
        try:
            return content_digest(unit.folder / path)
        except OSError:
            return None

    def function(self, unit: Unit, reference: str) -> str | None:
        given = unit.functions.get(reference)
        if given is not None:
            return object_digest(given.function if isinstance(given, Tool) else given)
        source, _, name = reference.rpartition(":")
        try:
            return function_digest(unit.folder / source if is_file(source) else source, name)
        except OSError:
            return None


class DigestSnapshot:
    """Implements `Digests` with those of `inner`, and memoizes them."""

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
        """Whether `digests` gives the same for all memoized ones."""
        return all(digests.file(*key) == digest for key, digest in self._files.items()) and all(
            digests.function(*key) == digest for key, digest in self._functions.items()
        )


def cache_of(step: BaseNode, unit: Unit, digests: Digests | None = None) -> NodeCache | None:
    """The cache policy of a node, or None when it has none.

    The identity covers the node's definition with its bodies, its models and tools, and the code of
    their functions; `digests` give the code, by default the current one.
    """
    if step.cache is None:
        return None
    parts = [_definition(step, _AROUND), *_declarations(step, unit, digests or CodeDigests())]
    return NodeCache(_hashed([*parts, *_field_orders(step)]), step.cache.ttl, ordered=True)


def identity_of(step: BaseNode, unit: Unit, digests: Digests | None = None) -> str:
    """The identity of a node, its replacement and default included; see `cache_of`.

    `digests` are asked for everything that the node depends on.
    """
    declarations = _declarations(step, unit, digests or CodeDigests())
    return _hashed([_definition(step, _IRRELEVANT), *declarations])


def _field_orders(step: BaseNode) -> Iterator[object]:
    """The order in which models write the fields of answers, where it is not the alphabet's."""
    for _, inner in walk({"": step}):
        schema = inner.output_schema if isinstance(inner, ModelNode) else None
        properties = schema.get("properties") if schema is not None else None
        if isinstance(properties, dict) and list(properties) != sorted(properties):
            yield list(properties)


def value_identity(value: object) -> str:
    """The identity of a node that only computes `value`, a template."""
    return _hashed(["value", value])


def _hashed(parts: list[object]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _definition(step: BaseNode, besides: frozenset[str]) -> object:
    return step.model_dump(mode="json", by_alias=True, exclude=set(besides), exclude_unset=True)


def _declarations(
    step: BaseNode, unit: Unit, digests: Digests, seen: set[Unit] | None = None
) -> Iterator[object]:
    """`seen`: the workflows that run themselves and are described already."""
    seen = set() if seen is None else seen
    declared = _DeclarationDigests(unit, digests)
    for _, inner in walk({"": step}):
        match inner:
            case ModelNode():
                yield from declared.model_node(inner)
            case ToolNode():
                for choice in inner.choices:
                    yield from declared.tool(choice.tool)
            case CallNode():
                yield from declared.function(inner.call)
            case ReduceNode():
                yield from declared.function(inner.reduce)
            case WorkflowNode():
                yield from _workflow(unit.includes[inner.workflow], digests, seen)


def _workflow(unit: Unit, digests: Digests, seen: set[Unit]) -> Iterator[object]:
    """An included workflow; nothing where it runs itself and is in `seen`."""
    if unit in seen:
        return
    if unit.runs_itself:
        seen.add(unit)
    yield unit.document.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for other in unit.document.nodes.values():
        yield from _declarations(other, unit, digests, seen)


class _DeclarationDigests:
    """The declarations and digests behind the names in the nodes of one document."""

    def __init__(self, unit: Unit, digests: Digests) -> None:
        self._unit = unit
        self._digests = digests

    def model_node(self, step: ModelNode) -> Iterator[object]:
        """The model of a node, its strategy, and its tools."""
        if step.model in self._unit.document.models:
            yield from self.model(step.model)
        summarizer = step.conversation and step.conversation.summarize
        if isinstance(summarizer, str):
            yield from self.model(summarizer)
        yield from self.thinking(step.think)
        for text in step.tools:
            yield from self.tool(text)

    def model(self, name: str) -> Iterator[object]:
        """A declaration, those of the models behind it, and a route's predictor."""
        spec = self._unit.document.models[name]
        yield spec.model_dump(mode="json", exclude=_OF_CALLS)
        for other in spec.behind:
            yield from self.model(other)
        yield from self.content(spec.predictor)
        yield from self.thinking(spec.think)

    def thinking(self, spec: ThinkSpec | None) -> Iterator[object]:
        """The functions and files in the settings of a strategy."""
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
        """The function of a tool; of a server its declaration, and its document if any."""
        tools = self._unit.document.tools
        source = source_of(self._unit, text)
        if source is not None:
            declared = tools[source[0]]
            yield from (text, declared.model_dump(mode="json", exclude=_OF_CALLS))
            yield from self.content(declared.openapi.document if declared.openapi else None)
        else:
            yield from self.function(tools[text].use or text if text in tools else text)

    def content(self, path: str | None) -> Iterator[object]:
        """The digest of a file of the workflow, if it is named and exists."""
        digest = None if path is None else self._digests.file(self._unit, path)
        if digest is not None:
            yield digest

    def function(self, path: str) -> Iterator[object]:
        """The import path, and the digest of the code."""
        yield path
        digest = self._digests.function(self._unit, path)
        if digest is not None:
            yield digest
