"""Medusa (arXiv 2401.10774): heads on the target's last hidden state guess several tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Protocol

import torch

from weft.decoding.network.network import Network
from weft.decoding.speculative.acceptance import (
    Acceptor,
    ExactMatch,
    LossyAcceptor,
    TypicalAcceptance,
)
from weft.decoding.speculative.draft import DraftProposal
from weft.decoding.speculative.drafter import (
    UNKNOWN_REQUEST,
    BaseMethod,
    DraftRequest,
    MethodDrafter,
    ProposalRequest,
    SpeculativeMethod,
    TargetOutputs,
)
from weft.decoding.speculative.drafters.trained.feature_layers import (
    DraftVocabularyHead,
    read_form,
)
from weft.decoding.speculative.drafters.trained.guess_tree import (
    Accuracy,
    RankTree,
    best_ranks,
)
from weft.decoding.speculative.drafters.trained.published.checkpoint import is_published
from weft.decoding.speculative.drafters.trained.published.medusa import read_medusa
from weft.decoding.speculative.drafters.trained.rows import GuessPosition
from weft.decoding.speculative.pass_costs import costs_of, pays_most
from weft.decoding.speculative.presets import (
    Options,
    Preset,
    PublishedSpeed,
    share,
    switch,
    text,
    whole,
)
from weft.decoding.speculative.speculation import MOST_NODES
from weft.decoding.speculative.trained_drafter import find


class MedusaHeads(torch.nn.Module):  # type: ignore[misc]
    """`heads` residual blocks, the first for the token after the next.

    A block adds `out(silu(into(hidden)))`, with `out` zero at first, so that training starts from
    the model's next token. Medusa adds `silu(into(hidden))` alone and trains a copy of the model's
    head for each block; here the head is shared and frozen, and the small second matrix replaces
    the copy. In the published form (`form` 2) there is no second matrix, so that vLLM can load it.
    """

    def __init__(self, heads: int, width: int, form: int = 1) -> None:
        super().__init__()
        self.form = form
        self.into = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(heads))
        self.out = torch.nn.ModuleList(
            torch.nn.Identity() if form == 2 else torch.nn.Linear(width, width, bias=False)
            for _ in range(heads)
        )
        for layer in self.into if form == 2 else self.out:
            for part in layer.parameters():
                torch.nn.init.zeros_(part)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """hidden: [..., width], the input of the model's head -> [heads, ..., width]"""
        return torch.stack([self.one(head, hidden) for head in range(len(self.into))])

    def one(self, head: int, hidden: torch.Tensor) -> torch.Tensor:
        """[..., width] -> [..., width], of one head."""
        made: torch.Tensor = self.out[head](torch.nn.functional.silu(self.into[head](hidden)))
        return hidden + made


class MedusaGuesses(Protocol):
    """Logits of the tokens `ids` [ids] at several distances."""

    @property
    def ids(self) -> torch.Tensor:
        """The tokens."""

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """hidden: [.., width], the input of the model's head -> [heads, .., ids]"""


class SharedHeadGuesses:
    """Implements `MedusaGuesses`: weft's heads before the model's own head `rows`."""

    def __init__(self, heads: MedusaHeads, rows: DraftVocabularyHead) -> None:
        self.ids = rows.ids
        self._heads, self._rows = heads, rows

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """[.., width] -> [heads, .., ids]"""
        return self._rows(self._heads(hidden))


class MedusaDrafter(MethodDrafter):
    """Implements `TargetObserver`: keeps the hidden state of the last token read."""

    def __init__(self, method: MedusaMethod) -> None:
        super().__init__(method)
        self.taps = method.taps
        self.state: torch.Tensor | None = None
        self.position = GuessPosition()

    def see(self, outputs: TargetOutputs) -> None:
        self.state = outputs.hidden[self.taps[0]][-1]
        self.position.see(outputs)

    def extend(self, tokens: Sequence[int]) -> None:
        self.position.extend(tokens)


