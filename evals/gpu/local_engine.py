"""The local engine, stepped by hand: requests in, completions and seconds out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weft.core.errors import WeftError
from weft.core.ports import ModelEvent, ModelRequest, Sampling
from weft.core.values import AUTOREGRESSIVE, Completion, DecodeSpec, Message
from weft.serving.local import LocalOptions
from weft.serving.local.autoregressive.batcher import Batcher
from weft.serving.local.ticket import ModelBatcher, Ticket
from weft.serving.local.vocabulary import Vocabulary

if TYPE_CHECKING:
    from weft.decoding.network.network import Network

_QUOTED: Final = (
    "def mean(values):\n    total = 0\n    for value in values:\n        total += value\n"
    "    return total / len(values)\n"
)
PROMPTS: Final = (
    f"Write this function again, with the name average:\n\n{_QUOTED}",
    "Tell me in a few sentences how a river becomes a delta.",
    'Fill in the JSON: {"name": ..., "city": ..., "age": ...} for three people.',
    "Translate to French: The weather is fine today, and we go to the sea.",
)
"""Text that an answer copies, and text that it does not."""


class CollectedTicket(Ticket):
    """A ticket of no event loop: its events are kept."""

    def __init__(self, request: ModelRequest) -> None:
        super().__init__(request, asyncio.new_event_loop())
        self._loop.close()
        self.last: ModelEvent | WeftError | None = None

    def put(self, event: ModelEvent | WeftError) -> None:
        self.last = event

    @property
    def completion(self) -> Completion:
        """Raises: `WeftError`, the one that ended the request."""
        if isinstance(self.last, WeftError):
            raise self.last
        assert isinstance(self.last, Completion)
        return self.last


class StepwiseEngine:
    """Runs requests on a batcher in this thread."""

    def __init__(self, batcher: ModelBatcher) -> None:
        self.batcher = batcher

    def answers(self, requests: Sequence[ModelRequest]) -> tuple[list[Completion], float]:
        """The completions, all decoded together, and the seconds until the last.

        Raises: `WeftError`, the first that ended a request.
        """
        tickets = [CollectedTicket(request) for request in requests]
        begun = time.perf_counter()
        for ticket in tickets:
            self.batcher.add(ticket)
        while not self.batcher.idle:
            self.batcher.step()
        seconds = time.perf_counter() - begun
        return [ticket.completion for ticket in tickets], seconds


def autoregressive(path: Path, options: LocalOptions) -> tuple[StepwiseEngine, Network]:
    """The engine of a model that writes from left to right, and its network."""
    from weft.decoding.network.network import Network

    network = Network.load(path, options)
    vocabulary = Vocabulary.load(path, network.vocabulary_size, network.generation.end_ids)
    return StepwiseEngine(Batcher(network, vocabulary, options, path.name)), network


def asking(
    prompt: str,
    max_tokens: int,
    temperature: float = 0.0,
    decode: DecodeSpec = AUTOREGRESSIVE,
    seed: int = 0,
) -> ModelRequest:
    """A request that writes `max_tokens` tokens."""
    return ModelRequest(
        (Message("user", prompt),),
        sampling=Sampling(max_tokens=max_tokens, temperature=temperature, seed=seed),
        decode=decode,
        extra={"ignore_eos": True},
    )
