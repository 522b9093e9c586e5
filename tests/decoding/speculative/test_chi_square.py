"""The ratio test on a model's first tokens: how often texts come, against their exact law."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.decoding.speculative.test_kv import made
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.sampling import CounterRng, SamplingParams, TokenRng
from weft.decoding.speculative.acceptance import (
    AcceptedPath,
    Acceptor,
    DistributionAt,
    RejectionSampling,
)
from weft.decoding.speculative.draft import (
    ROOT,
    ChildDistribution,
    DraftProposal,
    DraftTree,
    DrawKind,
)
from weft.decoding.speculative.drafter import (
    DraftRequest,
    PerSequenceMethod,
    TargetOutputs,
)
from weft.decoding.speculative.loop import DecodeLimits, DecodeLoop
from weft.decoding.speculative.presets import Options
from weft.decoding.speculative.presets import made as preset_made
from weft.decoding.speculative.speculation import SpeculativeSequence
from weft.decoding.speculative.target import NetworkTarget

Array = NDArray[np.float64]
PROMPT = (5, 9, 3)
TEXTS = 3000
SURE = 4.0
"""Standard deviations: a right rule is above once in thirty thousand choices of seeds."""


class Laws:
    """A network's laws after the prompt and a few tokens, each computed once."""

    def __init__(self, network: Network, shaping: SamplingParams) -> None:
        def law(text: tuple[int, ...]) -> Array:
            tokens = (*PROMPT, *text)
            read = network.forward([Span(0, range(len(tokens)), tokens, 1)])
            return shaping.distribution(read[0].logits[-1])

        self.after = cache(law)


class Target:
    """Implements `Target` on laws that were computed before."""

    def __init__(self, laws: Laws) -> None:
        self._laws = laws
        self._text: tuple[int, ...] = ()
        self._tree = DraftTree()

    def verify(self, draft: DraftProposal, taps: tuple[int, ...] = ()) -> DistributionAt:
        self._tree = tree = draft.tree
        return lambda node: self._laws.after(
            (*self._text, *(tree.tokens[above] for above in tree.path(node)))
        )

    def commit(self, walk: AcceptedPath) -> TargetOutputs:
        self._text += walk.tokens(self._tree)
        return TargetOutputs(())


class Drawing:
    """Drafts at random: two children of the root, and a child of the first of them."""

    name = "drawing"

    def __init__(self, laws: Laws, kind: DrawKind, seed: int) -> None:
        self._laws = laws
        self._kind = kind
        self._random = np.random.default_rng([seed, 5])
        self._text: tuple[int, ...] = ()

    def extend(self, tokens: Sequence[int]) -> None:
        self._text += tuple(tokens)

    def propose(self, most: int) -> DraftTree:
        first = self._laws.after(self._text)
        left = first.copy()
        tokens = []
        for _ in range(2):
            tokens.append(int(self._random.choice(len(left), p=left / left.sum())))
            if self._kind == "without_replacement":
                left[tokens[-1]] = 0.0
        second = self._laws.after((*self._text, tokens[0]))
        tokens.append(int(self._random.choice(len(second), p=second)))
        proposals = {
            ROOT: ChildDistribution(self._kind, first),
            0: ChildDistribution(self._kind, second),
        }
        return DraftTree(tuple(tokens), (ROOT, ROOT, 0), proposals)


class Careless(RejectionSampling):
    """What is easily got wrong: after a rejection the whole law is drawn from."""

    def walk(
        self, tree: DraftTree, law_at: DistributionAt, chance: TokenRng, position: int
    ) -> AcceptedPath:
        walk = super().walk(tree, law_at, chance, position)
        last = walk.path[-1] if walk.path else ROOT
        return AcceptedPath(walk.path, chance.token(law_at(last), position + len(walk.path)))


@pytest.fixture(scope="module")
def laws(tmp_path_factory: pytest.TempPathFactory) -> tuple[Laws, Laws]:
    """Of a target and of another model that drafts."""
    target, other = (made(tmp_path_factory.mktemp("chi") / str(n), n) for n in (2, 1))
    return Laws(target, SamplingParams(1.0, top_k=7)), Laws(other, SamplingParams(1.4, top_k=12))


