"""Tokenizes and detokenizes through a vLLM server.

Servers started by weft list their special tokens. For others, a token that looks like a tag
(`<|end|>`, `[INST]`, `>>TITLE<<`) counts as special: a word that looks so is then spelt with other
ids than usual, which does no harm.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from weft.core.errors import CapabilityError, ModelRequestError, ModelUnavailable
from weft.core.ports.model import TEMPLATE_KWARGS, ModelRequest, check_media
from weft.core.values import Message
from weft.serving.openai.body import conversation, with_template
from weft.serving.openai.endpoint import Endpoint
from weft.serving.openai.transport import Transport
from weft.serving.text import PlainText, Tokenized, only_blanks

# Excludes bytes of characters without a token, such as `<0xF0>`.
_TAG = re.compile(r"(?!<0x[0-9A-F]{2}>)\u2581?[<\[\]>{](?=.*\w).+[>\]\[<}]", re.DOTALL)
_SHORT_CHARS = 400
_REMEMBERED = 2000
_ROUNDS = 8
M = TypeVar("M", bound=BaseModel)
K = TypeVar("K")


class ServerTokenizer:
    """The methods of `Tokenizing`, for one server. Short texts are cached."""

    def __init__(
        self, transport: Transport, endpoint: Endpoint, extra_body: Mapping[str, Any]
    ) -> None:
        """`extra_body`: the further fields of the client's requests, which say of the template."""
        self._transport = transport
        self._endpoint = endpoint
        self._extra_body = extra_body
        self._plain = PlainText()
        self._listed: Mapping[int, str] | None = None
        self._listing_loaded = False
        self._texts: OrderedDict[str, Tokenized] = OrderedDict()
        self._ids: OrderedDict[tuple[int, ...], str] = OrderedDict()

    async def encode(self, text: str, special: bool) -> tuple[int, ...]:
        """See `Tokenizing.encode`."""
        if not text:
            return ()
        if special:
            return (await self._tokenize(text)).ids
        return await self._plain.encode_by(text, self._tokenize)

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        """See `Tokenizing.encode_chat`; special tokens spelt out in messages are broken up."""
        check_media(ModelRequest(messages), "tokenizing")
        broken = tuple([await self._broken(message) for message in messages])
        given = {TEMPLATE_KWARGS: chat_template_kwargs}
        body = with_template(conversation(ModelRequest(broken)), self._extra_body, given)
        answer = await self._post("tokenize", body, _Encoded)
        return tuple(answer.tokens)

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        """See `Tokenizing.decode`."""
        if not token_ids:
            return ""
        text = self._ids.get(token_ids)
        if text is None:
            body = {"tokens": list(token_ids)}
            text = (await self._post("detokenize", body, _Decoded)).prompt
            if len(token_ids) <= _SHORT_CHARS:
                _remember(self._ids, token_ids, text)
        return text

    async def special_token(self, text: str) -> int | None:
        """See `Tokenizing.special_token`."""
        found = await self._tokenize(text) if text else Tokenized(())
        token, *others = found.ids or (-1,)
        return token if not others and found.special.get(token) == text else None

    async def _tokenize(self, text: str) -> Tokenized:
        tokens = self._texts.get(text)
        if tokens is None:
            tokens = await self._request_tokens(text)
            if len(text) <= _SHORT_CHARS:
                _remember(self._texts, text, tokens)
        return tokens

    async def _request_tokens(self, text: str) -> Tokenized:
        listed = await self._special()
        body = {"prompt": text, "add_special_tokens": False, "return_token_strs": listed is None}
        answer = await self._post("tokenize", body, _Encoded)
        ids, spelt = answer.tokens, answer.token_strs or []
        if listed is not None:
            return Tokenized(tuple(ids), {token: listed[token] for token in ids if token in listed})
        if len(spelt) != len(ids):
            raise ModelUnavailable(f"{self._endpoint.base_url} gave no texts of its tokens")
        pairs = zip(ids, spelt, strict=True)
        return Tokenized(tuple(ids), {token: word for token, word in pairs if looks_special(word)})

    async def _special(self) -> Mapping[int, str] | None:
        """The special tokens; None where the server does not list them."""
        if not self._listing_loaded:
            try:
                page = await self._transport.get(self._endpoint.root_url("tokenizer_info"))
            except ModelUnavailable:  # a server that fails here lists none
                page = None
            self._listed, self._listing_loaded = _parse_listing(page), True
        return self._listed

    async def _broken(self, message: Message) -> Message:
        content = message.content
        for _ in range(_ROUNDS):
            special = (await self._tokenize(content)).special if content else {}
            if not special:
                return Message(message.role, content, message.tool_calls, message.tool_call_id)
            for spelling in sorted(special.values(), key=len, reverse=True):
                content = content.replace(spelling, f"{spelling[0]} {spelling[1:]}")
        raise ModelRequestError("a message holds special tokens that cannot be broken up")

    async def _post(self, path: str, body: Mapping[str, Any], form: type[M]) -> M:
        model = {"model": self._endpoint.model}
        page = await self._transport.post(self._endpoint.root_url(path), {**model, **body})
        if page is None:
            raise CapabilityError(
                f"{self._endpoint.base_url} does not tokenize",
                hint="vLLM does, beside /v1, where no proxy hides it; a local model does too",
            )
        try:
            return form.model_validate_json(page)
        except ValidationError:
            raise ModelUnavailable(f"{self._endpoint.base_url} sent what are no tokens") from None


def looks_special(word: str) -> bool:
    """Whether a token spelt like this is likely to be a special one."""
    return _TAG.fullmatch(word) is not None


def _parse_listing(page: bytes | None) -> Mapping[int, str] | None:
    if page is None:
        return None
    try:
        found = _Info.model_validate_json(page).added_tokens_decoder
    except ValidationError:
        return None
    # An empty list is wrong: every model has an end token.
    return {token: word for token, word in found.items() if not only_blanks(word)} or None


def _remember(memory: OrderedDict[K, Any], key: K, value: object) -> None:
    memory[key] = value
    if len(memory) > _REMEMBERED:
        memory.popitem(last=False)


class _Encoded(BaseModel):
    tokens: list[int]
    token_strs: list[str] | None = None


class _Decoded(BaseModel):
    prompt: str


class _Info(BaseModel):
    added_tokens_decoder: dict[int, str]
