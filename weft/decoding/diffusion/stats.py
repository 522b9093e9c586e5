"""Statistics for policies: the prediction of each slot in a few numbers, and sampled tokens.

Logits before temperature, top-k and top-p, because a cut looks like certainty.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.canvas import Bits, Canvas, Slots
from weft.decoding.sampling import CounterRng, SamplingParams, TokenRng

_VISIT: Final = 1 << 32
SLACK: Final = 1e-6
"""Equal probabilities from float32 logits may differ by this much: one half reads 0.49999997 on
one machine and 0.5 on another."""
OF_POLICIES: Final = 1 << 63
"""The first random position that no slot uses."""


@dataclass(frozen=True, slots=True, eq=False)
class Stats:
    """Statistics of slots, ascending:

    open         undecided, and in the window
    top_ids      [slots, 2] the two likeliest tokens, the lower id of equals first
    top_p        [slots, 2] their probabilities
    entropy      nats
    p_end        of all tokens that end a text
    kl           of this prediction from the one a pass before, nats; nan where there was none
    logp         [slots, vocabulary], or None where no policy needs it
    shadow       slots and [slots, vocabulary] logits of `Query.shadows`, or None
    """

    slots: Slots
    open: Bits
    top_ids: NDArray[np.int64]
    top_p: NDArray[np.float64]
    entropy: NDArray[np.float64]
    p_end: NDArray[np.float64]
    kl: NDArray[np.float64]
    logp: NDArray[np.float32] | None = None
    shadow: tuple[Slots, NDArray[np.float32]] | None = None

    @property
    def confidence(self) -> NDArray[np.float64]:
        """The probability of the likeliest token, [slots]."""
        return self.top_p[:, 0]

    @property
    def margin(self) -> NDArray[np.float64]:
        """How much likelier it is than the next, [slots]."""
        return self.top_p[:, 0] - self.top_p[:, 1]

    def within(self, canvas: Canvas) -> Stats:
        """The same predictions after a change of the window or of decided slots."""
        return replace(self, open=_open(canvas, self.slots))

    def rows(self, slots: Slots) -> NDArray[np.intp]:
        """The rows of `slots`, all of which are present."""
        return np.searchsorted(self.slots, slots)


def reaches(values: NDArray[np.float64], threshold: float) -> Bits:
    """Where `values` are at least the threshold, within rounding."""
    reached: Bits = values >= threshold - SLACK
    return reached


def log_probabilities(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """[..., vocabulary], in float32, normalised around the maximum."""
    above = logits - logits.max(axis=-1, keepdims=True)
    logs: NDArray[np.float32] = above - np.log(np.exp(above).sum(axis=-1, keepdims=True))
    return logs


def compute_stats(
    canvas: Canvas,
    slots: Slots,
    logits: NDArray[np.float32],
    end_ids: frozenset[int],
    *,
    before: Stats | None = None,
    keep: bool = False,
    shadow: tuple[Slots, NDArray[np.float32]] | None = None,
) -> Stats:
    """Statistics of `logits` [slots, vocabulary]. `before`: an earlier pass; `keep` its `logp`."""
    logp = log_probabilities(logits)
    p = np.exp(logp)
    top_ids = _two_likeliest(logits)
    entropy = -np.einsum("sv,sv->s", p, np.where(p > 0, logp, 0.0), dtype=np.float64)
    return Stats(
        slots,
        _open(canvas, slots),
        top_ids,
        np.take_along_axis(p, top_ids, axis=1).astype(np.float64),
        np.maximum(entropy, 0.0),
        p[:, sorted(end_ids)].sum(axis=1, dtype=np.float64),
        _kl(slots, p, logp, before),
        logp if keep else None,
        shadow,
    )


def _open(canvas: Canvas, slots: Slots) -> Bits:
    inside = (slots >= canvas.window.start) & (slots < canvas.window.stop)
    return canvas.undecided[slots] & inside


def _two_likeliest(logits: NDArray[np.float32]) -> NDArray[np.int64]:
    """[slots, 2]; argmax takes the lowest id of equals."""
    first = logits.argmax(axis=1) if len(logits) else np.empty(0, dtype=np.int64)
    rest = logits.copy()
    np.put_along_axis(rest, first[:, None], -np.inf, axis=1)
    second = rest.argmax(axis=1) if len(logits) else first
    return np.stack([first, second], axis=1).astype(np.int64)


def _kl(
    slots: Slots, p: NDArray[np.float32], logp: NDArray[np.float32], before: Stats | None
) -> NDArray[np.float64]:
    """The divergence of the new prediction from the old one."""
    kl = np.full(len(slots), np.nan)
    if before is None or before.logp is None:
        return kl
    both, now, then = np.intersect1d(slots, before.slots, return_indices=True)
    if len(both):
        # a token that has become impossible adds nothing
        far = np.where(p[now] > 0, logp[now] - np.maximum(before.logp[then], -1e4), 0.0)
        kl[now] = np.maximum(np.einsum("sv,sv->s", p[now], far, dtype=np.float64), 0.0)
    return kl


@dataclass(frozen=True, slots=True, eq=False)
class SampledTokens:
    """A token for each slot of `Stats`, and its probability before temperature and cuts.

    `rng` is the row's own; policies use positions from `OF_POLICIES` on, which no slot has.
    """

    ids: NDArray[np.int64]
    p: NDArray[np.float64]
    rng: TokenRng = field(default_factory=lambda: CounterRng(0))


@dataclass(frozen=True, slots=True, eq=False)
class ProbeAnswer:
    """The answer to one probe query: statistics of its slots on its own canvas."""

    stats: Stats
    drawn: SampledTokens


def sample_tokens(
    canvas: Canvas,
    slots: Slots,
    logits: NDArray[np.float32],
    sampling: SamplingParams,
    rng: TokenRng,
    *,
    fresh: bool = False,
) -> SampledTokens:
    """The likeliest tokens, or samples with one random number for each slot of the answer.

    A slot that is not written keeps its number, so that the order of writing does not change the
    samples from equal predictions; a reopened slot gets another. `fresh`: another in every step.
    """
    if sampling.greedy:
        ids = logits.argmax(axis=1) if len(logits) else np.empty(0, dtype=np.int64)
    else:
        visits = canvas.visits[slots] + (canvas.step if fresh else 0)
        at = (slots - canvas.first) + visits * _VISIT
        ids = np.array(
            [
                rng.token(sampling.distribution(row), int(n))
                for row, n in zip(logits, at, strict=True)
            ],
            dtype=np.int64,
        )
    logp = log_probabilities(logits)
    p = np.exp(np.take_along_axis(logp, ids[:, None], axis=1)[:, 0].astype(np.float64))
    return SampledTokens(ids.astype(np.int64), p, rng)
