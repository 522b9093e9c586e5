"""A batch of a vLLM worker: its requests by place, and its texts cut at block ends.

A worker must survive any request. Invalid ones were refused on arrival; what is wrong with one here
is logged and replaced by defaults. Sampling parameters are read by their names.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from weft.core.errors import WeftError
from weft.decoding.sampling import SamplingParams
from weft.serving.vllm.diffusion.decoder import DecoderRequest, ServedCanvas, decoder_request_of
from weft.serving.vllm.diffusion.row import CanvasRow

LOG = logging.getLogger("vllm.weft")


class VllmSamplingParams(Protocol):
    """The part of vLLM's `SamplingParams` that is used here."""

    extra_args: Mapping[str, object] | None
    max_tokens: int | None
    ignore_eos: bool
    top_p: float
    top_k: int

    @property
    def eos_token_id(self) -> int | None:
        """The token that ends a text by the served configuration."""

    @property
    def all_stop_token_ids(self) -> set[int]:
        """Tokens that end the request when they are emitted."""


@dataclass(slots=True)
class CanvasRequest:
    """`ending`: the token emitted in place of a terminator that is not in vLLM's `stops`."""

    row: CanvasRow
    stops: frozenset[int]
    ending: int | None


class CanvasRequests:
    """Requests by place in the batch. `longest`: most slots of a text."""

    def __init__(self, served: ServedCanvas, longest: int) -> None:
        self.served = served
        self._longest = longest
        self._places: dict[str, int] = {}
        self._requests: dict[int, CanvasRequest] = {}

    def __getitem__(self, place: int) -> CanvasRequest | None:
        return self._requests.get(place)

    def add(
        self,
        name: str,
        place: int,
        prompt: Sequence[int],
        answered: int,
        sampling: VllmSamplingParams | None,
    ) -> None:
        """Begin a request; the last `answered` tokens of `prompt` are of its answer already."""
        room = max(1, self._longest - len(prompt))
        most = room
        if sampling is not None and sampling.max_tokens is not None:
            most = min(room, max(1, sampling.max_tokens - answered))
        self._places[name] = place
        self._requests[place] = self._begin(prompt, most, sampling)

    def remove(self, name: str) -> None:
        """Remove a request; harmless for an unknown one."""
        place = self._places.pop(name, None)
        if place is not None:
            self._requests.pop(place, None)

    def _begin(
        self, prompt: Sequence[int], most: int, sampling: VllmSamplingParams | None
    ) -> CanvasRequest:
        default = decoder_request_of(None, self.served.preset)
        if sampling is None:
            return CanvasRequest(self._row(prompt, most, default, None), frozenset(), None)
        stops = frozenset(sampling.all_stop_token_ids)
        try:
            requested = decoder_request_of(sampling.extra_args, self.served.preset)
            row = self._row(prompt, most, requested, sampling)
        except (WeftError, ValueError) as error:
            LOG.warning("weft decodes a request by %s: %s", default.decode, error)
            row = self._row(prompt, most, default, sampling)
        return CanvasRequest(row, stops, sampling.eos_token_id)

    def _row(
        self,
        prompt: Sequence[int],
        most: int,
        decoder: DecoderRequest,
        sampling: VllmSamplingParams | None,
    ) -> CanvasRow:
        params, ends = SamplingParams(0.0), True
        if sampling is not None:
            ends = not sampling.ignore_eos
            if decoder.temperature:
                top_k = max(0, sampling.top_k)
                params = SamplingParams(decoder.temperature, top_k, sampling.top_p)
        return CanvasRow(prompt, most, decoder, self.served, params, ends=ends)


Numbers = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class BatchPieces:
    """Pieces of a batch in the order of its tokens, for block-causal attention without a mask.

    A piece ends where a block of its text does, and sees the text up to there: its own block and
    those before.

    starts    [pieces + 1] where each begins among the tokens of the batch, and the end
    lengths   [pieces] how far each sees, from slot 0 of its text
    texts     [pieces] index of its text in the batch
    longest   tokens of the longest piece
    """

    starts: Numbers
    lengths: Numbers
    texts: Numbers
    longest: int


def cut(first: Numbers, tokens: Numbers, block: int) -> BatchPieces:
    """The pieces of a batch whose text i reads `tokens[i]` tokens from slot `first[i]`: [texts].

    `block` 0: no cuts, every text sees all of itself. Texts without tokens have one empty piece.
    """
    starts, lengths, texts = [0], [], []
    for text, (begin, count) in enumerate(zip(first.tolist(), tokens.tolist(), strict=True)):
        end = begin + count
        edges = range((begin // block + 1) * block, end, block) if block else ()
        for edge in (*edges, end):
            starts.append(starts[-1] + edge - begin)
            lengths.append(edge)
            texts.append(text)
            begin = edge
    pieces = np.array(starts, dtype=np.int32)
    longest = int(np.diff(pieces).max()) if texts else 0
    return BatchPieces(
        pieces, np.array(lengths, dtype=np.int32), np.array(texts, dtype=np.int32), longest
    )