def written(p: Laws, q: Laws, kind: DrawKind, rule: Acceptor) -> Counter[tuple[int, ...]]:
    """How often each text of two tokens comes of it."""
    counts: Counter[tuple[int, ...]] = Counter()
    for seed in range(TEXTS):
        drawing = partial(Drawing, q, kind, seed)
        method = PerSequenceMethod("drawing", drawing, 3, rule)
        decoding = DecodeLoop(
            Target(p), SpeculativeSequence(method, 60), CounterRng(seed), DecodeLimits(2)
        )
        counts[tuple(token for step in decoding for token in step)] += 1
    return counts


def deviations(counts: Counter[tuple[int, ...]], p: Laws) -> float:
    """How far chi-square is above what is expected, in standard deviations of a normal law.

    By Wilson and Hilferty's cube root. Texts expected less than five times are counted together.
    """
    law = {
        (int(one), int(two)): float(p.after(())[one] * p.after((int(one),))[two])
        for one in np.flatnonzero(p.after(()))
        for two in np.flatnonzero(p.after((int(one),)))
    }
    assert set(counts) <= set(law), "a text that cannot be"
    total = counts.total()
    often = {text for text, share in law.items() if share * total >= 5}
    cells = [(counts[text], law[text] * total) for text in often]
    rare = 1.0 - sum(law[text] for text in often)
    if rare * total >= 5:
        cells.append((total - sum(seen for seen, _ in cells), rare * total))
    chi = sum((seen - expected) ** 2 / expected for seen, expected in cells)
    free = len(cells) - 1
    spread = 2 / (9 * free)
    return float(((chi / free) ** (1 / 3) - (1 - spread)) / spread**0.5)


@pytest.mark.parametrize("kind", ["independent", "without_replacement"])
def test_the_first_tokens_of_a_model_keep_their_law(
    laws: tuple[Laws, Laws], kind: DrawKind
) -> None:
    p, q = laws
    counts = written(p, q, kind, RejectionSampling())
    assert len(counts) > 20, "a law with few texts tells little"
    assert abs(deviations(counts, p)) < SURE


def test_a_careless_rule_is_found_out(laws: tuple[Laws, Laws]) -> None:
    p, q = laws
    assert deviations(written(p, q, "independent", Careless()), p) > SURE


DRAWN: dict[str, Options] = {
    "self_draft": {"layers": 1, "num_speculative_tokens": 2, "confidence": 0.0},
    "sequoia": {"layers": 1, "num_speculative_tokens": 4, "measured": False, "remember": False},
}
"""Presets that can draft at random: a chain of independent draws, a tree without replacement."""


@pytest.mark.parametrize("name", DRAWN)
def test_presets_that_draw_keep_the_law(name: str, tmp_path: Path) -> None:
    shaping = SamplingParams(1.0, top_k=3)
    network = made(tmp_path / "model", 2)
    laws = Laws(network.share(3), shaping)
    method = preset_made(name, network, {**DRAWN[name], "sample": True})
    counts: Counter[tuple[int, ...]] = Counter()
    accepted = 0
    for seed in range(TEXTS // 8):
        target = NetworkTarget(network, shaping)
        speculation = SpeculativeSequence(
            method, network.vocabulary_size, DraftRequest(shaping, seed)
        )
        for seen in target.begin(PROMPT, speculation.taps):
            speculation.see(seen)
        speculation.extend(PROMPT)
        decoding = DecodeLoop(target, speculation, CounterRng(seed), DecodeLimits(2))
        counts[tuple(token for step in decoding for token in step)] += 1
        accepted += decoding.counters.accepted
        assert speculation.fallback is None
    method.close()
    assert 0 < accepted < TEXTS // 8, "a draft that is never, or always, right tests no rule"
    assert abs(deviations(counts, laws)) < SURE
