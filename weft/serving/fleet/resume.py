"""Upstream streams of one answer, and how an answer continues after a replica broke it off."""

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
    """The new stream does not continue what has been delivered."""


class UpstreamAttempt(Protocol):
    """Maps events of one upstream stream to events for the caller, and records them."""

    @property
    def request(self) -> ModelRequest:
        """What to ask the replica."""

    def take(self, event: Delta | Completion) -> list[ModelEvent]:
        """What the caller receives of `event`. Raises: `StreamDiverged`."""


class DirectStream:
    """The whole answer as it comes, for answers that cannot be cut."""

    def __init__(self, transcript: Transcript) -> None:
        self.request = transcript.request
        self._transcript = transcript

    def take(self, event: Delta | Completion) -> list[ModelEvent]:
        if not isinstance(event, Completion):
            self._transcript.note(event)
        return [event]


class ResumedStream:
    """An answer that can be cut at every moment: its beginning, or its rest after a cut."""

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
        """vLLM repeats the text of a prompt that ends within a character, once it is complete."""
        echo = self._echo
        if not (echo and delta.text):
            return delta
        self._echo = ""
        # The prompt's own text comes first: this separates an echo from a repetitive answer.
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
    """The same answer from the start. Checks the delivered part, and passes on the rest."""

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
        ids = self._ids.rest(delta.token_ids)
        if isinstance(delta, TextDelta):
            text = self._text.rest(delta.text)
            repeated = min(self._logprobs, len(delta.logprobs))
            self._logprobs -= repeated
            delta = TextDelta(text, ids, delta.logprobs[repeated:], delta.top_logprobs[repeated:])
            return delta if text or ids or delta.logprobs else None
        text = self._reasoning.rest(delta.text)
        return replace(delta, text=text, token_ids=ids) if text or ids else None

    def _rest_of_call(self, delta: ToolCallDelta) -> ToolCallDelta | None:
        if delta.index not in self._arguments:
            return delta
        more = self._arguments[delta.index].rest(delta.arguments)
        return ToolCallDelta(delta.index, more) if more else None

    def _end(self, end: Completion) -> Completion:
        left = self._text.left + self._reasoning.left + self._ids.left
        if left or any(arguments.left for arguments in self._arguments.values()):
            raise StreamDiverged("the answer, asked for again, is shorter than what was delivered")
        # Servers generate call ids at random: the caller has the first ones.
        delivered = self._transcript.calls
        calls = tuple(
            replace(call, id=delivered[index].id) if index in delivered else call
            for index, call in enumerate(end.tool_calls)
        )
        return replace(
            end, tool_calls=calls, usage=replace(end.usage, requests=self._transcript.attempts)
        )


def joined_usage(transcript: Transcript, before: int, last: Usage) -> Usage:
    """Usage of the whole answer: the prompt once, and `before` tokens from earlier attempts."""
    prompt = len(transcript.prompt_ids)
    return replace(
        last,
        prompt_tokens=prompt,
        completion_tokens=before + last.completion_tokens,
        cached_tokens=min(last.cached_tokens, prompt),
        requests=transcript.attempts,
    )


class _Delivered(Generic[S]):
    """A delivered part of the answer, compared with the same part of the repeated stream."""

    def __init__(self, whole: S) -> None:
        self._whole: S = whole
        self._position = 0

    @property
    def left(self) -> int:
        """Length that has not been repeated yet."""
        return len(self._whole) - self._position

    def rest(self, piece: S) -> S:
        """The undelivered part of `piece`, the next one of the stream."""
        length = min(self.left, len(piece))
        if piece[:length] != self._whole[self._position : self._position + length]:
            raise StreamDiverged("the answer, asked for again, differs from what was delivered")
        self._position += length
        return piece[length:]


_HARMLESS = frozenset(
    {"chat_template_kwargs", "ignore_eos", "logit_bias", "min_p", "repetition_penalty"}
    | {"stop_token_ids"}
)
"""Extra fields whose meaning does not change when a part of the answer moves into the prompt."""
_SEEDS = 2**63
_CLEAR_CHARS = 32


def resumable(transcript: Transcript) -> bool:
    """Whether a broken answer can be completed, by a replica with the capabilities it takes."""
    return transcript.empty or _greedy(transcript.request) or _has_ids(transcript)


def next_attempt(
    transcript: Transcript, offered: Capabilities
) -> UpstreamAttempt | Completion | None:
    """The next upstream attempt; the answer itself, if all of it has been delivered.

    None when this replica cannot continue the answer. In order of preference: from the start while
    nothing has been delivered; from the delivered tokens; from the start without the delivered
    part, which takes a greedy request to give the same answer again.
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
    by_ids = cuttable and offered.prompt_token_ids and _has_ids(transcript)
    if by_ids and room is not None and not (_greedy(transcript.request) and _doubtful(transcript)):
        return (
            ResumedStream(transcript, _rest(transcript, room))
            if room > 0
            else _full(transcript, None)
        )
    return RepeatedStream(transcript) if _greedy(transcript.request) else None


def _cuttable(request: ModelRequest) -> bool:
    """Whether the rest of the answer depends on nothing but the tokens before it."""
    constraints = (request.schema, request.grammar, request.attention)
    if any(each is not None for each in constraints) or request.tools or request.placement:
        return False
    sampling = request.sampling
    if sampling.thinking_tokens is not None:
        return False  # the rest may be of the thought or of the answer
    if sampling.presence_penalty or sampling.frequency_penalty:
        return False  # they count generated tokens, and not those of the prompt
    logprobs = request.logprobs or request.top_logprobs > 0
    return not logprobs and request.extra.keys() <= _HARMLESS


def _has_ids(transcript: Transcript) -> bool:
    has_ids = bool(transcript.prompt_ids) and transcript.whole
    return has_ids and _cuttable(transcript.request)


def _doubtful(transcript: Transcript) -> bool:
    """Whether the cut may lie within a character without `ResumedStream` being able to tell."""
    hard = bool(transcript.request.sampling.stop) or len(transcript.text) < _CLEAR_CHARS
    return hard and not transcript.sure


def _greedy(request: ModelRequest) -> bool:
    return request.sampling.temperature == 0


def _room(transcript: Transcript, offered: Capabilities) -> int | None:
    """How many tokens may follow; None where unknown, as servers then stop at a default."""
    longest, context = transcript.request.sampling.max_tokens, offered.max_context_tokens
    bounds = []
    if longest is not None:
        bounds.append(longest)
    if context is not None:
        bounds.append(context - len(transcript.prompt_ids))
    return min(bounds) - len(transcript.ids) if bounds else None


def _rest(transcript: Transcript, room: int) -> ModelRequest:
    """The request for the rest: the delivered tokens become part of the prompt.

    A seed advances by their number, or it would repeat the random numbers of the first tokens.
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
    """The delivered stop token, where the completion it caused is the only thing missing.

    An answer has no tokens after its first stop token.
    """
    if not (transcript.ids and _has_ids(transcript)):
        return None
    last = transcript.ids[-1]
    return last if last in transcript.request.sampling.stop_token_ids else None


def _full(transcript: Transcript, stop: int | None) -> Completion:
    """The completion of an answer whose last token, or `stop`, has been delivered."""
    return Completion(
        transcript.text,
        "length" if stop is None else "stop",
        token_ids=tuple(transcript.ids),
        usage=joined_usage(transcript, len(transcript.ids), Usage()),
        stop=stop,
    )
