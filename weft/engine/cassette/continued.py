"""An answer that broke off in an earlier part of a run, and what is asked for to go on with it.

Knows what may be gone on with, not how a client does it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from weft.core.ports import (
    Capabilities,
    ModelClient,
    ModelRequest,
    Prefilled,
    Sampling,
    TextDelta,
    Tokenizing,
)
from weft.core.values import AUTOREGRESSIVE, Completion, Message, Usage
from weft.engine.cassette.book import Known, Piece

_MOST_DROPPED: Final = 8
_HALF: Final = "\ufffd"
"""Stands for bytes that are no text: a model that reads it reads something else."""


@dataclass(frozen=True, slots=True)
class Continued:
    """`pieces` of an answer, `received` tokens, are taken over; `request` asks for the rest.

    `whole`: each piece has its token ids.
    """

    pieces: tuple[Piece, ...]
    request: ModelRequest
    received: int
    whole: bool

    @property
    def text(self) -> str:
        """What is taken over."""
        return "".join(delta.text for delta in _deltas(self.pieces))

    def completed(self, rest: Completion) -> Completion:
        """The whole answer, when `rest` came for `request`.

        It has the token ids and log probabilities that all of it has. What was read again counts
        once, as if the answer had never broken off; the requests were two.
        """
        deltas = _deltas(self.pieces)
        again = Usage(-self.received, self.received, requests=1)
        made = replace(rest, text=self.text + rest.text, usage=rest.usage + again)
        if not self.whole or len(rest.token_ids) == 0 < len(rest.text):
            return replace(made, token_ids=(), logprobs=(), top_logprobs=())
        ids = tuple(each for delta in deltas for each in delta.token_ids)
        logprobs = tuple(each for delta in deltas for each in delta.logprobs)
        largest = tuple(each for delta in deltas for each in delta.top_logprobs)
        return replace(
            made,
            token_ids=ids + rest.token_ids,
            logprobs=logprobs + rest.logprobs,
            top_logprobs=largest + rest.top_logprobs,
        )


async def continued(
    client: ModelClient, request: ModelRequest, known: Known | None
) -> Continued | None:
    """How `client` goes on with what `known` has of the answer to `request`; None: it cannot.

    It is by token ids where the client takes and tells them, so that greedy decoding comes to the
    tokens of an undisturbed answer; else by a conversation that ends with the unfinished answer,
    whose last word may be cut into other tokens. A seeded sample is drawn anew, and so is what is
    held to a schema or a grammar, calls tools, or thinks before it answers.

    Raises: `ModelError`.
    """
    if known is None or known.ended is not None or not _may_go_on(request, known.pieces):
        return None
    able = await client.capabilities()
    if able.prompt_token_ids and _is_whole(known.pieces):
        prompt = await _prompt(client, request, known.pieces)
        if prompt:
            return await _by_ids(client, prompt, request, known.pieces)
    return await _by_messages(client, able, request, known.pieces)


def _may_go_on(request: ModelRequest, pieces: tuple[Piece, ...]) -> bool:
    sampling = request.sampling
    return (
        (sampling.temperature == 0 or sampling.seed is None)
        and request.decode == AUTOREGRESSIVE
        and not (request.schema or request.grammar or request.tools)
        and not (request.attention or request.placement)
        and all(isinstance(piece, TextDelta | Prefilled) for _, piece in pieces)
        and any(delta.text for delta in _deltas(pieces))
    )


async def _prompt(
    client: ModelClient, request: ModelRequest, pieces: tuple[Piece, ...]
) -> tuple[int, ...]:
    """The token ids of the prompt; none where nobody can tell."""
    told = [piece.prompt_token_ids for _, piece in pieces if isinstance(piece, Prefilled)]
    prompt = request.prompt_token_ids or next(iter(told), ())
    if prompt or not isinstance(client, Tokenizing):
        return prompt
    return await client.encode_chat(request.messages)


async def _by_ids(
    client: ModelClient, prompt: tuple[int, ...], request: ModelRequest, pieces: tuple[Piece, ...]
) -> Continued | None:
    if isinstance(client, Tokenizing):
        pieces = await _readable(client, pieces)
    ids = _ids(pieces)
    sampling = _fewer(request.sampling, len(ids))
    if not ids or sampling is None:
        return None
    rest = replace(request, messages=(), prompt_token_ids=prompt + ids, sampling=sampling)
    return Continued(pieces, rest, len(ids), True)


async def _by_messages(
    client: ModelClient, able: Capabilities, request: ModelRequest, pieces: tuple[Piece, ...]
) -> Continued | None:
    text = "".join(delta.text for delta in _deltas(pieces))
    if not able.continuation or not request.messages or _HALF in text:
        return None
    whole = _is_whole(pieces)
    received = len(_ids(pieces))
    if not whole:
        if isinstance(client, Tokenizing):
            received = len(await client.encode(text))
        elif request.sampling.max_tokens is not None:
            return None  # nobody can tell how many are left
    sampling = _fewer(request.sampling, received)
    if sampling is None:
        return None
    messages, begun = request.messages, Message("assistant", text)
    if request.continues:
        begun = replace(messages[-1], content=messages[-1].content + text)
        messages = messages[:-1]
    rest = replace(request, messages=(*messages, begun), sampling=sampling)
    return Continued(pieces, rest, received, whole)


async def _readable(client: Tokenizing, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """`pieces` without the last ones, whose tokens hold more than their text: half a character."""
    for dropped in range(min(_MOST_DROPPED, len(pieces))):
        kept = pieces[: len(pieces) - dropped]
        if await client.decode(_ids(kept)) == "".join(delta.text for delta in _deltas(kept)):
            return kept
    return ()


def _fewer(sampling: Sampling, tokens: int) -> Sampling | None:
    """`sampling` of an answer of which there are `tokens` already; None: there is nothing left."""
    if sampling.max_tokens is None:
        return sampling
    left = sampling.max_tokens - tokens
    return replace(sampling, max_tokens=left) if left > 0 else None


def _is_whole(pieces: Iterable[Piece]) -> bool:
    return all(delta.token_ids for delta in _deltas(pieces) if delta.text)


def _ids(pieces: Iterable[Piece]) -> tuple[int, ...]:
    return tuple(each for delta in _deltas(pieces) for each in delta.token_ids)


def _deltas(pieces: Iterable[Piece]) -> list[TextDelta]:
    return [piece for _, piece in pieces if isinstance(piece, TextDelta)]
