"""A batch of a vLLM worker: its requests by place, and its texts cut at block ends.

A worker must go on whatever a request says: what is wrong with one was told where it came in, and
is done without here. Sampling parameters are read by their names.
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
    """As much of vLLM's `SamplingParams` as is read."""

    extra_args: Mapping[str, object] | None
    max_tokens: int | None
    ignore_eos: bool
    top_p: float
    top_k: int

    @property
    def eos_token_id(self) -> int | None:
        """What ends a text by the served configuration."""

    @property
    def all_stop_token_ids(self) -> set[int]:
        """What ends the request, when it is emitted."""


@dataclass(slots=True)
class CanvasRequest:
    """`ending`: what is emitted in place of a terminator that vLLM does not know as one."""

    row: CanvasRow
    stops: frozenset[int]
    ending: int | None


class CanvasRequests:
    """By place in the batch. `longest`: slots of a text at most."""

    def __init__(self, served: ServedCanvas, longest: int) -> None:
        self.served = served
        self._longest = longest
        self._places: dict[str, int] = {}
        self._held: dict[int, CanvasRequest] = {}

    def __getitem__(self, place: int) -> CanvasRequest | None:
        return self._held.get(place)

    def add(
        self,
        name: str,
        place: int,
        prompt: Sequence[int],
        got: int,
        sampling: VllmSamplingParams | None,
    ) -> None:
        """Begin a request whose `prompt` holds `got` tokens of its answer already."""
        room = max(1, self._longest - len(prompt))
        most = room
        if sampling is not None and sampling.max_tokens is not None:
            most = min(room, max(1, sampling.max_tokens - got))
        self._places[name] = place
        self._held[place] = self._begun(prompt, most, sampling)

    def remove(self, name: str) -> None:
        """Forget a request; harmless for one that is not held."""
        place = self._places.pop(name, None)
        if place is not None:
            self._held.pop(place, None)

    def _begun(
        self, prompt: Sequence[int], most: int, sampling: VllmSamplingParams | None
    ) -> CanvasRequest:
        usual = decoder_request_of(None, self.served.preset)
        if sampling is None:
            return CanvasRequest(self._row(prompt, most, usual, None), frozenset(), None)
        stops = frozenset(sampling.all_stop_token_ids)
        try:
            asked = decoder_request_of(sampling.extra_args, self.served.preset)
            row = self._row(prompt, most, asked, sampling)
        except (WeftError, ValueError) as error:
            LOG.warning("weft decodes a request by %s: %s", usual.decode, error)
            row = self._row(prompt, most, usual, sampling)
        return CanvasRequest(row, stops, sampling.eos_token_id)

    def _row(
        self,
        prompt: Sequence[int],
        most: int,
        asked: DecoderRequest,
        sampling: VllmSamplingParams | None,
    ) -> CanvasRow:
        shaping, ends = SamplingParams(0.0), True
        if sampling is not None:
            ends = not sampling.ignore_eos
            if asked.temperature:
                shaping = SamplingParams(asked.temperature, max(0, sampling.top_k), sampling.top_p)
        return CanvasRow(prompt, most, asked, self.served, shaping, ends=ends)


Numbers = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class BatchPieces:
    """Pieces of a batch, in the order of its tokens: attention without a mask is block-causal.

    A piece of a text that ends where its block does, and sees all that was read up to there, sees
    its own block and those before, and nothing else.

    starts    [pieces + 1] where each begins among the tokens of the batch, and the end
    lengths   [pieces] how far each sees, from slot 0 of its text
    texts     [pieces] which text of the batch it is of
    longest   tokens of the longest piece
    """

    starts: Numbers
    lengths: Numbers
    texts: Numbers
    longest: int


def cut(first: Numbers, tokens: Numbers, block: int) -> BatchPieces:
    """Text i reads `tokens[i]` tokens from its slot `first[i]` on: both [texts].

    `block` 0: no cuts, every text sees all of itself. Texts without tokens keep one empty piece.
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
