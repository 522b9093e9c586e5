"""How an answer begins on a replica, and how it goes on there after another one broke it off."""

from __future__ import annotations

from dataclasses import replace

from weft.core.ports.model import Capabilities, ModelRequest
from weft.core.values import Completion, Usage
from weft.serving.fleet.leg import Direct, Leg, Repeated, Sewn, glued_usage
from weft.serving.fleet.transcript import Transcript

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


def next_leg(transcript: Transcript, offered: Capabilities) -> Leg | Completion | None:
    """What to ask a replica that offers `offered`; the answer, if all of it has come already.

    None when this replica cannot go on with what has been delivered. In the order of preference:
    from the start while nothing has been delivered; from the tokens delivered; from the start and
    without what has been delivered, which takes a greedy request to be the same again.
    """
    transcript.legs += 1
    cuttable = _cuttable(transcript.request) and offered.token_ids
    if transcript.empty:
        if cuttable:
            return Sewn(transcript, transcript.request)
        return Direct(transcript)
    if (stop := _stopped_at(transcript)) is not None:
        return _full(transcript, stop)
    room = _room(transcript, offered)
    sewable = cuttable and offered.prompt_token_ids and _has_ids(transcript)
    if sewable and room is not None and not (_greedy(transcript.request) and _doubtful(transcript)):
        return Sewn(transcript, _rest(transcript, room)) if room > 0 else _full(transcript, None)
    return Repeated(transcript) if _greedy(transcript.request) else None


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
    """Whether the cut may lie within a character, and `Sewn` could not tell for sure."""
    hard = bool(transcript.request.sampling.stop) or len(transcript.text) < _CLEAR_CHARS
    return hard and not transcript.sure


def _greedy(request: ModelRequest) -> bool:
    return request.sampling.temperature == 0


def _room(transcript: Transcript, offered: Capabilities) -> int | None:
    """How many tokens may follow; None if nobody knows, for servers then stop at a default."""
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
        usage=glued_usage(transcript, len(transcript.ids), Usage()),
        stop=stop,
    )
