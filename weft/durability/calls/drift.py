"""The differences between a call and its recorded one, in words.

The cassette decides which recorded call that is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from weft.core.calls import ModelCalled, ToolCalled
from weft.core.ids import NodeId
from weft.core.ports import ModelRequest, Sampling
from weft.core.values import Message, ToolSpec
from weft.durability.calls.digest import UNASKED, canonical_text

_AROUND: Final = 20
_MAX_CHARACTERS: Final = 60
_MAX_CHANGES: Final = 8
_APART: Final = frozenset({"messages", "prompt_token_ids", "sampling", "tools"})


@dataclass(frozen=True, slots=True)
class Drift:
    """A call of a replayed program that differs from its record. `call`: the tool or model."""

    node: NodeId
    attempt: int
    call: str
    changes: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.node}: {self.call}: {'; '.join(self.changes)}"


def tool_changes(recorded: ToolCalled, name: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The differences of a tool call from a recorded one."""
    found = [f"it is {name}, not {recorded.tool}"] if recorded.tool != name else []
    return _bounded([*found, *_of_mapping("argument", recorded.arguments, arguments)])


def model_changes(recorded: ModelCalled, name: str, request: ModelRequest) -> tuple[str, ...]:
    """The differences of a model call from a recorded one."""
    before = recorded.request
    found = [f"the model is {name}, not {recorded.model}"] if recorded.model != name else []
    found += _of_messages(before.messages, request.messages)
    found += _of_prompt(before.prompt_token_ids, request.prompt_token_ids)
    found += _of_tools(before.tools, request.tools)
    for field in fields(Sampling):
        old, new = (getattr(each.sampling, field.name) for each in (before, request))
        if old != new:
            found.append(f"{field.name}: {old} became {new}")
    for field in fields(ModelRequest):
        if field.name not in _APART | UNASKED:
            old, new = (canonical_text(getattr(each, field.name)) for each in (before, request))
            found += [f"{field.name}: {difference(old, new)}"] if old != new else []
    return _bounded(found)


def difference(old: str, new: str) -> str:
    """Where two texts differ, and how: [-removed-] and {+added+}."""
    begin = _common(old, new)
    end = _common(old[begin:][::-1], new[begin:][::-1])
    gone, added = old[begin : len(old) - end], new[begin : len(new) - end]
    before = old[max(0, begin - _AROUND) : begin]
    after = old[len(old) - end : len(old) - end + _AROUND] if end else ""
    parts = f"[-{_short(gone)}-]" if gone else "", f"{{+{_short(added)}+}}" if added else ""
    lead = "…" if begin > _AROUND else ""
    return f"{lead}{_line(before)}{''.join(parts)}{_line(after)}{'…' if end > _AROUND else ''}"


def _of_messages(old: Sequence[Message], new: Sequence[Message]) -> Iterator[str]:
    for number, (before, after) in enumerate(zip(old, new, strict=False), 1):
        if before.role != after.role:
            yield f"message {number} is the {after.role}'s, not the {before.role}'s"
        elif before.content != after.content:
            text = difference(before.content, after.content)
            yield f"message {number} ({after.role}): {text}"
        elif before.parts != after.parts:
            old_media, new_media = (_shown_media(each) for each in (before, after))
            yield f"message {number} ({after.role}) has {new_media} instead of {old_media}"
        elif before != after:
            yield f"message {number} ({after.role}) has other tool calls"
    if len(old) != len(new):
        yield f"{len(new)} messages, not {len(old)}"


def _shown_media(message: Message) -> str:
    return ", ".join(map(str, message.media)) or "no media"


def _of_prompt(old: Sequence[int], new: Sequence[int]) -> Iterator[str]:
    if old != new:
        same = _common(old, new)
        yield f"the prompt's tokens differ from number {same + 1} ({len(new)}, not {len(old)})"


def _of_tools(old: Sequence[ToolSpec], new: Sequence[ToolSpec]) -> Iterator[str]:
    before, after = ({spec.name: spec for spec in specs} for specs in (old, new))
    for name in {**before, **after}:
        if name not in after:
            yield f"the tool {name} is not offered any more"
        elif name not in before:
            yield f"the tool {name} is offered"
        else:
            yield from _of_tool(before[name], after[name])
    if list(before) != list(after) and before.keys() == after.keys():
        yield "the tools come in another order"


def _of_tool(old: ToolSpec, new: ToolSpec) -> Iterator[str]:
    if old.description != new.description:
        text = difference(old.description, new.description)
        yield f"the tool {new.name}: its description: {text}"
    texts = [canonical_text(spec.parameters) for spec in (old, new)]
    if texts[0] != texts[1]:
        yield f"the tool {new.name}: its parameters: {difference(*texts)}"


def _of_mapping(what: str, old: Any, new: Mapping[str, Any]) -> Iterator[str]:
    old = old if isinstance(old, Mapping) else {}
    for key in {**old, **new}:
        if key not in new:
            yield f"{what} {key} is gone"
        elif key not in old:
            yield f"{what} {key} is new: {_short(_text(new[key]))}"
        elif canonical_text(old[key]) != canonical_text(new[key]):
            yield f"{what} {key}: {difference(_text(old[key]), _text(new[key]))}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical_text(value)


def _common(old: Sequence[Any], new: Sequence[Any]) -> int:
    """The length of the common beginning."""
    least = min(len(old), len(new))
    return next((index for index in range(least) if old[index] != new[index]), least)


def _short(text: str) -> str:
    line = _line(text)
    return line if len(line) <= _MAX_CHARACTERS else f"{line[: _MAX_CHARACTERS - 1]}…"


def _line(text: str) -> str:
    """`text` as one printable line."""
    return json.dumps(text, ensure_ascii=False)[1:-1] if not text.isprintable() else text


def _bounded(found: list[str]) -> tuple[str, ...]:
    more = (f"and {len(found) - _MAX_CHANGES} more",) if len(found) > _MAX_CHANGES else ()
    return (*found[:_MAX_CHANGES], *more)
