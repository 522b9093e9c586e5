"""Passes as graphs of a device: hundreds of launches of kernels recorded once, then one launch.

A pass over few tokens costs a GPU less than launching its kernels costs Python. A pass whose shape
has been seen before is captured (CUDA graphs: torch.cuda.CUDAGraph), with tensors of its own for
what goes in and comes out. Every graph is compared with the plain pass when it is made; where one
differs, or cannot be made, passes go on plainly, and `fallback` says why.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import torch

from weft.core.loggers import logger
from weft.decoding.network.cache import KvCache
from weft.decoding.network.packing import PackedBatch

if TYPE_CHECKING:
    from collections.abc import Hashable

LOG = logger("decoding")
MOST_GRAPHS: Final = 64
MOST_TOKENS: Final = 512
"""Longer passes keep a device busy without graphs."""
_TOLERANCE: Final = 1e-2
_MOST_SEEN: Final = 1024

Capture = Callable[[Callable[[], None]], Callable[[], None]]
"""Runs a function, recording what it asks of the device; calling the result does that again.

Raises: `RuntimeError` where the device cannot record it.
"""


class PassDecoder(Protocol):
    """Computes one pass: `logits` [wanted, vocabulary], and `hidden` of the step's taps."""

    def logits(self, step: PackedBatch, cache: KvCache) -> torch.Tensor:
        """float32; the cache gets the keys and values of the step's tokens."""


@dataclass(frozen=True, slots=True)
class GraphFallback:
    """Graphs failed or were wrong: from here on every pass is run plainly."""

    reason: str


class GraphedPasses:
    """Implements `PassDecoder`: the passes of `decoder`, by graphs where their shape comes again.

    Plain are prompts, passes with views or writes, of more than `MOST_TOKENS`, and the first of a
    shape. The `MOST_GRAPHS` last used graphs are kept, until the cache moves.
    """

    def __init__(self, decoder: PassDecoder, capture: Capture) -> None:
        self.fallback: GraphFallback | None = None
        self.replays = 0
        self._decoder = decoder
        self._capture = capture
        self._seen: OrderedDict[Hashable, None] = OrderedDict()
        self._graphs: OrderedDict[Hashable, _Graph] = OrderedDict()
        self._buffer: torch.Tensor | None = None

    def logits(self, step: PackedBatch, cache: KvCache) -> torch.Tensor:
        if self.fallback is not None or not _repeatable(step):
            return self._decoder.logits(step, cache)
        if self._buffer is not cache.buffer:  # graphs write where it was
            self._graphs.clear()
            self._buffer = cache.buffer
        shape = _shape(step)
        graph = self._graphs.get(shape)
        if graph is not None:
            self._graphs.move_to_end(shape)
            self.replays += 1
            return graph.run(step)
        if shape not in self._seen:
            self._seen[shape] = None
            if len(self._seen) > _MOST_SEEN:
                self._seen.popitem(last=False)
            return self._decoder.logits(step, cache)
        return self._first(shape, step, cache)

    def _first(self, shape: Hashable, step: PackedBatch, cache: KvCache) -> torch.Tensor:
        """A plain pass, whose graph is made and compared with it."""
        logits = self._decoder.logits(step, cache)
        try:
            graph = _Graph(self._decoder, step, cache, self._capture)
            again = replace(step, hidden={})
            _compare(logits, graph.run(again))
            for layer, states in step.hidden.items():
                _compare(states, again.hidden[layer])
        except RuntimeError as error:
            self.fallback = GraphFallback(f"{type(error).__name__}: {error}"[:300])
            self._graphs.clear()
            LOG.warning("passes are not replayed as graphs: %s", self.fallback.reason)
            return logits
        self._graphs[shape] = graph
        if len(self._graphs) > MOST_GRAPHS:
            self._graphs.popitem(last=False)
        return logits


class _Graph:
    """One captured pass. Its tensors stay where they are: inputs are copied there."""

    def __init__(
        self, decoder: PassDecoder, step: PackedBatch, cache: KvCache, capture: Capture
    ) -> None:
        groups = tuple(
            group if group.mask is None else replace(group, mask=group.mask.clone())
            for group in step.groups
        )
        self._step = replace(step, numbers=step.numbers.clone(), groups=groups, hidden={})
        self._logits: torch.Tensor | None = None

        def run() -> None:
            self._logits = decoder.logits(self._step, cache)

        self._replay = capture(run)

    def run(self, step: PackedBatch) -> torch.Tensor:
        """The logits of a step of the same shape; what its taps see is put into `step.hidden`."""
        self._step.numbers.copy_(step.numbers)
        for mine, given in zip(self._step.groups, step.groups, strict=True):
            if mine.mask is not None and given.mask is not None:
                mine.mask.copy_(given.mask)
        self._replay()
        assert self._logits is not None
        for layer, states in self._step.hidden.items():
            step.hidden[layer] = states.clone()
        return self._logits.clone()


def _repeatable(step: PackedBatch) -> bool:
    """Whether all that differs between steps of one shape is in tensors."""
    if step.segment_attention is not None or step.written or len(step.token_ids) > MOST_TOKENS:
        return False
    return bool(len(step.wanted)) and not any(span.prompt for span in step.spans)


def _shape(step: PackedBatch) -> Hashable:
    groups = tuple(
        (g.first, g.last, g.low, g.high, g.columns, None if g.mask is None else g.mask.shape)
        for g in step.groups
    )
    return step.sizes, groups, step.taps


def _compare(plain: torch.Tensor, replayed: torch.Tensor) -> None:
    """Raises: `RuntimeError` where they differ by more than kernels that add in another order."""
    error, scale = (plain - replayed).abs().max(), plain.abs().max()
    if not bool(error <= _TOLERANCE * scale):  # also for what is not a number
        raise RuntimeError(f"a graph differs from its pass by {float(error):.3g}")


def capture_for(device: torch.device) -> Capture | None:
    """How passes are captured on a device; None: they are not."""
    return cuda_capture(device) if device.type == "cuda" and torch.cuda.is_available() else None


def cuda_capture(device: torch.device) -> Capture:
    """Captures CUDA graphs, which share one pool of memory. Other threads may use the device."""
    pool: Any = torch.cuda.graph_pool_handle()

    def capture(run: Callable[[], None]) -> Callable[[], None]:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(device):
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):  # kernels allocate what they keep before it is recorded
                run()
            torch.cuda.current_stream().wait_stream(aside)
            with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
                run()

        def replay() -> None:
            with torch.cuda.device(device):
                graph.replay()

        return replay

    return capture
