"""What a model sees of a catalogue: a collapsed tree of which it opens parts, within a token limit.

After the collapsed scene graph of SayPlan (Rana et al., CoRL 2023): fields are expanded and
contracted, and the view remembers what is open. Views are values; every operation returns another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from weft.agents.catalogue.tree import Catalogue, FieldPath, path_text, tokens_of
from weft.core.errors import ToolArgumentError
from weft.core.suggestion import suggestion
from weft.core.values import ToolSpec
from weft.planner.signature import parameters_of, required_by
from weft.planner.text.writer import parameter_name

_DESCRIPTION_CHARS: Final = 100
_MOST_PARAMETERS: Final = 8
_SUGGESTED: Final = 8
_RESERVED: Final = 16
"""Tokens that stay free for a note on hidden fields, which a contraction may bring back."""


@dataclass(frozen=True)
class CatalogueView:
    """A view of `catalogue` of at most `limit` tokens, and the tools that were chosen in it.

    `fields` are those on the first level, the most promising first: where they take more than half
    of the limit, the last ones are left out. `expanded`: the open fields. `found`: the tools of the
    last search. The declarations of the tools in `chosen` take at most `limit` tokens, too.
    """

    catalogue: Catalogue
    limit: int
    fields: tuple[FieldPath, ...]
    expanded: frozenset[FieldPath] = frozenset()
    found: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()

    @cached_property
    def text(self) -> str:
        """The view as the model reads it."""
        whole = f"{len(self.catalogue):,} tools in {len(self.catalogue.root.groups):,} fields"
        lines = [f"Catalogue ({whole}; + closed, - open):", *self._first_level()]
        if self.found:
            lines += ["Found:", *(self._line_of(name, 1) for name in self.found)]
        lines.append(f"Chosen: {', '.join(self.chosen) or 'none'}")
        return "\n".join(lines)

    @property
    def tokens(self) -> int:
        """The tokens of `text`."""
        return tokens_of(self.text)

    @property
    def chosen_tokens(self) -> int:
        """The tokens of the declarations of the chosen tools."""
        return sum(self.catalogue.tools[name].tokens for name in self.chosen)

    def search(self, names: Sequence[str]) -> CatalogueView:
        """The view that shows as many of the tools `names` as there is room for, and no others."""
        kept: tuple[str, ...] = ()
        for name in names:
            wider = replace(self, found=(*kept, name))
            if wider.tokens > self._room:
                break
            kept = wider.found
        if names and not kept:
            raise _full(replace(self, found=tuple(names[:1])).tokens, self._room)
        return replace(self, found=kept)

    def expand(self, paths: Sequence[FieldPath]) -> CatalogueView:
        """The view with the fields `paths` open, all of them together.

        The fields around them are opened as well. Raises: `ToolArgumentError` where they have no
        room, for an unknown field, and where all of them are open already.
        """
        self._check(paths)
        opened = {path[:depth] for path in paths for depth in range(1, len(path) + 1)}
        if opened <= self.expanded:
            raise ToolArgumentError("these fields are open already", hint="open others, or choose")
        wider = replace(self, expanded=self.expanded | opened)
        if wider.tokens > self._room:
            raise _full(wider.tokens, self._room)
        return wider

    def contract(self, paths: Sequence[FieldPath]) -> CatalogueView:
        """The view with the fields `paths`, and all inside them, closed; `expand` opens them again.

        Raises: `ToolArgumentError` for an unknown field, and where none of them is open.
        """
        self._check(paths)
        closed = {
            path for path in self.expanded if any(path[: len(each)] == each for each in paths)
        }
        if not closed:
            raise ToolArgumentError("none of these fields is open", hint="open ones begin with -")
        return replace(self, expanded=self.expanded - closed)

    def choose(self, names: Sequence[str]) -> CatalogueView:
        """The view with the tools `names` chosen as well.

        Raises: `ToolArgumentError` for an unknown tool, and where they have no room.
        """
        for name in names:
            if name not in self.catalogue.tools:
                known = dict.fromkeys([*self.visible(), *self.found])
                hint = suggestion(name, known or self.catalogue.tools, most=_SUGGESTED)
                raise ToolArgumentError(f"there is no tool {name!r:.100}", hint=hint)
        wider = replace(self, chosen=tuple(dict.fromkeys([*self.chosen, *names])))
        if wider.chosen_tokens > self.limit:
            raise _full(wider.chosen_tokens, self.limit)
        if wider.tokens > self._room:
            raise _full(wider.tokens, self._room)
        return wider

    def drop(self, names: Sequence[str]) -> CatalogueView:
        """The view in which the tools `names` are not chosen."""
        return replace(self, chosen=tuple(name for name in self.chosen if name not in names))

    def visible(self) -> Iterator[str]:
        """The tools in open fields."""
        for path in sorted(self.expanded):
            yield from self.catalogue.groups[path].tools

    @property
    def _room(self) -> int:
        return self.limit - _RESERVED

    def _check(self, paths: Sequence[FieldPath]) -> None:
        if not paths:
            raise ToolArgumentError("no field is named", hint='give paths such as ["Finance"]')
        for path in paths:
            if not path or path not in self.catalogue.groups:
                shown = [path_text(each) for each in self.catalogue.groups if each]
                hint = suggestion(path_text(path), shown, most=_SUGGESTED)
                raise ToolArgumentError(f"there is no field {path_text(path)!r:.100}", hint=hint)

    def _first_level(self) -> Iterator[str]:
        spent, hidden = 0, 0
        for path in self.fields:
            line = self._line_of_field(path)
            closed = tokens_of(f"{line}\n")
            if path in self.expanded:
                yield from self._lines(path)
            elif spent + closed > self.limit // 2:
                hidden += 1
                continue
            else:
                yield line
            spent += closed
        if hidden:
            yield f"({hidden:,} more fields: search finds their tools)"

    def _lines(self, path: FieldPath) -> Iterator[str]:
        yield self._line_of_field(path)
        if path in self.expanded:
            group = self.catalogue.groups[path]
            for inner in group.groups:
                yield from self._lines(inner)
            yield from (self._line_of(name, len(path)) for name in group.tools)

    def _line_of_field(self, path: FieldPath) -> str:
        mark, indent = "-" if path in self.expanded else "+", "  " * (len(path) - 1)
        return f"{indent}{mark} {path_text(path)} ({self.catalogue.groups[path].count:,})"

    def _line_of(self, name: str, depth: int) -> str:
        return f"{'  ' * depth}{short_line(self.catalogue.tools[name].spec)}"


def short_line(spec: ToolSpec) -> str:
    """`price(item, unit?): what an item costs`, in one line."""
    required = required_by(spec)
    names = [
        f"{parameter_name(name)}{'' if name in required else '?'}" for name in parameters_of(spec)
    ]
    more = ["..."] if len(names) > _MOST_PARAMETERS else []
    text = " ".join(spec.description.split())
    if len(text) > _DESCRIPTION_CHARS:
        text = f"{text[: _DESCRIPTION_CHARS - 3].rstrip()}..."
    return f"{spec.name}({', '.join(names[:_MOST_PARAMETERS] + more)}){': ' if text else ''}{text}"


def _full(needed: int, limit: int) -> ToolArgumentError:
    return ToolArgumentError(
        f"that takes {needed:,} tokens, and {limit:,} may be shown",
        hint="contract fields first, or name fewer",
    )
