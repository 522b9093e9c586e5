"""A model's chat template: its environment, its variables, and messages in the form it expects.

A template is a program of the model's author, and variables may come from an HTTP client: templates
run in jinja's sandbox, and variables neither replace what weft renders nor spell special tokens.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from jinja2 import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from weft.core.errors import ModelRequestError
from weft.core.values import Message
from weft.serving.text.prompt import wire_calls

_RESERVED: Final = frozenset(
    {
        *("messages", "conversation", "tools", "documents", "chat_template", "tokenize"),
        *("add_generation_prompt", "continue_final_message", "padding", "truncation"),
        *("max_length", "return_tensors", "return_dict", "return_assistant_tokens_mask"),
        *("tokenizer_kwargs", "tokenizer", "processor_kwargs", "raise_exception", "strftime_now"),
    }
)
_DEEPEST: Final = 32


def environment() -> ImmutableSandboxedEnvironment:
    """The environment that transformers provides for chat templates."""
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    made.filters["tojson"] = _to_json
    made.globals["raise_exception"] = _refuse
    made.globals["strftime_now"] = lambda form: datetime.now().strftime(form)  # noqa: DTZ005
    return made


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _refuse(message: str) -> None:
    raise TemplateError(message)


def variables(given: Mapping[str, Any], clean: Callable[[str], str]) -> dict[str, Any]:
    """`given` for a template, its texts without special tokens (`clean`).

    Raises: `ModelRequestError` for a name that weft or the tokenizer sets itself, and for values
    nested too deeply.
    """
    for name in given:
        if name in _RESERVED or name.endswith("_token"):
            raise ModelRequestError(
                f"chat_template_kwargs cannot set {name!r}",
                hint="it takes the template's own variables, such as enable_thinking",
            )
    return {name: _cleaned(value, clean, _DEEPEST) for name, value in given.items()}


def _cleaned(value: Any, clean: Callable[[str], str], levels: int) -> Any:
    if not levels:
        raise ModelRequestError(f"chat_template_kwargs are nested deeper than {_DEEPEST} levels")
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): _cleaned(each, clean, levels - 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(each, clean, levels - 1) for each in value]
    return value


def turn_of(message: Message, clean: Callable[[str], str]) -> dict[str, Any]:
    """`message` as templates take it, without special tokens in its content.

    Arguments of calls are objects that read as their JSON text: some templates write them as JSON
    themselves, others expect a text. Those that are no JSON object stay text.
    """
    turn: dict[str, Any] = {"role": message.role, "content": clean(message.content)}
    if message.tool_call_id is not None:
        turn["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        turn["tool_calls"] = wire_calls(message.tool_calls)
        for call in turn["tool_calls"]:
            call["function"]["arguments"] = _arguments(call["function"]["arguments"], clean)
    return turn


def _arguments(text: str, clean: Callable[[str], str]) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return clean(text)
    if not isinstance(found, dict):
        return clean(text)
    return _Arguments(_cleaned(found, clean, _DEEPEST), clean(text))


class _Arguments(dict[str, Any]):
    """An object that is its JSON text where a template joins it with texts."""

    def __init__(self, members: Mapping[str, Any], text: str) -> None:
        super().__init__(members)
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __add__(self, after: str) -> str:
        return self._text + after

    def __radd__(self, before: str) -> str:
        return before + self._text
