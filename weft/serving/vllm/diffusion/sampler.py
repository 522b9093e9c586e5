"""The sampler that vLLM calls after each pass: rows take their logits and say what is read next.

Its shapes are vLLM's (`vllm.v1.worker.gpu.sample`). Statistics are computed on the device; the
vocabulary stays there unless a policy wants all of it.
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
    before  [vocabulary] those of the slot before, which a shifted model needs
    """

    def __init__(
        self, rows: torch.Tensor, base: int, traits: ModelTraits, before: torch.Tensor | None
    ) -> None:
        self._rows, self._base, self._traits, self._before = rows, base, traits, before

    def logits(self, slots: Slots) -> NDArray[np.float32]:
        """See `Predictions`."""
        found: NDArray[np.float32] = self._aligned(slots).cpu().numpy()
        return found

    def seen(self, canvas: Canvas, slots: Slots, chance: CounterRng) -> tuple[Stats, SampledTokens]:
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
        return stats.within(canvas), SampledTokens(ids[:, 0], likely[:, 0], chance)

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


Head = Callable[[int], torch.Tensor]
"""The logits [vocabulary] of what left the model for a token of the last pass."""


class CanvasSampler:
    """Takes the place of vLLM's sampler.

    drafts  [places, canvas] vLLM's table of what each request reads next; written to
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
        """A new request has this place."""
        self._before.pop(place, None)

    def apply_staged_writes(self) -> None:
        """None are staged."""

    def __call__(self, logits: torch.Tensor, batch: Any, _draft_logits: object = None) -> Any:
        """vLLM's output: of each request, the tokens that are final now.

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
        for index, (place, given) in enumerate(zip(places.tolist(), rows.tolist(), strict=True)):
            request = self._requests[place]
            if request is None:
                first += given
                continue
            if given:
                final = self._stepped(request, place, logits[first : first + given])
                sampled[index, : len(final)] = torch.tensor(final, dtype=torch.int32)
                emitted[index] = len(final)
                first += given
            elif _read_whole(batch, index):
                self._start(place, batch, index)
            self._note(place, request)
        # what was read of a canvas is not kept, but for what is final; of a prompt, all is
        rejected = torch.from_numpy(np.where(rows > 0, read - emitted, 0).astype(np.int32))
        return self._output(
            sampled_token_ids=sampled.to(logits.device),
            num_sampled=torch.from_numpy(emitted).to(logits.device),
            num_rejected=rejected.to(logits.device),
        )

    def _stepped(self, request: CanvasRequest, place: int, logits: torch.Tensor) -> list[int]:
        row, traits = request.row, self._requests.served.traits
        if row.over:
            return _ended(request, [min(traits.end_ids, default=0)], traits.end_ids)
        said = DevicePredictions(logits, row.base, traits, self._before.get(place))
        try:
            final = row.step(len(logits), said)
        except Exception:  # noqa: BLE001 - the worker serves others, too
            LOG.exception("weft ends a request, which its decoder cannot go on with")
            return _ended(request, [min(traits.end_ids, default=0)], traits.end_ids)
        if final and traits.shifted:
            self._before[place] = logits[len(final) - 1].clone()
        return _ended(request, final, traits.end_ids)

    def _start(self, place: int, batch: Any, index: int) -> None:
        """The prompt is read: remember what its last token predicts."""
        if self._requests.served.traits.shifted:
            last = int(batch.query_start_loc_np[index + 1]) - 1
            self._before[place] = self._head(last)

    def _note(self, place: int, request: CanvasRequest) -> None:
        ids = torch.tensor(request.row.drafts(self._width), dtype=self._drafts.dtype)
        self._drafts[place, : self._width] = ids.to(self._drafts.device)


def _read_whole(batch: Any, index: int) -> bool:
    done = batch.num_computed_prefill_tokens_np[index] + batch.num_scheduled_tokens[index]
    return bool(done >= batch.prefill_len_np[index])


def _ended(request: CanvasRequest, final: list[int], end_ids: frozenset[int]) -> list[int]:
    """With a terminator that vLLM knows as one, where the text ends."""
    if not final or request.ending is None or final[-1] in request.stops:
        return final
    return [*final[:-1], request.ending] if final[-1] in end_ids else final
