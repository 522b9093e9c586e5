"""How tokens with views see the cache: queries turned for each stretch, and what is merged.

Keys never move. A query that stands at p in its view and sees a stretch shifted by s against its
columns, scores as one at p - s does with keys at the positions of their columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch

from weft.decoding.concurrent.merge import attend, merge
from weft.decoding.concurrent.rotary import Rotary, Turns, turn
from weft.decoding.concurrent.view import Stretch


@dataclass(frozen=True, slots=True)
class Glance:
    """One query on one stretch: a token of the step, its turn, and the columns `first:last`."""

    token: int
    by: int
    slot: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Look:
    """Glances `first:last` on columns `low:high` of one slot.

    mask: [1, 1, queries, columns], added to the scores; None: all are seen.
    """

    slot: int
    low: int
    high: int
    first: int
    last: int
    mask: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class Looking:
    """`tokens` and `turns` are those of the glances, [glances], in the order of the looks.

    parts: [tokens of the step with views, most stretches], the glances of each; missing: the same
    shape, -inf where there is none; None where all have equally many.
    """

    looks: tuple[Look, ...]
    tokens: torch.Tensor
    turns: Turns
    parts: torch.Tensor
    missing: torch.Tensor | None

    def attend(
        self, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scaling: float | None
    ) -> torch.Tensor:
        """query: [heads, tokens of the step, head_dim], turned to the positions of their columns;
        keys, values: [slots, kv_heads, columns, head_dim]. Returns [tokens with views, heads,
        head_dim].
        """
        kv_heads, width = keys.shape[1], keys.shape[3]
        heads = len(query)
        scale = width**-0.5 if scaling is None else scaling
        turned = turn(query[:, self.tokens], self.turns)
        outputs, sums = [], []
        for one in self.looks:
            shape = (1, kv_heads, heads // kv_heads * (one.last - one.first), width)
            columns = slice(one.low, one.high)
            found, lse = attend(
                turned[:, one.first : one.last].reshape(shape),
                keys[one.slot, None, :, columns],
                values[one.slot, None, :, columns],
                one.mask,
                scale,
            )
            outputs.append(found.reshape(heads, -1, width))
            sums.append(lse.reshape(heads, -1))
        lse = torch.cat(sums, dim=1)[:, self.parts]  # [heads, tokens, stretches]
        lse = lse if self.missing is None else lse + self.missing
        return merge(torch.cat(outputs, dim=1)[:, self.parts], lse).transpose(0, 1)


def look(
    spans: Sequence[tuple[Sequence[int], tuple[Stretch, ...]]],
    first_token: int,
    rotary: Rotary,
    queries_per_key: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Looking:
    """For spans, each the columns of new tokens and a view that they end.

    Their tokens follow one another in the step from `first_token`.
    """
    by_token: list[list[Glance]] = []
    for columns, view in spans:
        for column in columns:
            by_token.append(_glances(first_token + len(by_token), column, view))
    ordered = sorted(chain.from_iterable(by_token), key=lambda g: (g.slot, g.first, g.last))
    number = {glance: index for index, glance in enumerate(ordered)}
    most = max(map(len, by_token))
    parts = [[number[g] for g in glances] + [0] * (most - len(glances)) for glances in by_token]
    sizes = torch.tensor([len(glances) for glances in by_token])
    ragged = torch.arange(most) >= sizes[:, None]
    missing = torch.zeros(ragged.shape).masked_fill_(ragged, float("-inf")).to(device)
    turns = rotary.turns(torch.tensor([glance.by for glance in ordered]))
    return Looking(
        looks=tuple(_looks(ordered, queries_per_key, dtype, device)),
        tokens=torch.tensor([glance.token for glance in ordered], device=device),
        turns=Turns(turns.cos.to(device), turns.sin.to(device)),
        parts=torch.tensor(parts, device=device),
        missing=missing if ragged.any() else None,
    )


def _glances(token: int, column: int, view: tuple[Stretch, ...]) -> list[Glance]:
    own = view[-1]
    return [
        Glance(token, own.shift - seen.shift, seen.slot, seen.first, seen.end) for seen in view[:-1]
    ] + [Glance(token, 0, own.slot, own.first, column + 1)]


def _looks(
    ordered: Sequence[Glance], queries_per_key: int, dtype: torch.dtype, device: torch.device
) -> list[Look]:
    """Glances on overlapping columns of one slot are computed together."""
    looks = []
    first = 0
    while first < len(ordered):
        last, high = first, 0
        while last < len(ordered) and ordered[last].slot == ordered[first].slot:
            if last > first and ordered[last].first >= high:
                break
            high = max(high, ordered[last].last)
            last += 1
        mask = _mask(ordered[first:last], high, queries_per_key, dtype)
        mask = mask if mask is None else mask.to(device)
        looks.append(Look(ordered[first].slot, ordered[first].first, high, first, last, mask))
        first = last
    return looks


def _mask(
    glances: Sequence[Glance], high: int, queries_per_key: int, dtype: torch.dtype
) -> torch.Tensor | None:
    low = glances[0].first
    if all((g.first, g.last) == (low, high) for g in glances):
        return None
    columns = torch.arange(low, high)
    firsts = torch.tensor([glance.first for glance in glances])[:, None]
    lasts = torch.tensor([glance.last for glance in glances])[:, None]
    visible = ((columns >= firsts) & (columns < lasts)).repeat(queries_per_key, 1)[None, None]
    return torch.zeros(visible.shape, dtype=dtype).masked_fill_(~visible, float("-inf"))
