"""Acceptance: which nodes of a draft stay, by the target's distribution after each of them.

An `Acceptor` keeps the target's distribution, whatever the draft; a `LossyAcceptor` may change the
text and must be requested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from weft.decoding.sampling import TokenRng
from weft.decoding.speculative.draft import ROOT, DraftTree

DistributionAt = Callable[[int], NDArray[np.float64]]
"""The target's distribution [vocabulary] after a node, or after `ROOT`."""


@dataclass(frozen=True, slots=True)
class AcceptedPath:
    """`path`: accepted nodes from the root down; `bonus`: the target's own token after the last.
    `tried` counts tested candidates, including accepted ones.
    """

    path: tuple[int, ...]
    bonus: int
    tried: int = 0

    def tokens(self, tree: DraftTree) -> tuple[int, ...]:
        """The committed tokens: at least one."""
        return (*(tree.tokens[node] for node in self.path), self.bonus)


class Acceptor(Protocol):
    """A lossless rule: it keeps the target's distribution, whatever the draft."""

    def walk(
        self, tree: DraftTree, distribution_at: DistributionAt, rng: TokenRng, position: int
    ) -> AcceptedPath:
        """Walk down `tree`; `position` is that of the first decided token."""


class ExactMatch:
    """Sample and match: the target samples its token as without a draft, and a match is accepted.

    For deterministic drafts it is the ratio test (arXiv 2211.17192) with a distribution of one
    token, and with a greedy distribution the greedy rule: the same tokens as without a draft.
    """

    def walk(
        self, tree: DraftTree, distribution_at: DistributionAt, rng: TokenRng, position: int
    ) -> AcceptedPath:
        path: list[int] = []
        node, tried = ROOT, 0
        while True:
            token = rng.token(distribution_at(node), position + len(path))
            children = tree.children(node)
            match = next((child for child in children if tree.tokens[child] == token), None)
            if match is None:
                return AcceptedPath(tuple(path), token, tried + len(children))
            tried += children.index(match) + 1
            path.append(match)
            node = match


Array = NDArray[np.float64]


class RejectionSampling:
    """Implements `Acceptor`: the ratio test for random drafts (arXiv 2211.17192, 2302.01318).

    Siblings are tested in the order of their drawing, each against what the earlier ones left of
    the target's distribution: SpecInfer's multi-step test for independent draws (arXiv 2305.09781),
    Sequoia's for draws without replacement (2402.12374). Children that were not drawn at random are
    tested as certain.
    """

    def walk(
        self, tree: DraftTree, distribution_at: DistributionAt, rng: TokenRng, position: int
    ) -> AcceptedPath:
        path: list[int] = []
        node, tried = ROOT, 0
        while True:
            here = position + len(path)
            accepted, left, count = _test(tree, node, distribution_at(node), rng, here)
            tried += count
            if accepted is None:
                return AcceptedPath(tuple(path), rng.token(left, here), tried)
            path.append(accepted)
            node = accepted


def _test(
    tree: DraftTree, node: int, distribution: Array, rng: TokenRng, position: int
) -> tuple[int | None, Array, int]:
    """The accepted child of `node` or None, the distribution that is left, the number of tests."""
    proposal = tree.proposals.get(node)
    drawn = None if proposal is None else proposal.distribution
    for sibling, child in enumerate(tree.children(node)):
        token = tree.tokens[child]
        certain = drawn is None or not drawn[token] > 0.0  # a token that it cannot have drawn
        q = 1.0 if certain or drawn is None else float(drawn[token])
        if rng.accepts(min(1.0, float(distribution[token]) / q), position, sibling):
            return child, distribution, sibling + 1
        if certain or drawn is None:
            distribution = _without(distribution, token)
        else:
            distribution = _positive(distribution - drawn, distribution)
            if proposal is not None and proposal.kind == "without_replacement":
                drawn = _without(drawn, token)
    return None, distribution, len(tree.children(node))


def _without(distribution: Array, token: int) -> Array:
    rest = distribution.copy()
    rest[token] = 0.0
    return _positive(rest, distribution)


def _positive(rest: Array, distribution: Array) -> Array:
    """`rest` without negative parts, normalised; `distribution` if rounding left nothing."""
    rest = np.maximum(rest, 0.0)
    total = rest.sum()
    return rest / total if total > 0.0 else distribution


@runtime_checkable
class LossyAcceptor(Protocol):
    """A rule that may change the target's distribution."""

    def walk_lossy(
        self, tree: DraftTree, distribution_at: DistributionAt, rng: TokenRng, position: int
    ) -> AcceptedPath:
        """As `Acceptor.walk`, without its guarantee."""


@dataclass(frozen=True, slots=True)
class TypicalAcceptance:
    """Implements `LossyAcceptor`: typical acceptance (Medusa, arXiv 2401.10774, section 2.3.1).

    A token x is accepted if p(x) > min(epsilon, delta * exp(-H(p))).

    H is the entropy of the target's distribution p, in nats. Of several such children the likeliest
    is followed. The token after them is sampled as without a draft. For a greedy distribution this
    is the greedy rule, which is lossless.

    Raises: `ValueError` for values outside 0..1.
    """

    epsilon: float = 0.09
    delta: float = 0.3

    def __post_init__(self) -> None:
        if not 0.0 <= self.epsilon <= 1.0 or not 0.0 <= self.delta <= 1.0:
            raise ValueError(f"no acceptance with {self}")

    def walk_lossy(
        self, tree: DraftTree, distribution_at: DistributionAt, rng: TokenRng, position: int
    ) -> AcceptedPath:
        path: list[int] = []
        node, tried = ROOT, 0
        while True:
            distribution = distribution_at(node)
            children = tree.children(node)
            tried += len(children)
            least = min(self.epsilon, self.delta * float(np.exp(-_entropy(distribution))))
            accepted = [child for child in children if distribution[tree.tokens[child]] > least]
            if not accepted:
                return AcceptedPath(
                    tuple(path), rng.token(distribution, position + len(path)), tried
                )
            node = max(accepted, key=lambda child: float(distribution[tree.tokens[child]]))
            path.append(node)


def _entropy(distribution: NDArray[np.float64]) -> float:
    """Entropy in nats."""
    some = distribution[distribution > 0.0]
    return float(-(some * np.log(some)).sum())


class AcceptAll:
    """Implements `LossyAcceptor`: Lexical Unit Decoding's rule (arXiv 2405.15208), for chains.

    Accepts every drafted token unverified: its drafter drafts only tokens it is sure of.
    """

    def walk_lossy(
        self, tree: DraftTree, distribution_at: DistributionAt, rng: TokenRng, position: int
    ) -> AcceptedPath:
        path: list[int] = []
        node = ROOT
        while True:
            distribution = distribution_at(node)  # at every node, so that the host can follow
            children = tree.children(node)
            if not children:
                return AcceptedPath(
                    tuple(path), rng.token(distribution, position + len(path)), len(path)
                )
            node = children[0]
            path.append(node)
