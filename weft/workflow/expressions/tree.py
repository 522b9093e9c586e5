"""Plain data in which every text is a template: what `with`, `outputs` and the like hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.workflow.expressions.errors import BadExpression
from weft.workflow.expressions.template import Template, template

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ValueTemplate:
    """A parsed value; `parts` are the templates in it, with the path of each."""

    tree: Any
    parts: tuple[tuple[Path, Template], ...]

    @property
    def names(self) -> frozenset[str]:
        """The names that all of it needs."""
        return frozenset().union(*(part.names for _, part in self.parts))

    @property
    def whole(self) -> Template | None:
        """The template, when the value is one text."""
        return self.tree if isinstance(self.tree, Template) else None

    def render(self, values: Mapping[str, Any]) -> Any:
        """The value with all templates computed. Raises: `NodeFailed`."""
        return _render(self.tree, values)


def value_template(value: Any) -> ValueTemplate:
    """Parse all texts in `value`. Raises: `BadExpression`, with the `path` inside `value`."""
    parts: list[tuple[Path, Template]] = []
    return ValueTemplate(_parse(value, (), parts), tuple(parts))


def _parse(value: Any, path: Path, parts: list[tuple[Path, Template]]) -> Any:
    if isinstance(value, str):
        try:
            parsed = template(value)
        except BadExpression as error:
            error.path = path
            raise
        parts.append((path, parsed))
        return parsed
    if isinstance(value, Mapping):
        return {key: _parse(item, (*path, key), parts) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_parse(item, (*path, index), parts) for index, item in enumerate(value)]
    return value


def _render(tree: Any, values: Mapping[str, Any]) -> Any:
    kind = type(tree)
    if kind is Template:
        return tree.render(values)
    if kind is dict:
        found = {}
        for key, item in tree.items():
            found[key] = item.render(values) if type(item) is Template else _render(item, values)
        return found
    if kind is list:
        return [_render(item, values) for item in tree]
    return tree
