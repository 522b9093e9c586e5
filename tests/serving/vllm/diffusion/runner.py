"""vLLM's second model runner by hand, as far as a diffusion sampler sees it, on CPU tensors.

One step at a time: what is scheduled, a slow model, the sampler, and what the runner does with its
output: positions that are computed for good, tokens that are emitted, when a request stops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from weft.decoding.diffusion.adapter import ModelTraits
from weft.serving.vllm.diffusion.batch import CanvasRequests
from weft.serving.vllm.diffusion.decoder import ServedCanvas
from weft.serving.vllm.diffusion.sampler import CanvasSampler

# raw logits [slots, vocabulary] of a text whose slots before `computed` are held as they were read
Model = Callable[["Text", list[int]], torch.Tensor]


@dataclass
class Sampling:
    """As vLLM's own: what is not given is its default."""

    extra_args: Mapping[str, object] | None = None
    max_tokens: int | None = 64
    ignore_eos: bool = False
    top_p: float = 1.0
    top_k: int = 0
    eos_token_id: int | None = None
    all_stop_token_ids: set[int] = field(default_factory=set)


@dataclass
class Text:
    """A request as the scheduler knows it. `ids`: the prompt, then what was emitted."""

    name: str
    place: int
    ids: list[int]
    sampling: Sampling
    computed: int = 0
    emitted: list[int] = field(default_factory=list)
    passes: int = 0
    over: bool = False


class Runner:
    """Slots of a text at most: `longest`. Prompts are read in pieces of `piece` tokens."""

    def __init__(
        self,
        served: ServedCanvas,
        model: Model,
        longest: int = 256,
        places: int = 8,
        piece: int = 999,
    ) -> None:
        self.requests = CanvasRequests(served, longest)
        self.drafts = torch.zeros(places, served.width, dtype=torch.int64)
        self.sampler = CanvasSampler(self.requests, self.drafts, self._head, SimpleNamespace)
        self._model, self._longest, self._piece = model, longest, piece
        self._width = served.width
        self._hidden: dict[int, torch.Tensor] = {}
        self.texts: list[Text] = []

    def add(self, name: str, place: int, prompt: list[int], sampling: Sampling) -> Text:
        text = Text(name, place, list(prompt), sampling)
        self.requests.add(name, place, prompt, 0, sampling)
        self.sampler.add_request(place, sampling)
        self.sampler.apply_staged_writes()
        self.texts.append(text)
        return text

    def step(self) -> Any:
        """One pass over all texts that are not over."""
        batch = [text for text in self.texts if not text.over]
        reads = [self._reads(text) for text in batch]
        canvas = [text.computed >= len(text.ids) for text in batch]
        raw = [self._model(text, ids) for text, ids in zip(batch, reads, strict=True)]
        self._hidden = dict(enumerate(torch.cat(raw)))
        lengths = np.array([len(ids) for ids in reads])
        rows = np.where(canvas, lengths, 0)
        logits = [one for one, has in zip(raw, canvas, strict=True) if has]
        output = self.sampler(
            torch.cat(logits) if logits else torch.empty(0, raw[0].shape[1]),
            SimpleNamespace(
                num_reqs=len(batch),
                idx_mapping_np=np.array([text.place for text in batch]),
                cu_num_logits_np=np.concatenate([[0], rows.cumsum()]),
                query_start_loc_np=np.concatenate([[0], lengths.cumsum()]),
                num_computed_prefill_tokens_np=np.array([text.computed for text in batch]),
                num_scheduled_tokens=lengths,
                prefill_len_np=np.array([len(text.ids) for text in batch]),
            ),
        )
        for index, text in enumerate(batch):
            self._settle(text, len(reads[index]), output, index)
        return output

    def run(self, most: int = 500) -> None:
        while not all(text.over for text in self.texts):
            self.step()
            most -= 1
            assert most, "the texts never end"

    def _reads(self, text: Text) -> list[int]:
        if text.computed < len(text.ids):
            return text.ids[text.computed : text.computed + self._piece]
        room = min(self._width, self._longest - len(text.ids))
        return self.drafts[text.place, :room].tolist()

    def _head(self, token: int) -> torch.Tensor:
        return self._hidden[token]

    def _settle(self, text: Text, read: int, output: Any, index: int) -> None:
        """As `post_update` and the scheduler do."""
        count = int(output.num_sampled[index])
        final = output.sampled_token_ids[index, :count].tolist()
        text.computed += read - int(output.num_rejected[index])
        text.passes += 1
        for token in final:
            text.ids.append(token)
            text.emitted.append(token)
            stops = not text.sampling.ignore_eos and token in text.sampling.all_stop_token_ids
            full = len(text.emitted) >= (text.sampling.max_tokens or 1)
            if stops or full or len(text.ids) >= self._longest:
                text.over = True
                self.requests.remove(text.name)
                return


def table(vocabulary: int, seed: int, traits: ModelTraits, sharp: float = 3.0) -> Model:
    """Logits that depend on the slot, on what is decided near it, and on the name of the text."""

    def model(text: Text, ids: list[int]) -> torch.Tensor:
        rows = []
        whole = [*text.ids[: text.computed], *ids]
        for slot in range(text.computed, text.computed + len(ids)):
            rows.append(row(vocabulary, seed, traits, whole, slot, sharp))
        return torch.stack(rows)

    return model


def row(
    vocabulary: int, seed: int, traits: ModelTraits, ids: list[int], slot: int, sharp: float
) -> torch.Tensor:
    """The raw logits of one slot, from those before it and in its block alone."""
    end = (slot // traits.block + 1) * traits.block if traits.block else slot + 4
    decided = sum(1 for token in ids[slot - 3 : end] if token != traits.mask_id)
    generator = torch.Generator().manual_seed(seed * 10_007 + slot * 101 + decided)
    return torch.randn(vocabulary, generator=generator) * sharp
