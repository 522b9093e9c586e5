"""A catalogue: tools in a tree of fields and subfields. Knows no search and no model."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from weft.agents.untrusted import printable
from weft.core.errors import BuildError
from weft.core.values import ToolSpec
from weft.planner.prompt import tools_section

MOST_TOOLS: Final = 100_000
OTHER: Final = "other"
"""The field of tools that belong to none."""

_NAME_CHARS: Final = 80
_DEEPEST: Final = 4
_BYTES_PER_TOKEN: Final = 4
_LARGE_GROUP: Final = 20

FieldPath = tuple[str, ...]


def tokens_of(text: str) -> int:
    """An estimate of the tokens of `text`: four bytes of UTF-8 each, rounded up."""
    return math.ceil(len(text.encode("utf-8", "replace")) / _BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class CatalogueTool:
    """A tool in the field `path`. `tokens`: of its declaration in a planner's prompt."""

    spec: ToolSpec
    path: FieldPath
    tokens: int

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.spec.name


@dataclass(frozen=True, slots=True)
class CatalogueGroup:
    """A field: the paths of its subfields, its own tools by name, and how many are below it."""

    path: FieldPath
    groups: tuple[FieldPath, ...]
    tools: tuple[str, ...]
    count: int


class Catalogue:
    """Tools in a tree. `refused`: declarations that were left out, each with the reason.

    Raises: `BuildError` for no tools, more than 100,000 of them, or two of one name.
    """

    def __init__(
        self, tools: Iterable[tuple[ToolSpec, FieldPath]], refused: Sequence[str] = ()
    ) -> None:
        self.tools: dict[str, CatalogueTool] = {}
        for spec, path in tools:
            if spec.name in self.tools:
                hint = "give one another name"
                raise BuildError(f"a catalogue has two tools {spec.name!r}", hint=hint)
            tokens = tokens_of(f"{tools_section([spec])}\n")
            self.tools[spec.name] = CatalogueTool(spec, field_path(path), tokens)
        if not self.tools:
            raise BuildError("a catalogue has no tools", hint="give at least one tool")
        if len(self.tools) > MOST_TOOLS:
            raise BuildError(f"a catalogue has at most {MOST_TOOLS:,} tools")
        self.refused = tuple(refused)
        self.groups = _groups(self.tools.values())

    @classmethod
    def grouped(cls, specs: Sequence[ToolSpec]) -> Catalogue:
        """Tools without fields: those whose names share a prefix, such as their server's."""
        return cls(zip(specs, prefix_paths([spec.name for spec in specs]), strict=True))

    def __len__(self) -> int:
        return len(self.tools)

    @property
    def root(self) -> CatalogueGroup:
        """The whole."""
        return self.groups[()]

    @property
    def tokens(self) -> int:
        """The tokens of all declarations."""
        return sum(tool.tokens for tool in self.tools.values())

    @cached_property
    def digest(self) -> str:
        """Equal for catalogues with the same tools in the same fields."""
        content: list[Any] = [
            [tool.path, tool.name, tool.spec.description, tool.spec.parameters]
            for tool in self.tools.values()
        ]
        text = json.dumps(content, sort_keys=True, default=dict)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def specs(self, names: Iterable[str]) -> tuple[ToolSpec, ...]:
        """The declarations of the tools `names`."""
        return tuple(self.tools[name].spec for name in names)

    def below(self, path: FieldPath) -> list[str]:
        """The names of all tools in the field `path` and its subfields, in order."""
        group = self.groups[path]
        return [*group.tools, *(name for inner in group.groups for name in self.below(inner))]


def field_path(path: Sequence[str]) -> FieldPath:
    """`path` as printable names without `/`, at most four; `("other",)` for an empty one."""
    parts = [" ".join(printable(part, _NAME_CHARS).replace("/", "-").split()) for part in path]
    kept = [part for part in parts if part.strip(" .-")]
    if len(kept) > _DEEPEST:
        kept[_DEEPEST - 1 :] = [" - ".join(kept[_DEEPEST - 1 :])[:_NAME_CHARS]]
    return tuple(kept) or (OTHER,)


def path_text(path: FieldPath) -> str:
    """`Finance/Taxes`."""
    return "/".join(path)


def prefix_paths(names: Sequence[str]) -> list[FieldPath]:
    """The field of each name: the part before its first `_`, if another name shares it.

    Fields of more than 20 tools are divided once more.
    """
    heads = [name.split("_") for name in names]
    first = Counter(head[0] for head in heads if len(head) > 1)
    second = Counter(tuple(head[:2]) for head in heads if len(head) > 2)
    found: list[FieldPath] = []
    for head in heads:
        if len(head) < 2 or first[head[0]] < 2:
            found.append((OTHER,))
        elif first[head[0]] > _LARGE_GROUP and second[tuple(head[:2])] > 1:
            found.append((head[0], head[1]))
        else:
            found.append((head[0],))
    return found


def _groups(tools: Iterable[CatalogueTool]) -> Mapping[FieldPath, CatalogueGroup]:
    inner: dict[FieldPath, dict[FieldPath, None]] = {(): {}}
    own: dict[FieldPath, list[str]] = {}
    counts: Counter[FieldPath] = Counter()
    for tool in tools:
        own.setdefault(tool.path, []).append(tool.name)
        for depth in range(len(tool.path) + 1):
            path = tool.path[:depth]
            counts[path] += 1
            if depth:
                inner.setdefault(path, {})
                inner[path[:-1]][path] = None
    return {
        path: CatalogueGroup(path, tuple(groups), tuple(own.get(path, ())), counts[path])
        for path, groups in inner.items()
    }
