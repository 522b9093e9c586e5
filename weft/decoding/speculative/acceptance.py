"""What came of a draft: the nodes that were accepted, and the token after them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from weft.decoding.sampling import TokenRng
from weft.decoding.speculative.draft import ROOT, DraftTree

DistributionAt = Callable[[int], NDArray[np.float64]]
"""The target's law [vocabulary] of what follows a node, or `ROOT`."""


@dataclass(frozen=True, slots=True)
class AcceptedPath:
    """`path`: accepted nodes from the root down; `bonus`: the target's own token after the last.

    `tried` counts the candidates that were looked at, the accepted ones included.
    """

    path: tuple[int, ...]
    bonus: int
    tried: int = 0

    def tokens(self, tree: DraftTree) -> tuple[int, ...]:
        """What is committed: at least one token."""
        return (*(tree.tokens[node] for node in self.path), self.bonus)


class Acceptor(Protocol):
    """A rule that keeps the target's law, whatever the draft: a lossless one."""

    def walk(
        self, tree: DraftTree, law_at: DistributionAt, chance: TokenRng, position: int
    ) -> AcceptedPath:
        """Walk down `tree`. `position` is that of the first token that is decided."""


class ExactMatch:
    """Implements `Acceptor`. With a greedy law this is the greedy rule."""

    def walk(
        self, tree: DraftTree, law_at: DistributionAt, chance: TokenRng, position: int
    ) -> AcceptedPath:
        path: list[int] = []
        node, tried = ROOT, 0
        while True:
            token = chance.token(law_at(node), position + len(path))
            children = tree.children(node)
            found = next((child for child in children if tree.tokens[child] == token), None)
            if found is None:
                return AcceptedPath(tuple(path), token, tried + len(children))
            tried += children.index(found) + 1
            path.append(found)
            node = found


Array = NDArray[np.float64]


class RejectionSampling:
    """Implements `Acceptor`. Children that nobody drew are tested as certain: with their law."""

    def walk(
        self, tree: DraftTree, law_at: DistributionAt, chance: TokenRng, position: int
    ) -> AcceptedPath:
        path: list[int] = []
        node, tried = ROOT, 0
        while True:
            here = position + len(path)
            taken, left, count = _test(tree, node, law_at(node), chance, here)
            tried += count
            if taken is None:
                return AcceptedPath(tuple(path), chance.token(left, here), tried)
            path.append(taken)
            node = taken


def _test(
    tree: DraftTree, node: int, law: Array, chance: TokenRng, position: int
) -> tuple[int | None, Array, int]:
    """The accepted child of `node`, or None and what is left of `law`; how many were tested."""
    proposal = tree.proposals.get(node)
    drawn = None if proposal is None else proposal.law
    for sibling, child in enumerate(tree.children(node)):
        token = tree.tokens[child]
        certain = drawn is None or not drawn[token] > 0.0  # nobody can have drawn it from there
        q = 1.0 if certain or drawn is None else float(drawn[token])
        if chance.accepts(min(1.0, float(law[token]) / q), position, sibling):
            return child, law, sibling + 1
        if certain or drawn is None:
            law = _without(law, token)
        else:
            law = _positive(law - drawn, law)
            if proposal is not None and proposal.kind == "without_replacement":
                drawn = _without(drawn, token)
    return None, law, len(tree.children(node))


def _without(law: Array, token: int) -> Array:
    rest = law.copy()
    rest[token] = 0.0
    return _positive(rest, law)


def _positive(rest: Array, law: Array) -> Array:
    """`rest` without what is negative, as a law. Nothing left: rounding rejected the certain."""
    rest = np.maximum(rest, 0.0)
    total = rest.sum()
    return rest / total if total > 0.0 else law


@runtime_checkable
class LossyAcceptor(Protocol):
    """A rule that does not keep the target's law."""

    def walk_lossy(
        self, tree: DraftTree, law_at: DistributionAt, chance: TokenRng, position: int
    ) -> AcceptedPath:
        """As `Acceptor.walk`, of which it keeps the shape only."""


@dataclass(frozen=True, slots=True)
class TypicalAcceptance:
    """Implements `LossyAcceptor`. A token x is kept if p(x) > min(epsilon, delta * exp(-H(p))).

    H is the entropy of the target's law p, in nats. Of several such children the likeliest is
    followed. The token after them is drawn from the law, by the same chance as without a draft. A
    greedy law has no entropy and one token: then this is the greedy rule, and nothing is lost.

    Raises: `ValueError` for values out of 0..1.
    """

    epsilon: float = 0.09
    delta: float = 0.3

    def __post_init__(self) -> None:
        if not 0.0 <= self.epsilon <= 1.0 or not 0.0 <= self.delta <= 1.0:
            raise ValueError(f"no acceptance with {self}")

    def walk_lossy(
        self, tree: DraftTree, law_at: DistributionAt, chance: TokenRng, position: int
    ) -> AcceptedPath:
        path: list[int] = []
        node, tried = ROOT, 0
        while True:
            law = law_at(node)
            children = tree.children(node)
            tried += len(children)
            least = min(self.epsilon, self.delta * float(np.exp(-_entropy(law))))
            kept = [child for child in children if law[tree.tokens[child]] > least]
            if not kept:
                return AcceptedPath(tuple(path), chance.token(law, position + len(path)), tried)
            node = max(kept, key=lambda child: float(law[tree.tokens[child]]))
            path.append(node)


def _entropy(law: NDArray[np.float64]) -> float:
    """In nats."""
    some = law[law > 0.0]
    return float(-(some * np.log(some)).sum())


class AcceptAll:
    """Implements `LossyAcceptor` for chains; of siblings the first is taken."""

    def walk_lossy(
        self, tree: DraftTree, law_at: DistributionAt, chance: TokenRng, position: int
    ) -> AcceptedPath:
        path: list[int] = []
        node = ROOT
        while True:
            law = law_at(node)  # asked at every node on the way: the host follows along
            children = tree.children(node)
            if not children:
                return AcceptedPath(tuple(path), chance.token(law, position + len(path)), len(path))
            node = children[0]
            path.append(node)
