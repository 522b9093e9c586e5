"""The next tokens of many rows, chosen where the logits are: only token ids reach the host.

As `SamplingParams.distribution` and `CounterRng.token` choose them, with the same number for each
position; sums are added in the device's order, so a token may differ where that number lies within
rounding of the boundary of two tokens. On a CPU those two decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch

from weft.decoding.sampling import SamplingParams

_WIDEST: Final = 1 << 25  # values sorted at once, so that many drafts do not fill the memory
_WITHOUT_DOUBLES: Final = frozenset({"cpu", "mps"})


@dataclass(frozen=True, slots=True)
class TokenDraws:
    """How the tokens after some rows are drawn: `numbers` in [0, 1), one for each row."""

    params: SamplingParams
    numbers: tuple[float, ...]


def samples_on(device: torch.device) -> bool:
    """Whether tokens are chosen there: on a GPU that computes in 64 bits."""
    return device.type not in _WITHOUT_DOUBLES


def choose_tokens(scores: torch.Tensor, draws: Sequence[TokenDraws]) -> list[list[int]]:
    """The tokens after the rows of `scores` [rows, vocabulary], for each of `draws`.

    One copy to the host, of as many ids as there are rows.
    """
    counts = [len(each.numbers) for each in draws]
    if all(each.params.greedy for each in draws):
        tokens = scores.argmax(-1)
    else:
        tokens = _sampled(scores, draws)
    found = tokens.tolist()
    ends = [sum(counts[: number + 1]) for number in range(len(counts))]
    return [found[end - count : end] for end, count in zip(ends, counts, strict=True)]


def _sampled(scores: torch.Tensor, draws: Sequence[TokenDraws]) -> torch.Tensor:
    rows = [_row(each.params, number) for each in draws for number in each.numbers]
    settings = torch.tensor(rows, dtype=torch.float64).to(scores.device)  # [rows, 5]
    cuts = any(each.params.top_k or each.params.top_p < 1.0 for each in draws)
    most = max(1, _WIDEST // scores.shape[1])
    parts = zip(scores.split(most), settings.split(most), strict=True)
    drawn = torch.cat([_drawn(part, *each.unbind(1), cuts=cuts) for part, each in parts])
    return torch.where(settings[:, 0] > 0.0, drawn, scores.argmax(-1))


def _row(params: SamplingParams, number: float) -> tuple[float, ...]:
    kept = float(params.top_k or torch.iinfo(torch.int32).max)
    return params.temperature, params.min_p, kept, params.top_p, number


def _drawn(
    scores: torch.Tensor,
    temperature: torch.Tensor,
    min_p: torch.Tensor,
    top_k: torch.Tensor,
    top_p: torch.Tensor,
    numbers: torch.Tensor,
    *,
    cuts: bool,
) -> torch.Tensor:
    """Inverse transform sampling, ids ascending. scores: [rows, vocabulary], the others: [rows]."""
    heat = torch.where(temperature > 0.0, temperature, 1.0)[:, None]
    exact = scores.double()
    weights = torch.exp((exact - exact.amax(-1, keepdim=True)) / heat)
    weights = torch.where(weights < min_p[:, None], 0.0, weights)  # the likeliest token weighs 1
    if cuts:
        weights = _cut(weights, top_k[:, None], top_p[:, None])
    running = weights.cumsum(-1)
    whole = running[:, -1:]
    drawn = (running <= numbers[:, None] * whole).sum(-1)
    # rounding may carry the draw past the last id that has any weight
    return torch.minimum(drawn, (running < whole).sum(-1))


def _cut(weights: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """Top-k, then top-p of what is left; of equals the lower ids stay."""
    heaviest, ids = weights.sort(dim=-1, descending=True, stable=True)
    ranks = torch.arange(weights.shape[1], device=weights.device)
    heaviest = torch.where(ranks < top_k, heaviest, 0.0)
    running = heaviest.cumsum(-1)
    needed = (running < top_p * running[:, -1:]).sum(-1, keepdim=True)
    kept = torch.where(ranks <= needed, heaviest, 0.0)
    return torch.zeros_like(weights).scatter(-1, ids, kept)
