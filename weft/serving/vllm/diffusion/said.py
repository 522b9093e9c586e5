"""What the model said of one canvas, where it was computed: statistics there, numbers to the host.

Knows no vLLM. The vocabulary stays on the device unless a policy wants all of it.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.stats import Drawn, Stats
from weft.decoding.speculative.chance import Keyed


class Said:
    """Implements `Predictions`.

    rows    [slots, vocabulary] raw logits of the slots from `base` on, of any float type
    before  [vocabulary] those of the slot before, which a shifted model needs
    """

    def __init__(
        self, rows: torch.Tensor, base: int, traits: Traits, before: torch.Tensor | None
    ) -> None:
        self._rows, self._base, self._traits, self._before = rows, base, traits, before

    def logits(self, slots: Slots) -> NDArray[np.float32]:
        """See `Predictions`."""
        found: NDArray[np.float32] = self._aligned(slots).cpu().numpy()
        return found

    def seen(self, canvas: Canvas, slots: Slots, chance: Keyed) -> tuple[Stats, Drawn]:
        """See `Predictions`."""
        logits = self._aligned(slots)
        logp = logits.log_softmax(dim=-1)
        p = logp.exp()
        first = _lowest_of_largest(logits)
        rest = logits.scatter(1, first[:, None], float("-inf"))
        top = torch.stack([first, _lowest_of_largest(rest)], dim=1)
        entropy = -(p * logp.where(p > 0, 0.0)).sum(dim=-1, dtype=torch.float64)
        ends = torch.tensor(sorted(self._traits.end_ids), device=p.device, dtype=torch.int64)
        p_end = p[:, ends].sum(dim=-1, dtype=torch.float64)
        ids = top.cpu().numpy()
        likely = p.gather(1, top).double().cpu().numpy()
        stats = Stats(
            slots,
            canvas.undecided[slots],
            ids,
            likely,
            np.maximum(entropy.cpu().numpy(), 0.0),
            p_end.cpu().numpy(),
            np.full(len(slots), np.nan),
        )
        return stats.within(canvas), Drawn(ids[:, 0], likely[:, 0], chance)

    def _aligned(self, slots: Slots) -> torch.Tensor:
        """float32 [slots, vocabulary], without what is never written."""
        at = torch.from_numpy(slots - self._base).to(self._rows.device)
        if self._traits.shifted:
            found = self._rows[(at - 1).clamp(min=0)].float()
            if self._before is not None:
                found[at == 0] = self._before.float()
        else:
            found = self._rows[at].float()
        found = found[:, : self._traits.vocabulary].clone()
        banned = torch.tensor(sorted(self._traits.banned), device=found.device, dtype=torch.int64)
        found[:, banned] = float("-inf")
        return found


def _lowest_of_largest(logits: torch.Tensor) -> torch.Tensor:
    """[rows]; which of equals `argmax` takes is not told for devices."""
    ids = torch.arange(logits.shape[1], device=logits.device)
    largest = logits.amax(dim=1, keepdim=True)
    return ids.where(logits == largest, logits.shape[1]).amin(dim=1)
