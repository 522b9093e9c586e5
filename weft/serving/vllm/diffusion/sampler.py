"""The sampler that vLLM calls after each pass: feeds logits to the rows, and collects drafts.

Its shapes are vLLM's (`vllm.v1.worker.gpu.sample`). Statistics are computed on the device, where
the vocabulary stays unless a policy needs all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.stats import SampledTokens, Stats
from weft.decoding.sampling import CounterRng
from weft.serving.vllm.diffusion.batch import LOG, CanvasRequest, CanvasRequests


class DevicePredictions:
    """Implements `Predictions`.

    rows    [slots, vocabulary] raw logits of the slots from `base` on, of any float type
    before  [vocabulary] logits of the slot before, which a shifted model needs
    """

    def __init__(
        self, rows: torch.Tensor, base: int, traits: ModelTraits, before: torch.Tensor | None
    ) -> None:
        self._rows, self._base, self._traits, self._before = rows, base, traits, before

    def logits(self, slots: Slots) -> NDArray[np.float32]:
        """See `Predictions`."""
        found: NDArray[np.float32] = self._aligned(slots).cpu().numpy()
        return found

    def stats(self, canvas: Canvas, slots: Slots, rng: CounterRng) -> tuple[Stats, SampledTokens]:
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
        return stats.within(canvas), SampledTokens(ids[:, 0], likely[:, 0], rng)

    def _aligned(self, slots: Slots) -> torch.Tensor:
        """float32 [slots, vocabulary], with banned tokens at -inf."""
        index = torch.from_numpy(slots - self._base).to(self._rows.device)
        if self._traits.shifted:
            found = self._rows[(index - 1).clamp(min=0)].float()
            if self._before is not None:
                found[index == 0] = self._before.float()
        else:
            found = self._rows[index].float()
        found = found[:, : self._traits.vocabulary].clone()
        banned = torch.tensor(sorted(self._traits.banned), device=found.device, dtype=torch.int64)
        found[:, banned] = float("-inf")
        return found


def _lowest_of_largest(logits: torch.Tensor) -> torch.Tensor:
    """[rows]; `argmax` does not specify for devices which of equal values it takes."""
    ids = torch.arange(logits.shape[1], device=logits.device)
    largest = logits.amax(dim=1, keepdim=True)
    return ids.where(logits == largest, logits.shape[1]).amin(dim=1)


Head = Callable[[int], torch.Tensor]
"""The logits [vocabulary] after a token of the last pass."""


class CanvasSampler:
    """Replaces vLLM's sampler.

    drafts  [places, canvas] vLLM's table of the next input of each request; written to
    head    for shifted models: the last token of a prompt predicts the first slot
    output  makes vLLM's output of `sampled_token_ids`, `num_sampled` and `num_rejected`
    """

    compute_nans = False

    def __init__(
        self, requests: CanvasRequests, drafts: torch.Tensor, head: Head, output: Callable[..., Any]
    ) -> None:
        self._requests = requests
        self._drafts = drafts
        self._head = head
        self._output = output
        self._width = requests.served.width
        self._before: dict[int, torch.Tensor] = {}
        self.penalties_state = SimpleNamespace(output_bin_counts=None)

    def add_request(self, place: int, _sampling: object) -> None:
        """Reset the state of `place` for a new request."""
        self._before.pop(place, None)

    def apply_staged_writes(self) -> None:
        """Nothing is staged."""

    def __call__(self, logits: torch.Tensor, batch: Any, _draft_logits: object = None) -> Any:
        """vLLM's output: the new final tokens of each request.

        logits  [rows, vocabulary]: as many rows of each request as it read of its canvas; none
                while its prompt is read
        """
        count = batch.num_reqs
        places = batch.idx_mapping_np[:count]
        rows = np.diff(batch.cu_num_logits_np[: count + 1])
        read = np.diff(batch.query_start_loc_np[: count + 1])
        sampled = torch.zeros(count, self._width, dtype=torch.int32)
        emitted = np.zeros(count, dtype=np.int32)
        first = 0
        for index, (place, height) in enumerate(zip(places.tolist(), rows.tolist(), strict=True)):
            request = self._requests[place]
            if request is None:
                first += height
                continue
            if height:
                final = self._step(request, place, logits[first : first + height])
                sampled[index, : len(final)] = torch.tensor(final, dtype=torch.int32)
                emitted[index] = len(final)
                first += height
            elif _read_whole(batch, index):
                self._start(place, batch, index)
            self._write_draft(place, request)
        # of a canvas only final tokens stay cached; of a prompt, all do
        rejected = torch.from_numpy(np.where(rows > 0, read - emitted, 0).astype(np.int32))
        return self._output(
            sampled_token_ids=sampled.to(logits.device),
            num_sampled=torch.from_numpy(emitted).to(logits.device),
            num_rejected=rejected.to(logits.device),
        )

    def _step(self, request: CanvasRequest, place: int, logits: torch.Tensor) -> list[int]:
        row, traits = request.row, self._requests.served.traits
        if row.over:
            return _ended(request, [min(traits.end_ids, default=0)], traits.end_ids)
        predictions = DevicePredictions(logits, row.base, traits, self._before.get(place))
        try:
            final = row.step(len(logits), predictions)
        except Exception:  # noqa: BLE001 - the worker serves others, too
            LOG.exception("weft ends a request, which its decoder cannot go on with")
            return _ended(request, [min(traits.end_ids, default=0)], traits.end_ids)
        if final and traits.shifted:
            self._before[place] = logits[len(final) - 1].clone()
        return _ended(request, final, traits.end_ids)

    def _start(self, place: int, batch: Any, index: int) -> None:
        """The prompt is read: store the prediction of its last token."""
        if self._requests.served.traits.shifted:
            last = int(batch.query_start_loc_np[index + 1]) - 1
            self._before[place] = self._head(last)

    def _write_draft(self, place: int, request: CanvasRequest) -> None:
        ids = torch.tensor(request.row.drafts(self._width), dtype=self._drafts.dtype)
        self._drafts[place, : self._width] = ids.to(self._drafts.device)


def _read_whole(batch: Any, index: int) -> bool:
    done = batch.num_computed_prefill_tokens_np[index] + batch.num_scheduled_tokens[index]
    return bool(done >= batch.prefill_len_np[index])


def _ended(request: CanvasRequest, final: list[int], end_ids: frozenset[int]) -> list[int]:
    """`final`, with a terminator at the end of the text that vLLM recognises."""
    if not final or request.ending is None or final[-1] in request.stops:
        return final
    return [*final[:-1], request.ending] if final[-1] in end_ids else final
