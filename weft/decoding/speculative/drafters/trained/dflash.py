"""DFlash drafter (arXiv 2602.06036): one pass over a block of masks guesses several tokens.

A small block-diffusion model on the target's features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from weft.decoding.network.network import Network
from weft.decoding.speculative.draft import DraftProposal, DraftTree
from weft.decoding.speculative.drafter import (
    UNKNOWN_REQUEST,
    BaseMethod,
    DraftRequest,
    ProposalRequest,
    SpeculativeMethod,
)
from weft.decoding.speculative.drafters.trained.feature_layers import (
    DFlash,
    DFlashShape,
    DraftHead,
    DraftVocabularyHead,
    FeatureDrafter,
    LayerCache,
    LayerVariant,
    read_form,
    read_shape,
)
from weft.decoding.speculative.drafters.trained.guess_tree import likeliest_tree
from weft.decoding.speculative.drafters.trained.published.checkpoint import is_published
from weft.decoding.speculative.drafters.trained.published.dflash import read_dflash
from weft.decoding.speculative.presets import Options, Preset, PublishedSpeed, text, whole
from weft.decoding.speculative.speculation import MOST_NODES
from weft.decoding.speculative.trained_drafter import TrainedDrafter, find


@dataclass(frozen=True, slots=True, eq=False)
class DFlashContext:
    """The context of one sequence: features of its read tokens, and its last token.

    memories  of each layer, the rows read earlier; they get those of `features`
    features  [rows, taps * width]
    """

    memories: Sequence[LayerCache]
    features: torch.Tensor
    last: int


@dataclass(slots=True, eq=False)
class DFlashModel:
    """Weights for all sequences of `target`; guesses only `tokens` [draft vocabulary].

    `taps`: layers of the target whose states it reads; `head`: its own, if it has one; `forwards`
    counts passes of the network.
    """

    net: DFlash
    taps: tuple[int, ...]
    tokens: torch.Tensor
    target: Network
    head: DraftHead | None = None
    forwards: int = 0
    _head: DraftHead = field(init=False)

    def __post_init__(self) -> None:
        like = self.target.embed([0])
        self.net.to(like.device, like.dtype).eval().requires_grad_(requires_grad=False)
        self._head = self.head or DraftVocabularyHead(self.target, self.tokens)

    def memories(self) -> tuple[LayerCache, ...]:
        """Empty caches for a sequence."""
        return tuple(LayerCache() for _ in self.net.layers)

    def vocabulary(self) -> NDArray[np.int64]:
        """The tokens that it can guess, ascending."""
        ids: NDArray[np.int64] = self._head.ids.cpu().numpy()
        return ids

    def look(self, contexts: Sequence[DFlashContext]) -> list[NDArray[np.float32]]:
        """Logits [block - 1, draft vocabulary] of the slots after each last token, in one pass."""
        with torch.inference_mode():
            self._store(contexts)
            self.forwards += 1
            block = self.net.shape.block
            bases = [one.memories[0].length for one in contexts]
            steps = torch.arange(block)
            positions = torch.cat([base + steps for base in bases]).to(self._head.ids.device)

            def attend(
                layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
            ) -> torch.Tensor:
                split = zip(*(of.split(block, dim=1) for of in (query, key, value)), strict=True)
                attended = [
                    one.memories[layer].attend(q, k, v)
                    for one, (q, k, v) in zip(contexts, split, strict=True)
                ]
                return torch.cat(attended, dim=1)

            last = self.target.embed([one.last for one in contexts])
            ready = self.net(last, self.net.shape.rotation(positions), attend)
            logits = self._head(ready).float().cpu().numpy()
            for one, base in zip(contexts, bases, strict=True):
                for memory in one.memories:
                    memory.crop(base)
            return list(logits)

    def _store(self, contexts: Sequence[DFlashContext]) -> None:
        """Store the features of all sequences as keys and values of all layers."""
        sizes = [len(one.features) for one in contexts]
        starts = [one.memories[0].length for one in contexts]
        places = [torch.arange(at, at + size) for at, size in zip(starts, sizes, strict=True)]
        turns = self.net.shape.rotation(torch.cat(places).to(self._head.ids.device))
        remembered = self.net.remembered(torch.cat([one.features for one in contexts]), turns)
        for layer, (keys, values) in enumerate(remembered):
            parts = zip(keys.split(sizes, dim=1), values.split(sizes, dim=1), strict=True)
            for one, (key, value) in zip(contexts, parts, strict=True):
                one.memories[layer].append(key, value)


class DFlashDrafter(FeatureDrafter):
    """Implements `TargetObserver`: one sequence of `DFlashMethod`."""

    def __init__(self, method: DFlashMethod) -> None:
        super().__init__(method, method.model.taps)
        self._memories = method.model.memories()

    def ahead(self) -> DFlashContext | None:
        """The context, once for each token; None: see `unread`."""
        unread = self.unread()
        return None if unread is None else DFlashContext(self._memories, unread[1], unread[0][-1])


class DFlashMethod(BaseMethod):
    """Implements `SpeculativeMethod`: trees; a `width` of 1 is the published chain."""

    def __init__(self, model: DFlashModel, nodes: int, width: int) -> None:
        super().__init__("dflash", nodes)
        self.model = model
        self._width = width
        self._tokens = model.vocabulary()

    @property
    def forwards(self) -> int:
        """Passes of the drafter's network so far, each over several sequences."""
        return self.model.forwards

    def begin(self, request: DraftRequest = UNKNOWN_REQUEST) -> DFlashDrafter:  # noqa: ARG002
        return DFlashDrafter(self)

    def propose(self, asks: Sequence[ProposalRequest]) -> list[DraftProposal]:
        """One pass for all drafters with a context."""
        drafts = [DraftProposal(source=self.name)] * len(asks)
        ready = []
        for at, (drafter, most) in enumerate(asks):
            assert isinstance(drafter, DFlashDrafter)
            ahead = drafter.ahead() if most > 0 else None
            if ahead is not None:
                ready.append((at, most, ahead))
        guesses = self.model.look([ahead for _, _, ahead in ready]) if ready else []
        for (at, most, _), logits in zip(ready, guesses, strict=True):
            tree = likeliest_tree(logits, most, self._width)
            tokens = tuple(int(self._tokens[token]) for token in tree.tokens)
            drafts[at] = DraftProposal(DraftTree(tokens, tree.parents), source=self.name)
        return drafts


