"""Digests of calls: equal for equal requests, whatever their urgency."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Any, Final

from weft.core.ports.model import ModelRequest
from weft.core.redaction import Redactor
from weft.core.values import Message, ToolSpec
from weft.engine.graph.content_digest import DigestFormat, DigestTexts

_LENGTH: Final = 12
UNASKED: Final = frozenset({"priority", "cache_prefix", "program", "timeout_s"})
"""Fields of a request that do not change its answer, but where and when it is computed."""
_MODEL_VISIBLE: Final = frozenset({"name", "description", "parameters"})
"""The fields of a tool that a model sees."""


class CallDigests:
    """Digests of the calls of one run: 12 hexadecimal digits, equal for equal content.

    Independent of the secrets in it. Of a conversation, each call digests only the new messages.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._texts = DigestTexts()

    def tool(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The digest of a call of the tool `name`."""
        text = f'["tool", {encode_basestring(name)}, {canonical_text(arguments, self._texts)}]'
        return self._digest(text)

    def model(self, name: str, request: ModelRequest) -> str:
        """The digest of a request to the model that the program calls `name`."""
        return self._digest(canonical_text(["model", name, request], self._texts))

    def question(self, model: str, question: tuple[Any, ...]) -> str:
        """The digest of a question to the client of a model, in full length."""
        text = canonical_text([model, question], self._texts)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def _digest(self, text: str) -> str:
        if self._redactor.in_text(text):
            text = self._redactor.text(text)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH]


def chat_question(
    messages: tuple[Message, ...], chat_template_kwargs: Mapping[str, Any] | None
) -> tuple[Any, ...]:
    """The question `encode_chat`, as recorded; without variables as in records of 1.0."""
    named = ("encode_chat", messages)
    return (*named, dict(chat_template_kwargs)) if chat_template_kwargs else named


def identity(*content: Any, texts: DigestTexts | None = None) -> str:
    """The identity of a node whose node function is defined by `content`; for `Node.identity`."""
    text = canonical_text(content, texts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def canonical_text(content: Any, texts: DigestTexts | None = None) -> str:
    """JSON text of `canonical(content)`, with sorted keys: see `DigestFormat.text`."""
    return _FORM.text(content, texts)


def canonical(value: Any) -> Any:
    """`value` in JSON types, the same in every process and version of weft.

    A field with its default is left out: a field that is added later changes no digest.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(canonical(item), sort_keys=True) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {key: canonical(item) for key, item in _fields(value).items()}
    if hasattr(value, "model_dump"):
        return canonical(value.model_dump(mode="json"))
    return repr(value)


def _other_text(value: Any, texts: DigestTexts | None) -> str:
    others = (str, int, float, Mapping, list, tuple, set, frozenset, type)
    if dataclasses.is_dataclass(value) and not isinstance(value, others):
        return _FORM.text(_fields(value), texts)
    return json.dumps(canonical(value), sort_keys=True, ensure_ascii=False)


def _fields(value: Any) -> dict[str, Any]:
    """The name of its class, and its fields."""
    found = {"": type(value).__name__}
    for field in dataclasses.fields(value):
        if isinstance(value, ModelRequest) and field.name in UNASKED:
            continue
        if isinstance(value, ToolSpec) and field.name not in _MODEL_VISIBLE:
            continue
        content = getattr(value, field.name)
        if not _is_default(field, content):
            found[field.name] = content
    return found


def _is_default(field: dataclasses.Field[Any], content: Any) -> bool:
    if field.default is not dataclasses.MISSING:
        return bool(content == field.default)
    made = field.default_factory
    return made is not dataclasses.MISSING and bool(content == made())


_FORM = DigestFormat(encode_basestring, tagged=False, other=_other_text)
