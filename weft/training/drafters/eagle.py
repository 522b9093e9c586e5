"""Training of an EAGLE layer on the features of a frozen target (EAGLE-3, arXiv 2503.01840).

Unrolled like drafting: after the first step it reads its own states. The goal of every step is the
target's distribution over the draft vocabulary; there is no goal for states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from weft.core.errors import InputError
from weft.decoding.speculative.drafters.trained.eagle import EAGLE_FORMS
from weft.decoding.speculative.drafters.trained.feature_layers import (
    PLAIN_LAYER,
    Eagle3Layer,
    EagleLayer,
    EagleShape,
)
from weft.training.corpus import Corpus, TokenBatch
from weft.training.devices import mixed_precision
from weft.training.drafters.features import (
    FeatureObjective,
    draft_vocabulary,
    form_of,
    layer_sizes,
    soft_cross_entropy,
)
from weft.training.drafters.spec import DrafterSpec, TrainedWeights
from weft.training.frame import Schedule
from weft.training.teacher import Teacher, TeacherStates

_FALLING: Final = 0.8
"""Weight of a step relative to the one before."""
_MEASURED: Final = (4, 512)
"""Texts at once, tokens of each."""


class UnrolledAttention:
    """Attention of one row per position, step after step.

    A row sees the rows of the first step up to its own, then its own of the later steps, as in
    drafting from there. Tensors are [texts, heads, rows, head_dim].
    """

    def __init__(self, texts: int) -> None:
        self._texts = texts
        self._keys: list[torch.Tensor] = []
        self._values: list[torch.Tensor] = []

    def __call__(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Implements `EagleAttend` for the concatenated rows of all texts."""
        queries = query.unflatten(1, (self._texts, -1)).transpose(0, 1)
        repeats = len(query) // len(key)
        for of, into in ((key, self._keys), (value, self._values)):
            wide = of.unflatten(1, (self._texts, -1)).transpose(0, 1)
            into.append(wide.repeat_interleave(repeats, dim=1))
        if len(self._keys) == 1:
            attended = scaled_dot_product_attention(
                queries, self._keys[0], self._values[0], is_causal=True
            )
        else:
            attended = self._later(queries)
        return attended.transpose(0, 1).flatten(1, 2)

    def _later(self, queries: torch.Tensor) -> torch.Tensor:
        scale = queries.shape[-1] ** -0.5
        first = queries @ self._keys[0].transpose(-1, -2)
        rows = first.shape[-1]
        future = torch.ones(rows, rows, dtype=torch.bool, device=first.device).triu(1)
        own = [(queries * keys).sum(-1, keepdim=True) for keys in self._keys[1:]]
        scores = torch.cat([first.masked_fill(future, float("-inf")), *own], dim=-1) * scale
        weights = scores.softmax(-1)
        attended = weights[..., :rows] @ self._values[0]
        for step, values in enumerate(self._values[1:]):
            attended = attended + weights[..., rows + step, None] * values
        return attended


class EagleObjective(FeatureObjective[EagleLayer | Eagle3Layer]):
    """Implements `DrafterObjective`: trains on chains of `steps` tokens."""

    def __init__(
        self,
        teacher: Teacher,
        module: EagleLayer | Eagle3Layer,
        taps: tuple[int, ...],
        tokens: torch.Tensor,
        steps: int,
    ) -> None:
        super().__init__(teacher, module, taps, tokens)
        self._steps = steps
        self._states = TeacherStates(teacher, (*taps, teacher.layers))

    def loss(self, batch: TokenBatch, rng: np.random.Generator) -> torch.Tensor:
        del rng  # all of every text is trained on
        total = torch.zeros((), device=self._tokens.device)
        with mixed_precision(total.device):
            for step, (logits, goals, learnt) in enumerate(self._unroll(batch)):
                wrong = soft_cross_entropy(goals, logits)
                total = total + _FALLING**step * (wrong * learnt).sum() / learnt.sum().clamp(min=1)
        return total

    def made(self, held_out: Corpus) -> TrainedWeights:
        """The weights, with the accuracy of chains of each length."""
        right = torch.zeros(self._steps)
        count = 0
        for batch in held_out.in_batches(*_MEASURED):
            wanted = _shifted(batch.answered, 2)
            count += int(wanted.sum())
            with mixed_precision(self._tokens.device):
                for step, (logits, _, _) in enumerate(self._unroll(batch)):
                    hits = self._tokens[logits.argmax(-1)] == _shifted(batch.tokens, step + 2)
                    wanted &= hits & _shifted(batch.answered, step + 2)
                    right[step] += int(wanted.sum())
        form = 2 if isinstance(self.module, Eagle3Layer) else 1
        return self.weights(right / max(count, 1), form)

    def _unroll(
        self, batch: TokenBatch
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """For each step: logits and goals [texts, rows, draft vocabulary], and which are trained.

        Row i has the features up to position i and predicts token i + 2, then the next ones.
        """
        inputs = self._states.of(batch)
        features = torch.cat([inputs[tap] for tap in self._taps], dim=-1)
        final = inputs[self._teacher.layers]
        texts, time = batch.tokens.shape
        embedding = self._teacher.model.get_input_embeddings()
        attend = UnrolledAttention(texts)
        states = self.module.fuse(features[:, :-1].flatten(0, 1))
        places = torch.arange(time - 1, device=self._tokens.device).repeat(texts)
        for step in range(self._steps):
            tokens = embedding(_shifted(batch.tokens, step + 1).flatten())
            states = self.module(tokens, states, self.module.shape.rotation(places + step), attend)
            logits = self._teacher.head(self.module.ready(states), self._tokens)
            with torch.no_grad():
                goals = self._teacher.head(_shifted(final, step + 1), self._tokens)
            wanted = _shifted(batch.tokens, step + 2)
            learnt = _shifted(batch.answered, step + 2) & self._drafted[wanted]
            yield logits.unflatten(0, (texts, -1)), goals, learnt


def _shifted(of: torch.Tensor, by: int) -> torch.Tensor:
    """[texts, time - 1, ..] of [texts, time, ..]: row i is row i + `by`, or zero."""
    moved = torch.zeros_like(of[:, 1:])
    moved[:, : max(of.shape[1] - by, 0)] = of[:, by:]
    return moved


def _begin(
    teacher: Teacher, corpus: Corpus, settings: Mapping[str, int], seed: int
) -> EagleObjective:
    taps = usual_taps(teacher.layers)
    try:
        sizes = layer_sizes(teacher, taps, settings["inner"])
        shape = EagleShape(**sizes, variant=PLAIN_LAYER)
    except ValueError as error:
        raise InputError(f"no layer can be trained for this model: {error}") from error
    torch.manual_seed(seed)
    tokens = draft_vocabulary(teacher, corpus, settings)
    layer = EAGLE_FORMS[form_of(settings)](shape)
    return EagleObjective(teacher, layer, taps, tokens, settings["unrolled"])


def usual_taps(layers: int) -> tuple[int, ...]:
    """EAGLE-3's layers: near the start, the middle and the end; fewer of a small model."""
    return tuple(sorted({min(2, layers - 1), layers // 2, max(layers - 3, 1)}))


KIND = DrafterSpec(
    "eagle",
    "a decoder layer on the target's features, which drafts token by token",
    Schedule(steps=600, texts=4, longest=512, rate=1e-3),
    {"inner": 1280, "vocabulary": 4096, "unrolled": 3, "form": 1},
    _begin,
)