KIND = "dflash"
_MOST_LAYERS = 64


def _make(network: Network, options: Options) -> SpeculativeMethod:
    given = text(options, "model")
    if given is not None and is_published(Path(given).expanduser()):
        parts = read_dflash(Path(given).expanduser(), network)
        model = DFlashModel(parts.net, parts.taps, parts.head.ids, network, parts.head)
    else:
        model = loaded(find(KIND, network, given), network)
    usual = model.net.shape.block - 1
    return DFlashMethod(
        model,
        whole(options, "num_speculative_tokens", usual, 1, MOST_NODES),
        whole(options, "width", 1, 1, 64),
    )


def loaded(trained: TrainedDrafter, network: Network) -> DFlashModel:
    """The trained network of a drafter. Raises: `CapabilityError` for a broken one."""
    taps = trained.taps(network.layers)
    trained.whole("layers", 1, _MOST_LAYERS)
    trained.whole("block", 2, MOST_NODES)
    with torch.device("meta"):
        variant = LayerVariant(head_norms=read_form(trained) == 2)
        net = DFlash(read_shape(trained, DFlashShape, network.width, variant))
    trained.fill(net, network.embed([0]))
    return DFlashModel(net, taps, trained.ids("tokens", network.vocabulary_size), network)


PRESETS = (
    Preset(
        "dflash",
        "a small diffusion network on the target's features fills a block of masks in one pass",
        _make,
        needs="a network trained for the model",
        options=("num_speculative_tokens", "model", "width"),
        published=PublishedSpeed(
            5.33, "DSpark's comparison (arXiv 2607.05147), Qwen3-8B GSM8K at T=1"
        ),
    ),
)
