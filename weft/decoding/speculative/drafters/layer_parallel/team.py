"""Who drafts: all ranks of a draft model in this process, or elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from weft.core.errors import CapabilityError
from weft.decoding.network.loading import load_weights
from weft.decoding.speculative.drafters.layer_parallel.layered import Job, Layered
from weft.decoding.speculative.drafters.layer_parallel.layout import Layout
from weft.decoding.speculative.drafters.layer_parallel.shard import Shard
from weft.decoding.speculative.drafters.layer_parallel.wire import NoWire


class Team(Protocol):
    """The ranks of one draft model."""

    @property
    def context_tokens(self) -> int:
        """How long a sequence it can read."""

    @property
    def forwards(self) -> int:
        """Passes of the draft model so far."""

    def draft(self, jobs: Sequence[Job]) -> list[list[int]]:
        """See `Layered.draft`. Raises: `ModelUnavailable` when a rank is gone."""

    def close(self) -> None:
        """Let the ranks go. Harmless when repeated."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Ranks that were loaded into this process, and what holds for all."""

    shards: tuple[Shard, ...]
    groups: tuple[range, ...]
    context_tokens: int


def load(layout: Layout, ranks: Sequence[int]) -> Loaded:
    """Read the model's folder and keep what belongs to `ranks`.

    Raises: `CapabilityError` for a model that cannot draft this way, has fewer layers or another
    vocabulary; what transformers raises when the files are broken.
    """
    model = load_weights(layout.path, layout.options(ranks[0]))
    config = model.config.get_text_config()
    layers = layout.layers or config.num_hidden_layers
    if layers > config.num_hidden_layers:
        raise CapabilityError(
            f"the draft model has {config.num_hidden_layers} layers, not {layers}",
            hint="ask for fewer layers",
        )
    if layout.vocabulary not in {None, config.vocab_size}:
        raise CapabilityError(
            f"the draft model knows {config.vocab_size} tokens, its target {layout.vocabulary}",
            hint="a draft model has the vocabulary of its target",
        )
    return Loaded(
        tuple(Shard(model, layers, rank, layout.ranks) for rank in ranks),
        layout.groups(layers),
        config.max_position_embeddings,
    )


class OneProcess:
    """Implements `Team` with all ranks in this process, one after the other.

    Drafts what separate processes draft, to the token; nothing runs at once.
    """

    def __init__(self, layout: Layout) -> None:
        loaded = load(layout, range(layout.ranks))
        self.context_tokens = loaded.context_tokens
        self._layered = Layered(loaded.shards, NoWire(), loaded.groups, layout.threads)

    @property
    def forwards(self) -> int:
        return self._layered.forwards

    def draft(self, jobs: Sequence[Job]) -> list[list[int]]:
        return self._layered.draft(jobs)

    def close(self) -> None:
        """Holds nothing that has to be let go."""
