"""One replica's part in an answer, and how an answer goes on after another replica broke it off."""

from __future__ import annotations

from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from weft.core.errors import ModelUnavailable
from weft.core.ports.model import (
    Capabilities,
    Delta,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallDelta,
)
from weft.core.values import Completion, Usage
from weft.serving.fleet.transcript import StreamSplicer, Transcript

S = TypeVar("S", str, tuple[int, ...])


class StreamDiverged(ModelUnavailable):
    """What another replica says does not go on from what has been delivered."""


class UpstreamAttempt(Protocol):
    """Events of one stream in, events for the caller out; notes them in the transcript."""

    @property
    def request(self) -> ModelRequest:
        """What to ask the replica."""

    def take(self, event: Delta | Completion) -> list[ModelEvent]:
        """What the caller gets to see of `event`. Raises: `StreamDiverged`."""


class DirectStream:
    """The whole answer as it comes: for what cannot be cut."""

    def __init__(self, transcript: Transcript) -> None:
        self.request = transcript.request
        self._transcript = transcript

    def take(self, event: Delta | Completion) -> list[ModelEvent]:
        if not isinstance(event, Completion):
            self._transcript.note(event)
        return [event]


class ResumedStream:
    """An answer that can be cut at every moment: its beginning, or what follows after a cut."""

    def __init__(self, transcript: Transcript, request: ModelRequest) -> None:
        self.request = request
        self._transcript = transcript
        self._splicer = StreamSplicer(request.sampling.stop)
        self._before = len(transcript.ids)
        self._echo = "" if transcript.sure else transcript.text

    def take(self, event: Delta | Completion) -> list[ModelEvent]:
        if isinstance(event, TextDelta):
            return self._note(self._splicer.take(self._without_echo(event)))
        events = self._note(self._splicer.flush())
        if isinstance(event, Completion):
            return [*events, self._joined(event)]
        self._transcript.note(event)
        return [*events, event]

    def _note(self, delta: TextDelta | None) -> list[ModelEvent]:
        if delta is None:
            return []
        self._transcript.note(delta)
        self._transcript.sure = self._splicer.sure
        return [delta]

    def _without_echo(self, delta: TextDelta) -> TextDelta:
        """A prompt that ends within a character makes vLLM say its text again, once it is whole."""
        echo = self._echo
        if not (echo and delta.text):
            return delta
        self._echo = ""
        # The prompt's own text comes first: that tells an echo from an answer in circles.
        shortest = len(echo) + len(self._transcript.prompt_ids) // 2
        if echo not in delta.text or len(delta.text) < shortest:
            return delta
        if self.request.sampling.stop or delta.text.count(echo) > 1:
            raise StreamDiverged("the answer cannot go on: it was cut within a character")
        return replace(delta, text=delta.text.partition(echo)[2])

    def _joined(self, end: Completion) -> Completion:
        if not self._before:
            return end
        return replace(
            end,
            text=self._transcript.text,
            token_ids=tuple(self._transcript.ids),
            usage=joined_usage(self._transcript, self._before, end.usage),
        )


class RepeatedStream:
    """The same answer once more, without what has been delivered; it is compared instead."""

    def __init__(self, transcript: Transcript) -> None:
        self.request = transcript.request
        self._transcript = transcript
        self._text = _Delivered(transcript.text)
        self._reasoning = _Delivered(transcript.reasoning)
        self._ids = _Delivered(tuple(transcript.ids))
        self._logprobs = transcript.logprobs
        self._arguments = {
            index: _Delivered(call.arguments) for index, call in transcript.calls.items()
        }

    def take(self, event: Delta | Completion) -> list[ModelEvent]:
        if isinstance(event, Completion):
            return [self._end(event)]
        rest = self._rest(event)
        if rest is None:
            return []
        self._transcript.note(rest)
        return [rest]

    def _rest(self, delta: Delta) -> Delta | None:
        if isinstance(delta, ToolCallDelta):
            return self._rest_of_call(delta)
        ids = self._ids.news(delta.token_ids)
        if isinstance(delta, TextDelta):
            text = self._text.news(delta.text)
            seen = min(self._logprobs, len(delta.logprobs))
            self._logprobs -= seen
            delta = TextDelta(text, ids, delta.logprobs[seen:], delta.top_logprobs[seen:])
            return delta if text or ids or delta.logprobs else None
        text = self._reasoning.news(delta.text)
        return replace(delta, text=text, token_ids=ids) if text or ids else None

    def _rest_of_call(self, delta: ToolCallDelta) -> ToolCallDelta | None:
        if delta.index not in self._arguments:
            return delta
        more = self._arguments[delta.index].news(delta.arguments)
        return ToolCallDelta(delta.index, more) if more else None

    def _end(self, end: Completion) -> Completion:
        left = self._text.left + self._reasoning.left + self._ids.left
        if left or any(arguments.left for arguments in self._arguments.values()):
            raise StreamDiverged("the answer, asked for again, is shorter than what was delivered")
        # Servers draw the ids of calls: the caller knows the first ones.
        known = self._transcript.calls
        calls = tuple(
            replace(call, id=known[index].id) if index in known else call
            for index, call in enumerate(end.tool_calls)
        )
        return replace(
            end, tool_calls=calls, usage=replace(end.usage, requests=self._transcript.attempts)
        )


