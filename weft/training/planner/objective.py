"""The loss of a planner: cross entropy of its answers, whose tokens alone reach the head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from weft.core.errors import InputError
from weft.decoding import tensor_file
from weft.decoding.adapters import adapter_file
from weft.decoding.speculative.trained_drafter import Fingerprint
from weft.training import attention
from weft.training.corpus import TokenBatch, batch_of
from weft.training.devices import computes_bfloat16
from weft.training.lora import LoraModel
from weft.training.planner.texts import PlannerText
from weft.training.teacher import Teacher

_ALPHA: Final = 2.0
"""Alpha of LoRA, as a multiple of the rank."""


@dataclass(frozen=True, slots=True)
class PlannerAccuracy:
    """Results on held-out texts: cross entropy in nats of an answer's token, and the share of
    answers that are written exactly, without a grammar, where the likeliest token is taken.
    """

    cross_entropy: float
    exact: float
    texts: int


class PlannerObjective:
    """A frozen chat model with low-rank updates of `rank` in its layers from `lowest` on, in
    bfloat16 where the device has it.
    """

    def __init__(self, path: Path, device: str, rank: int, lowest: int = 0) -> None:
        fast = computes_bfloat16(torch.device(device))
        self._teacher = Teacher.load(path, device, torch.bfloat16 if fast else torch.float32)
        self.target = Fingerprint.of(self._teacher)
        attention.use_for(self._teacher.model)
        self.module = LoraModel(self._teacher.model, rank, _ALPHA * rank, lowest)

    @property
    def model_type(self) -> str:
        """The base's type, as in its config."""
        kind: str = self._teacher.model.config.model_type
        return kind

    def loss(self, batch: TokenBatch, rng: np.random.Generator) -> torch.Tensor:
        """The mean over all answer tokens; nothing is random."""
        del rng
        logits, goals, _ = self._predicted(batch)
        return cross_entropy(logits, goals)

    def examine(
        self,
        texts: Sequence[PlannerText],
        at_once: int,
        stop: Callable[[], bool] = lambda: False,
    ) -> PlannerAccuracy | None:
        """Evaluate on `texts`; None if `stop` returned true."""
        total, right, tokens = 0.0, 0, 0
        order = sorted((each.text for each in texts), key=lambda text: len(text.tokens))
        with torch.no_grad():
            for first in range(0, len(order), at_once):
                if stop():
                    return None
                batch = batch_of(order[first : first + at_once], len(order[-1].tokens))
                logits, goals, rows = self._predicted(batch)
                total += float(cross_entropy(logits, goals, reduction="sum"))
                wrong = rows[logits.argmax(-1) != goals].unique()
                right += len(batch.tokens) - len(wrong)
                tokens += len(goals)
        return PlannerAccuracy(total / tokens, right / len(order), len(order))

    def resume_from(self, file: Path) -> None:
        """Begin with the updates of an adapter file. Raises: `InputError` where it does not fit."""
        try:
            tensors, _ = tensor_file.read(file)
        except tensor_file.TensorFileError as error:
            raise InputError(str(error)) from error
        self.module.load(tensors)

    def save(self, file: Path) -> None:
        """Write the adapter. Raises: `OSError`."""
        adapter_file.write(file, dict(self.module.tensors(torch.bfloat16)), self.module.alpha)

    def _predicted(self, batch: TokenBatch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Logits [answer tokens, vocabulary], the tokens, and the text of each.

        Texts are padded behind their end, which no token before it sees: no mask is needed.
        """
        batch = batch.to(self._teacher.device)
        output = self._teacher.model.base_model(input_ids=batch.tokens, use_cache=False)
        answered = batch.answered[:, 1:]
        hidden = output.last_hidden_state[:, :-1][answered]
        logits = self._teacher.head(hidden).float()
        return logits, batch.tokens[:, 1:][answered], answered.nonzero()[:, 0]
