"""One step of many rows as one flat sequence of tokens: no padding where the model multiplies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise

import torch
from torch.nn.functional import pad

from weft.decoding.network.rotary import Rotary
from weft.decoding.network.segments import KvSegment, SegmentAttention, plan_segments
from weft.decoding.network.visibility import BlockMask, Placement, TreeMask


@dataclass(frozen=True, slots=True, eq=False)
class HiddenStateWrite:
    """Hidden states that are made rather than computed, as they enter `layer` (0: the embeddings).

    `make` gets what enters the layer for all tokens of the span, [tokens, width], and returns what
    shall enter it for the tokens `rows`: [rows, width].
    """

    layer: int
    rows: tuple[int, ...]
    make: Callable[[torch.Tensor], torch.Tensor]


_LANES = 32
ColumnPadding = Callable[[int, bool], int]
"""The columns that attention computes where so many are seen, by a prompt or not; others hidden."""


def whole_lanes(columns: int, _prompt: bool) -> int:
    """On a CPU attention always has a mask and a multiple of so many columns: then a token's sums
    are added in the same order, and are the same bit for bit, whatever else is read in the pass.
    """
    return -(-columns // _LANES) * _LANES


def few_shapes(columns: int, prompt: bool) -> int:
    """A power of two, so that answers of any length need few graphs (`pass_graphs`)."""
    if prompt:
        return whole_lanes(columns, prompt)
    return 1 << max(columns - 1, 127).bit_length()


def padding_for(device: torch.device) -> ColumnPadding | None:
    """Without graphs. None: no column is computed that no token sees."""
    return whole_lanes if device.type == "cpu" else None


_BLOCK = 32
"""Kernels of a CPU may add the sums of a query in another order beside other queries, or over more
columns. So a token of a prompt always attends in a product of one size: that of the block of so
many tokens, counted from the beginning, over the columns up to its end.
"""


@dataclass(frozen=True, slots=True)
class Span:
    """New tokens of one row, for `columns` of its slot, in ascending order.

    A token stands at the position of its column, and sees its slot up to there; but for a span with
    a `placement`, which says both, and one with a `view`, which its columns end. `wants_logits`:
    of how many of the last tokens, or of `rows`, which are as many. `taps`: layers that tell what
    enters them; the number of layers stands for what leaves the last one, normalised; -n for what
    leaves the first n layers, as it is. The rows of `writes` are those of the span. `prompt`: it is
    part of a prompt, which a network may read in another precision than it writes answers in.
    """

    slot: int
    columns: Sequence[int]
    tokens: Sequence[int]
    wants_logits: int
    placement: Placement | TreeMask | BlockMask | None = None
    view: tuple[KvSegment, ...] = ()
    writes: tuple[HiddenStateWrite, ...] = ()
    taps: tuple[int, ...] = ()
    rows: tuple[int, ...] | None = None
    prompt: bool = False

    @property
    def end(self) -> int:
        """The column after the last token."""
        return self.columns[-1] + 1

    @property
    def reach(self) -> int:
        """The column after the last that is written or seen."""
        if isinstance(self.placement, BlockMask):
            return max(self.end, self.placement.end)
        return self.end

    @property
    def wanted(self) -> Sequence[int]:
        """The tokens whose logits are wanted, in the order of the logits."""
        if self.rows is not None:
            return self.rows
        return range(len(self.tokens) - self.wants_logits, len(self.tokens))

    @property
    def positions(self) -> Sequence[int]:
        """Where the tokens stand; those with a view are first placed by their columns."""
        if self.placement is None:
            return self.columns
        return [self.placement.position(column) for column in self.columns]

    @property
    def single(self) -> bool:
        """Whether it is one token that sees all that is in its slot."""
        if len(self.tokens) > 1 or self.view:
            return False
        return self.placement is None or self.placement.sees_all(self.columns[0])


@dataclass(frozen=True, slots=True)
class AttentionGroup:
    """Neighbouring slots that attend together: single tokens, spans that see alike, or one span.

    Tokens `first:last` of the step belong to slots `low:high`, equally many to each. `mask` is
    added to the scores: [slots or 1, 1, 1 or queries, columns]; None lets all see all columns.
    `columns` may reach beyond what any token sees. `block`: the tokens of one slot attend in blocks
    of so many, and `mask` has the blocks first; 0: all together. `lead`: how many rows of the
    block are empty before the first token.
    """

    first: int
    last: int
    low: int
    high: int
    columns: int
    mask: torch.Tensor | None
    block: int = 0
    lead: int = 0


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """What one forward pass reads. Tensors are [tokens] but for `wanted`, the rows with logits.

    `numbers` are all of them in a row, which reach the device in one copy: token ids, slots,
    columns, positions (none: those are the columns) and `wanted`, by their `sizes`.
    `spans` are in the order of the tokens, from `firsts` on. `segment_attention` is for the tokens
    of the spans with views, which come last. `written` by layer: the rows of a span, and what is
    written to them. Of the layers `taps`, what entered them is put into `hidden`: [tokens, width].
    """

    spans: tuple[Span, ...]
    firsts: tuple[int, ...]
    numbers: torch.Tensor
    sizes: tuple[int, ...]
    groups: tuple[AttentionGroup, ...]
    segment_attention: SegmentAttention | None
    taps: frozenset[int]
    written: dict[int, list[tuple[int, int, HiddenStateWrite]]]
    hidden: dict[int, torch.Tensor] = field(default_factory=dict)
    token_ids: torch.Tensor = field(init=False)
    positions: torch.Tensor = field(init=False)
    slots: torch.Tensor = field(init=False)
    columns: torch.Tensor = field(init=False)
    wanted: torch.Tensor = field(init=False)

    def __post_init__(self) -> None:
        token_ids, slots, columns, positions, wanted = self.numbers.split(self.sizes)
        parts = {
            "token_ids": token_ids,
            "slots": slots,
            "columns": columns,
            "positions": positions if self.sizes[3] else columns,
            "wanted": wanted,
        }
        for name, part in parts.items():
            object.__setattr__(self, name, part)


def pack(
    spans: Sequence[Span],
    *,
    queries_per_key: int,
    dtype: torch.dtype,
    device: torch.device,
    rotary: Rotary | None = None,
    padding: ColumnPadding | None = None,
    by_token: bool = False,
) -> PackedBatch:
    """Lay spans out for one pass: single tokens by slot, longer spans, then those with views.

    Views need `rotary`. `padding`: see `padding_for`; with it attention always has a mask, but for
    blocks that see all. `by_token`: drafts attend token by token, as the tokens of an answer do,
    where `attention.rows_depend` says that their bits need it.
    """
    cpu = device.type == "cpu"
    viewing = [span for span in spans if span.view]
    blocks = {span.slot for span in spans if cpu and _in_blocks(span, by_token)}
    singles = [span for span in spans if span.single and span.slot not in blocks]
    singles.sort(key=lambda span: span.slot)
    longer = [s for s in spans if not s.view and (s.slot in blocks or not s.single)]
    ordered = (*singles, *longer, *viewing)
    groups: list[AttentionGroup] = []
    first = 0
    for run in (*_neighbours(singles), *_alike(longer)):
        last = first + sum(len(span.tokens) for span in run)
        if run[0].slot in blocks:
            groups += _blocks(run[0], first, queries_per_key, dtype, padding or whole_lanes)
        else:
            groups.append(_together(run, first, last, queries_per_key, dtype, device, padding))
        first = last
    segment_attention = None
    if viewing:
        assert rotary is not None
        seen = [(span.columns, span.view) for span in viewing]
        segment_attention = plan_segments(seen, first, rotary, queries_per_key, dtype, device)
    firsts = tuple(accumulate((len(span.tokens) for span in ordered), initial=0))
    wanted = [
        [start + row for row in span.wanted] for span, start in zip(ordered, firsts, strict=False)
    ]
    numbers, sizes = _numbers(ordered, wanted, device)
    return PackedBatch(
        spans=ordered,
        firsts=firsts,
        numbers=numbers,
        sizes=sizes,
        groups=tuple(groups),
        segment_attention=segment_attention,
        taps=frozenset(layer for span in ordered for layer in span.taps),
        written=_written(ordered, firsts),
    )


def _written(
    spans: Sequence[Span], firsts: Sequence[int]
) -> dict[int, list[tuple[int, int, HiddenStateWrite]]]:
    written: dict[int, list[tuple[int, int, HiddenStateWrite]]] = {}
    for span, (first, last) in zip(spans, pairwise(firsts), strict=True):
        for write in span.writes:
            written.setdefault(write.layer, []).append((first, last, write))
    return written


def _neighbours(singles: Sequence[Span]) -> list[list[Span]]:
    """Cut spans sorted by slot into runs of consecutive slots."""
    cuts = [i for i, (a, b) in enumerate(pairwise(singles), 1) if b.slot != a.slot + 1]
    edges = [0, *cuts, len(singles)]
    return [list(singles[a:b]) for a, b in pairwise(edges) if a < b]


def _alike(spans: Sequence[Span]) -> list[list[Span]]:
    """Runs of spans in consecutive slots that one mask serves; others alone."""
    runs: list[list[Span]] = []
    for span in spans:
        if runs and _same_sight(runs[-1][-1], span):
            runs[-1].append(span)
        else:
            runs.append([span])
    return runs


def _same_sight(one: Span, next_: Span) -> bool:
    """Whether `next_` is in the next slot and its tokens see the same columns as those of `one`."""
    if not isinstance(one.placement, BlockMask) or not isinstance(next_.placement, BlockMask):
        return False
    if next_.slot != one.slot + 1 or len(one.tokens) != len(next_.tokens):
        return False
    if one.placement != next_.placement or one.reach != next_.reach:
        return False
    return list(one.columns) == list(next_.columns) or (_is_open(one) and _is_open(next_))


def _is_open(span: Span) -> bool:
    """Whether all tokens of a span see all columns of its slot up to `reach`."""
    sight = span.placement
    return isinstance(sight, BlockMask) and span.reach == sight.end and sight.is_open(span.columns)


def _in_blocks(span: Span, by_token: bool) -> bool:
    """Whether `_blocks` lays a span out: not single tokens, placed prompts and diffusion blocks."""
    if span.view:
        return False
    if span.prompt:
        return span.placement is None
    return by_token and len(span.tokens) > 1 and not isinstance(span.placement, BlockMask)


def _blocks(
    span: Span, first: int, queries_per_key: int, dtype: torch.dtype, padding: ColumnPadding
) -> Iterator[AttentionGroup]:
    """One group for each block of a prompt, or one with a block for each token of an answer."""
    slot, tokens, columns = span.slot, len(span.tokens), span.columns
    if not span.prompt:
        seen = pad(_seen(span, span.reach), (0, padding(span.reach, False) - span.reach))
        mask = _hiding(seen, dtype)[:, None, None]
        yield AttentionGroup(first, first + tokens, slot, slot + 1, seen.shape[1], mask, block=1)
        return
    for (number, _), rows in groupby(
        range(tokens), lambda row: (columns[row] // _BLOCK, columns[row] - row)
    ):
        inside, width = list(rows), (number + 1) * _BLOCK
        lead = columns[inside[0]] % _BLOCK
        causal = torch.ones(_BLOCK, width, dtype=torch.bool).tril(number * _BLOCK)
        mask = _hiding(causal.repeat(queries_per_key, 1), dtype)[None, None]
        low, high = first + inside[0], first + inside[-1] + 1
        yield AttentionGroup(low, high, slot, slot + 1, width, mask, _BLOCK, lead)


def _together(
    run: Sequence[Span],
    first: int,
    last: int,
    queries_per_key: int,
    dtype: torch.dtype,
    device: torch.device,
    padding: ColumnPadding | None,
) -> AttentionGroup:
    """The group of spans that attend in one product."""
    mask = _mask(run, queries_per_key, dtype, padding)
    columns = max(span.reach for span in run)
    if mask is not None:
        mask, columns = mask.to(device), mask.shape[-1]
    return AttentionGroup(first, last, run[0].slot, run[-1].slot + 1, columns, mask)


def _mask(
    run: Sequence[Span], queries_per_key: int, dtype: torch.dtype, padding: ColumnPadding | None
) -> torch.Tensor | None:
    """Hide from each token the columns that it does not see; None when there are none.

    Query heads that share a key head are laid along the query axis, head-major.
    """
    width = max(span.reach for span in run)
    if len(run) == 1 and run[0].single and padding is not None:
        return _row_mask(width, padding(width, run[0].prompt), dtype)
    if all(span.single for span in run):
        if padding is None and all(span.end == width for span in run):
            return None
        ends = torch.tensor([span.end for span in run])
        visible = (torch.arange(width) < ends[:, None])[:, None, None]
    elif _is_open(run[0]):
        return None
    else:
        visible = _seen(run[0], width).repeat(queries_per_key, 1)[None, None]
    filled = width if padding is None else padding(width, run[0].prompt)
    mask = torch.full((*visible.shape[:-1], filled), float("-inf"), dtype=dtype)
    mask[..., :width].masked_fill_(visible, 0.0)
    return mask


def _row_mask(width: int, filled: int, dtype: torch.dtype) -> torch.Tensor:
    """The mask of one token that sees `width` of `filled` columns: [1, 1, 1, filled]."""
    mask = torch.zeros(1, 1, 1, filled, dtype=dtype)
    if filled > width:
        mask[..., width:] = float("-inf")
    return mask


def _hiding(visible: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """0 where a column is seen, else minus infinity."""
    return torch.zeros(visible.shape, dtype=dtype).masked_fill_(~visible, float("-inf"))


def _seen(span: Span, width: int) -> torch.Tensor:
    """bool [tokens, width]"""
    if span.placement is not None:
        return span.placement.visible(span.columns, width)
    return torch.arange(width) <= torch.tensor(span.columns)[:, None]


def _numbers(
    spans: Sequence[Span], wanted: Sequence[Sequence[int]], device: torch.device
) -> tuple[torch.Tensor, tuple[int, ...]]:
    """The numbers of a `PackedBatch`, and their sizes."""
    ordinary = all(span.placement is None for span in spans)
    parts = (
        [token for span in spans for token in span.tokens],
        [span.slot for span in spans for _ in span.tokens],
        [column for span in spans for column in span.columns],
        [] if ordinary else [position for span in spans for position in span.positions],
        [row for rows in wanted for row in rows],
    )
    flat = torch.tensor([number for part in parts for number in part], dtype=torch.int64)
    return flat.to(device), tuple(map(len, parts))