class MedusaMethod(BaseMethod):
    """Implements `SpeculativeMethod`. The guesses of `heads` fill `tree`: one small step for all
    sequences together, on observed states.
    """

    def __init__(
        self,
        name: str,
        heads: MedusaGuesses,
        tree: RankTree,
        tap: int,
        acceptor: Acceptor | LossyAcceptor,
    ) -> None:
        super().__init__(name, len(tree), acceptor)
        self.taps = (tap,)
        self._heads = heads
        self._tree = tree
        self._guesses = 1 + max(tree.ranks, default=0)

    def begin(self, request: DraftRequest = UNKNOWN_REQUEST) -> MedusaDrafter:  # noqa: ARG002
        return MedusaDrafter(self)

    def propose(self, asks: Sequence[ProposalRequest]) -> list[DraftProposal]:
        """One step of the heads for all drafters."""
        ready = [
            (at, drafter, most)
            for at, (drafter, most) in enumerate(asks)
            if isinstance(drafter, MedusaDrafter) and drafter.state is not None and most > 0
        ]
        drafts = [DraftProposal(source=self.name)] * len(asks)
        if not ready:
            return drafts
        guesses = self._guessed([drafter.state for _, drafter, _ in ready])
        for (at, drafter, most), heads in zip(ready, guesses, strict=True):
            tree, _ = self._tree.first(most).filled(heads[drafter.position.forced :])
            drafts[at] = DraftProposal(tree, source=self.name)
        return drafts

    def _guessed(self, states: Sequence[torch.Tensor]) -> list[list[list[int]]]:
        """[drafters][heads][ranks]: ids, the likeliest first."""
        with torch.inference_mode():
            logits = self._heads(torch.stack(states).float())
            best = logits.topk(min(self._guesses, logits.shape[-1]), dim=-1).indices
            ids: list[list[list[int]]] = self._heads.ids[best].transpose(0, 1).tolist()
            return ids


KIND = "medusa"
MOST_HEADS = 16
_FEW, _MANY = 16, 63
"""The most nodes on a CPU, and on an accelerator, as in Medusa's own trees."""
_LIKELY, _FALLING, _RARER, _RANKS = 0.6, 0.8, 0.4, 10
"""What is assumed of published heads, whose accuracy is not published: that of the first head's
first guess, and its change from head to head and from rank to rank. It shapes trees, not texts."""
_CONTEXT = 256
"""The text length for which the size is chosen."""


def _medusa(
    name: str, acceptor: Acceptor | LossyAcceptor, network: Network, options: Options
) -> SpeculativeMethod:
    usual = _FEW if network.embed([0]).device.type == "cpu" else _MANY
    nodes = whole(options, "num_speculative_tokens", usual, 1, MOST_NODES)
    measured = switch(options, "measured", default="num_speculative_tokens" not in options)
    heads, accuracy = _heads(network, text(options, "model"))
    tree = best_ranks(accuracy, nodes)
    if measured and len(tree):
        running = accumulate(tree.chances, initial=1.0)
        expected = {size: tokens for size, tokens in enumerate(running) if size}
        tree = tree.first(pays_most(expected, costs_of(network).curve(_CONTEXT)))
    return MedusaMethod(name, heads, tree, network.layers, acceptor)


def _heads(network: Network, given: str | None) -> tuple[MedusaGuesses, Accuracy]:
    """The heads of a folder, or those that come with weft, and how often they are right."""
    if given is not None and is_published(Path(given).expanduser()):
        published = read_medusa(Path(given).expanduser(), network)
        right = [
            [_LIKELY * _FALLING**head * _RARER**rank for rank in range(_RANKS)]
            for head in range(len(published))
        ]
        return published, right
    trained = find(KIND, network, given)
    count = trained.whole("heads", 1, MOST_HEADS)
    accuracy = trained.table("accuracy", count)
    rows = DraftVocabularyHead(network, trained.ids("tokens", network.vocabulary_size))
    made = MedusaHeads(count, network.width, read_form(trained))
    heads = trained.fill(made, network.embed([0]).float())
    return SharedHeadGuesses(heads, rows), accuracy


def _typical(network: Network, options: Options) -> SpeculativeMethod:
    usual = TypicalAcceptance()
    rule = TypicalAcceptance(
        share(options, "epsilon", usual.epsilon), share(options, "delta", usual.delta)
    )
    return _medusa("medusa_typical", rule, network, options)


PRESETS = (
    Preset(
        "medusa",
        "trained heads guess several tokens from one state, in a sparse tree",
        partial(_medusa, "medusa", ExactMatch()),
        needs="heads trained for the model",
        options=("num_speculative_tokens", "model", "measured"),
        published=PublishedSpeed(2.31, "Medusa-1, Spec-Bench, Vicuna-7B greedy on an A100"),
    ),
    Preset(
        "medusa_typical",
        "Medusa's heads, whose guesses stay where they are not unlikely: lossy",
        _typical,
        lossless=False,
        needs="heads trained for the model",
        options=("num_speculative_tokens", "model", "measured", "epsilon", "delta"),
    ),
)