def joined_usage(transcript: Transcript, before: int, last: Usage) -> Usage:
    """The prompt once, and all tokens: `before` of them from earlier attempts."""
    prompt = len(transcript.prompt_ids)
    return replace(
        last,
        prompt_tokens=prompt,
        completion_tokens=before + last.completion_tokens,
        cached_tokens=min(last.cached_tokens, prompt),
        requests=transcript.attempts,
    )


class _Delivered(Generic[S]):
    """A part of the answer that was delivered, while it is compared with the same part again."""

    def __init__(self, whole: S) -> None:
        self._whole: S = whole
        self._at = 0

    @property
    def left(self) -> int:
        """How much of it has not come again yet."""
        return len(self._whole) - self._at

    def news(self, piece: S) -> S:
        """What of `piece`, which comes next, had not been delivered."""
        length = min(self.left, len(piece))
        if piece[:length] != self._whole[self._at : self._at + length]:
            raise StreamDiverged("the answer, asked for again, differs from what was delivered")
        self._at += length
        return piece[length:]


_HARMLESS = frozenset(
    {"chat_template_kwargs", "ignore_eos", "logit_bias", "min_p", "repetition_penalty"}
    | {"stop_token_ids"}
)
"""Extra fields that mean the same when a part of the answer is given as the prompt."""
_SEEDS = 2**63
_CLEAR_CHARS = 32


def may_go_on(transcript: Transcript) -> bool:
    """Whether a broken answer can be had whole, from a replica that offers what it takes."""
    return transcript.empty or _greedy(transcript.request) or _has_ids(transcript)


def next_attempt(
    transcript: Transcript, offered: Capabilities
) -> UpstreamAttempt | Completion | None:
    """What to ask a replica that offers `offered`; the answer, if all of it has come already.

    None when this replica cannot go on with what has been delivered. In the order of preference:
    from the start while nothing has been delivered; from the tokens delivered; from the start and
    without what has been delivered, which takes a greedy request to be the same again.
    """
    transcript.attempts += 1
    cuttable = _cuttable(transcript.request) and offered.token_ids
    if transcript.empty:
        if cuttable:
            return ResumedStream(transcript, transcript.request)
        return DirectStream(transcript)
    if (stop := _stopped_at(transcript)) is not None:
        return _full(transcript, stop)
    room = _room(transcript, offered)
    resumable = cuttable and offered.prompt_token_ids and _has_ids(transcript)
    if (
        resumable
        and room is not None
        and not (_greedy(transcript.request) and _doubtful(transcript))
    ):
        return (
            ResumedStream(transcript, _rest(transcript, room))
            if room > 0
            else _full(transcript, None)
        )
    return RepeatedStream(transcript) if _greedy(transcript.request) else None


def _cuttable(request: ModelRequest) -> bool:
    """Whether the rest of the answer only depends on the tokens before it."""
    held = (request.schema, request.grammar, request.attention)
    if any(wish is not None for wish in held) or request.tools or request.placement:
        return False
    numbers = request.logprobs or request.top_logprobs > 0
    return not numbers and request.extra.keys() <= _HARMLESS


def _has_ids(transcript: Transcript) -> bool:
    known = bool(transcript.prompt_ids) and transcript.whole
    return known and _cuttable(transcript.request)


def _doubtful(transcript: Transcript) -> bool:
    """Whether the cut may lie within a character, and `ResumedStream` could not tell for sure."""
    hard = bool(transcript.request.sampling.stop) or len(transcript.text) < _CLEAR_CHARS
    return hard and not transcript.sure


def _greedy(request: ModelRequest) -> bool:
    return request.sampling.temperature == 0


def _room(transcript: Transcript, offered: Capabilities) -> int | None:
    """How many tokens may follow; None where it is unknown, for servers then stop at a default."""
    longest, context = transcript.request.sampling.max_tokens, offered.max_context_tokens
    bounds = []
    if longest is not None:
        bounds.append(longest)
    if context is not None:
        bounds.append(context - len(transcript.prompt_ids))
    return min(bounds) - len(transcript.ids) if bounds else None


def _rest(transcript: Transcript, room: int) -> ModelRequest:
    """The delivered tokens become part of the prompt.

    A seed moves on by their number: the same one would draw the first tokens' random numbers again.
    """
    sampling = transcript.request.sampling
    seed = sampling.seed
    if seed is not None:
        seed = (seed + len(transcript.ids)) % _SEEDS
    return replace(
        transcript.request,
        messages=(),
        prompt_token_ids=(*transcript.prompt_ids, *transcript.ids),
        sampling=replace(sampling, max_tokens=room, seed=seed),
    )


def _stopped_at(transcript: Transcript) -> int | None:
    """The stop token that has been delivered, where only the news that it ended the answer has not.

    An answer has no tokens after its first stop token.
    """
    if not (transcript.ids and _has_ids(transcript)):
        return None
    last = transcript.ids[-1]
    return last if last in transcript.request.sampling.stop_token_ids else None


def _full(transcript: Transcript, stop: int | None) -> Completion:
    """The answer broke off after its last possible token, or `stop`: only its end is missing."""
    return Completion(
        transcript.text,
        "length" if stop is None else "stop",
        token_ids=tuple(transcript.ids),
        usage=joined_usage(transcript, len(transcript.ids), Usage()),
        stop=stop,
    )
