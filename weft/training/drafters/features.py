"""Shared parts of EAGLE's and DFlash's trainings: a module on a frozen target's features.

The goal is the target's distribution over the draft vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

import torch

from weft.core.errors import InputError
from weft.decoding.speculative.drafters.trained.feature_layers import (
    DFlash,
    Eagle3Layer,
    EagleLayer,
)
from weft.training.corpus import Corpus
from weft.training.drafters.spec import TrainedWeights
from weft.training.teacher import Teacher

ModuleT = TypeVar("ModuleT", EagleLayer | Eagle3Layer, DFlash)


class FeatureObjective(Generic[ModuleT]):
    """Trains `module` to draft `tokens` [draft vocabulary] from the target's layers `taps`."""

    def __init__(
        self, teacher: Teacher, module: ModuleT, taps: tuple[int, ...], tokens: torch.Tensor
    ) -> None:
        self.module: ModuleT = module.to(teacher.device)
        self._teacher = teacher
        self._taps = taps
        self._tokens = tokens.to(teacher.device)
        self._drafted = torch.zeros(teacher.vocabulary_size, dtype=torch.bool).to(teacher.device)
        self._drafted[self._tokens] = True

    def weights(self, chains: torch.Tensor, form: int) -> TrainedWeights:
        """The weights in their `form`, with `chains`: the accuracy of chains of each length."""
        settings = {
            **self.module.shape.settings,
            "form": form,
            **{f"tap_{number}": tap for number, tap in enumerate(self._taps)},
            "held_out_chains": [round(float(share), 4) for share in chains],
        }
        tensors = {name: value.half() for name, value in self.module.state_dict().items()}
        return TrainedWeights(settings, {**tensors, "tokens": self._tokens.int()})


def form_of(settings: Mapping[str, int]) -> int:
    """1: weft's own form; 2: the published one, which `weft export-drafter` writes for vLLM.

    Raises: `InputError` for another.
    """
    if settings["form"] > 2:
        raise InputError(
            f"there is no form {settings['form']}", hint="1: weft's own; 2: the one of vLLM"
        )
    return settings["form"]


def soft_cross_entropy(goals: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """The cross entropy [..] of logits [.., vocabulary] to the distributions of `goals`."""
    return -(goals.softmax(-1) * logits.log_softmax(-1)).sum(-1)


def layer_sizes(teacher: Teacher, taps: tuple[int, ...], inner: int) -> dict[str, int]:
    """Sizes of a layer with attention like the target's."""
    config = teacher.model.config.get_text_config()
    rope = getattr(config, "rope_parameters", None) or {}
    heads: int = config.num_attention_heads
    return {
        "width": teacher.width,
        "taps": len(taps),
        "heads": heads,
        "kv_heads": getattr(config, "num_key_value_heads", None) or heads,
        "head_dim": getattr(config, "head_dim", None) or teacher.width // heads,
        "inner": inner,
        "theta": int(rope.get("rope_theta", 10_000)),
    }


def draft_vocabulary(teacher: Teacher, corpus: Corpus, settings: Mapping[str, int]) -> torch.Tensor:
    """The most frequent tokens of answers, as many as `settings` say."""
    size = min(settings["vocabulary"], teacher.vocabulary_size)
    return corpus.frequent(size, teacher.vocabulary_size)
