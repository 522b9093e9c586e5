"""One step of many rows as one flat sequence of tokens: no padding where the model multiplies.

Knows tensors and positions; knows nothing of requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive new tokens of one row. `start` is the position of the first one."""

    slot: int
    start: int
    tokens: Sequence[int]
    wants_logits: bool

    @property
    def end(self) -> int:
        """The position after the last token."""
        return self.start + len(self.tokens)


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring slots that attend together: either single tokens of several, or a span of one.

    Tokens `first:last` of the step belong to slots `low:high`, equally many to each. `mask` is
    added to the scores: [slots or 1, 1, 1 or queries, columns]; None lets all see all columns.
    """

    first: int
    last: int
    low: int
    high: int
    columns: int
    mask: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class Step:
    """What one forward pass reads. Tensors are [tokens] but for `wanted`, [rows that want logits].

    `spans` are in the order of the tokens; `wanted` follows those that want logits.
    """

    spans: tuple[Span, ...]
    token_ids: torch.Tensor
    positions: torch.Tensor
    slots: torch.Tensor
    wanted: torch.Tensor
    groups: tuple[Group, ...]


def pack(
    spans: Sequence[Span], *, queries_per_key: int, dtype: torch.dtype, device: torch.device
) -> Step:
    """Lay spans out for one pass: single tokens by slot first, then the longer spans."""
    singles = sorted((s for s in spans if len(s.tokens) == 1), key=lambda span: span.slot)
    longer = [span for span in spans if len(span.tokens) > 1]
    ordered = (*singles, *longer)
    groups: list[Group] = []
    first = 0
    for run in (*_neighbours(singles), *([span] for span in longer)):
        last = first + sum(len(span.tokens) for span in run)
        mask = _mask(run, queries_per_key, dtype)
        if mask is not None:
            mask = mask.to(device)
        columns = max(span.end for span in run)
        groups.append(Group(first, last, run[0].slot, run[-1].slot + 1, columns, mask))
        first = last
    ends = torch.tensor([len(span.tokens) for span in ordered]).cumsum(0) - 1
    wants = torch.tensor([span.wants_logits for span in ordered])
    return Step(
        spans=ordered,
        token_ids=_flat([span.tokens for span in ordered], device),
        positions=_flat([range(span.start, span.end) for span in ordered], device),
        slots=_flat([[span.slot] * len(span.tokens) for span in ordered], device),
        wanted=ends[wants].to(device),
        groups=tuple(groups),
    )


def _neighbours(singles: Sequence[Span]) -> list[list[Span]]:
    """Cut spans sorted by slot into runs of consecutive slots."""
    cuts = [i for i, (a, b) in enumerate(pairwise(singles), 1) if b.slot != a.slot + 1]
    edges = [0, *cuts, len(singles)]
    return [list(singles[a:b]) for a, b in pairwise(edges) if a < b]


def _mask(run: Sequence[Span], queries_per_key: int, dtype: torch.dtype) -> torch.Tensor | None:
    """Hide from each token the columns after its own position; None when there are none.

    Query heads that share a key head are laid along the query axis, head-major.
    """
    columns = torch.arange(max(span.end for span in run))
    if len(run) > 1:
        if all(span.end == len(columns) for span in run):
            return None
        ends = torch.tensor([span.end for span in run])
        visible = (columns < ends[:, None])[:, None, None]
    elif len(run[0].tokens) == 1:
        return None
    else:
        positions = torch.arange(run[0].start, run[0].end)
        visible = (columns <= positions[:, None]).repeat(queries_per_key, 1)[None, None]
    return torch.zeros(visible.shape, dtype=dtype).masked_fill_(~visible, float("-inf"))


def _flat(parts: Sequence[Sequence[int]], device: torch.device) -> torch.Tensor:
    return torch.tensor([token for part in parts for token in part], device=device)
