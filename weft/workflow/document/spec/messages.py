"""Messages of a model node: their form in a document, and the messages of a run made from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn, cast, get_args

from weft.core.content import MEDIA, ContentPart, Media
from weft.core.errors import InputError
from weft.core.suggestion import closest
from weft.core.values import Message, Role, ToolCall

MESSAGE_KEYS: Final = ("role", "content", "tool_calls", "tool_call_id")
_CALL_KEYS: Final = ("id", "name", "arguments", "type", "function")
_ROLES: Final = get_args(Role)
_WANTED: Final = "{role: user, content: ...}"
Path = tuple[str | int, ...]


class NamedFile(NamedTuple):
    """A file that a document names, and the class of its media."""

    cls: type[Media]
    path: str


class MessageDefect(ValueError):
    """What is wrong with messages, at `path` inside them, and the remedy."""

    def __init__(self, message: str, path: Path, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.hint = hint


def check_messages(value: object) -> None:
    """Check the form as far as it is written out; expressions may be anything.

    Raises: `MessageDefect`.
    """
    if _is_expression(value):
        return
    _Reader(written=True).messages(value)


def messages_of(value: object) -> tuple[Message, ...]:
    """The messages of a run. Lists inside the list, as of a history, are taken item by item.

    Raises: `InputError`, which names the place.
    """
    try:
        return tuple(_Reader().messages(value))
    except MessageDefect as error:
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.path)
        raise InputError(f"`messages{place}`: {error.message}", hint=error.hint) from error


def with_file_names(value: object, files: dict[str, NamedFile]) -> object:
    """`value`, messages of a document, with an expression in place of each path of a file.

    Adds the files to `files`, by the name in their expression.
    """
    if isinstance(value, Mapping):
        return {key: _with_name(key, item, files) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_file_names(item, files) for item in value]
    return value


def _with_name(key: object, item: object, files: dict[str, NamedFile]) -> object:
    if key not in MEDIA or not isinstance(item, str) or _is_expression(item):
        return with_file_names(item, files)
    name = f"file_{len(files)}_of_messages"
    files[name] = NamedFile(MEDIA[str(key)], item)
    return f"{{{{ {name} }}}}"


def _is_expression(value: object) -> bool:
    return isinstance(value, str) and any(mark in value for mark in ("{{", "{%"))


class _Reader:
    """Reads messages. `written`: they are a document's, and may contain expressions."""

    def __init__(self, written: bool = False) -> None:
        self._written = written

    def messages(self, value: object) -> list[Message]:
        if not isinstance(value, list | tuple):
            _refuse("messages are a list", (), f"such as [{_WANTED}]")
        found: list[Message] = []
        for index, item in enumerate(value):
            if self._written and _is_expression(item):
                continue
            if isinstance(item, list | tuple):
                found += self._nested(item, index)
            else:
                found.append(self._message(item, (index,)))
        return found

    def _nested(self, items: Sequence[object], index: int) -> list[Message]:
        return [self._message(item, (index, place)) for place, item in enumerate(items)]

    def _message(self, value: object, path: Path) -> Message:
        if isinstance(value, Message):
            return value
        if not isinstance(value, Mapping):
            _refuse(f"a {type(value).__name__} is no message", path, f"write {_WANTED}")
        _known(value, MESSAGE_KEYS, path)
        role = value.get("role")
        if self._written and _is_expression(role):
            role = "user"
        if role not in _ROLES:
            _refuse(f"{role!r} is no role", (*path, "role"), f"there is: {', '.join(_ROLES)}")
        calls = self._calls(value.get("tool_calls"), (*path, "tool_calls"))
        answered = value.get("tool_call_id")
        if calls and role != "assistant":
            _refuse(f"the {role} calls no tools", (*path, "tool_calls"), "only the assistant does")
        if (role == "tool") != isinstance(answered, str):
            _refuse("`tool_call_id` and the role `tool` go together", path, "set both or neither")
        content = value.get("content")
        if content is None and not calls:
            _refuse("a message has no `content`", path, f"write {_WANTED}")
        parts = self._parts(content, (*path, "content"))
        return Message.of(cast(Role, role), parts, calls, cast("str | None", answered))

    def _parts(self, content: object, path: Path) -> list[ContentPart]:
        if content is None:
            return []
        if isinstance(content, str | Media) or not isinstance(content, list | tuple):
            return [self._part(content, path)]
        return [self._part(part, (*path, index)) for index, part in enumerate(content)]

    def _part(self, part: object, path: Path) -> ContentPart:
        if isinstance(part, str | Media):
            return cast(ContentPart, part)
        if not isinstance(part, Mapping):
            return json.dumps(part, ensure_ascii=False, default=str)  # a value, as in a prompt
        given = {key: item for key, item in part.items() if key != "type"}
        _known(given, ("text", *MEDIA), path)
        if len(given) != 1:
            _refuse("a part has one of text, image, audio, file", path, "make several parts")
        ((kind, item),) = given.items()
        if kind == "text" and isinstance(item, str):
            return item
        if kind in MEDIA and isinstance(item, MEDIA[kind]):
            return cast(ContentPart, item)
        if kind in MEDIA and isinstance(item, str) and self._written:
            return ""
        hint = f"an input of `type: {kind}`, `weft.{kind.title()}` in Python, or a path that the"
        return _refuse(f"this is no {kind}", (*path, kind), f"{hint} workflow itself writes")

    def _calls(self, calls: object, path: Path) -> tuple[ToolCall, ...]:
        if calls is None or (self._written and _is_expression(calls)):
            return ()
        if not isinstance(calls, list | tuple):
            _refuse("tool calls are a list", path, "[{id: ..., name: ..., arguments: {...}}]")
        return tuple(self._call(call, (*path, index)) for index, call in enumerate(calls))

    def _call(self, call: object, path: Path) -> ToolCall:
        if isinstance(call, ToolCall):
            return call
        if not isinstance(call, Mapping):
            _refuse("this is no tool call", path, "{id: ..., name: ..., arguments: {...}}")
        _known(call, _CALL_KEYS, path)
        called = call.get("function", call)
        named = called if isinstance(called, Mapping) else {}
        arguments, name, made = named.get("arguments", "{}"), named.get("name"), call.get("id")
        if not isinstance(name, str) or not isinstance(made, str):
            _refuse("a tool call needs `id` and `name`", path, "the answer has the same id")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        return ToolCall(made, name, text)


def _known(value: Mapping[Any, Any], keys: Sequence[str], path: Path) -> None:
    for key in value:
        if key not in keys:
            near = closest(str(key), list(keys))
            hint = f"did you mean `{near}`?" if near else f"there is: {', '.join(keys)}"
            _refuse(f"unknown key `{key}`", (*path, str(key)), hint)


def _refuse(message: str, path: Path, hint: str) -> NoReturn:
    raise MessageDefect(message, path, hint)
