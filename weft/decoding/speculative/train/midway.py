"""Rows that go on from within texts, entering the frozen target at any of its layers.

What `Teacher.onwards` is from the first layer on. Knows no drafter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import torch
from transformers import DynamicCache

from weft.core.errors import InputError
from weft.decoding.network.layers import find_layers
from weft.decoding.speculative.train.corpus import Batch
from weft.decoding.speculative.train.teacher import Past, Teacher

Entering = Callable[[int, torch.Tensor], torch.Tensor]
"""Given a layer and what would enter it, [texts, rows, width], what shall."""


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Places within texts, and `ahead` rows after each, for the positions that follow it.

    anchors  [texts, places]: positions of tokens
    drawn    [texts, places]: False where a text had no place
    """

    anchors: torch.Tensor
    drawn: torch.Tensor
    ahead: int

    @property
    def positions(self) -> torch.Tensor:
        """[texts, places * ahead]: where the rows stand."""
        steps = torch.arange(1, self.ahead + 1, device=self.anchors.device)
        return (self.anchors[..., None] + steps).flatten(1)

    def sees(self, time: int) -> torch.Tensor:
        """[texts, rows, time + rows]: a row sees the text up to its place, then its own chain."""
        rows = self.anchors.shape[1] * self.ahead
        device = self.anchors.device
        ends = self.anchors.repeat_interleave(self.ahead, dim=1)[..., None]
        text = torch.arange(time, device=device) <= ends
        of, at = np.divmod(np.arange(rows), self.ahead)
        own = (of == of[:, None]) & (at <= at[:, None])
        chains = torch.from_numpy(own).to(device).expand(len(text), -1, -1)
        return torch.cat([text, chains], dim=2)


def draw_places(batch: Batch, ahead: int, count: int, chance: np.random.Generator) -> Places:
    """`count` places of each text after which an answer goes on for `ahead` tokens at least."""
    fits = torch.zeros_like(batch.there)
    fits[:, : -ahead or None] = batch.there[:, ahead:]
    fits[:, :-1] &= batch.answered[:, 1:]
    fits[:, -1] = False
    anchors = torch.zeros(len(fits), count, dtype=torch.int64)
    drawn = torch.zeros(len(fits), count, dtype=torch.bool)
    for row, fitting in enumerate(fits.cpu().numpy()):
        there = np.flatnonzero(fitting)
        if len(there):
            anchors[row] = torch.from_numpy(chance.choice(there, count, replace=len(there) < count))
            drawn[row] = True
    return Places(anchors.to(fits.device), drawn.to(fits.device), ahead)


class Midway:
    """Goes through the layers of `teacher` one by one.

    Raises: `InputError` for a model whose layers, norm or positions are elsewhere than Llama's.
    """

    def __init__(self, teacher: Teacher) -> None:
        base = teacher.model.base_model
        layers = find_layers(teacher.model, teacher.layers)
        norm, rotary = getattr(base, "norm", None), getattr(base, "rotary_emb", None)
        if layers is None or norm is None or rotary is None:
            raise InputError(f"the layers of a {type(teacher.model).__name__} cannot be found")
        self._model = teacher.model
        self._layers = layers
        self._norm = norm
        self._rotary = rotary

    def read(
        self, batch: Batch, taps: Collection[int] = ()
    ) -> tuple[Past, dict[int, torch.Tensor]]:
        """Read texts, to go on from within them, and what enters the layers `taps`."""
        with torch.no_grad():
            output = self._model.base_model(
                input_ids=batch.tokens,
                use_cache=True,
                past_key_values=DynamicCache(config=self._model.config),
                output_hidden_states=bool(taps),
            )
        states = {tap: output.hidden_states[tap] for tap in taps}
        return Past(output.past_key_values, output.last_hidden_state), states

    def onwards(
        self,
        past: Past,
        states: torch.Tensor,
        places: Places,
        first: int = 0,
        entering: Entering = lambda _layer, states: states,
    ) -> torch.Tensor:
        """What the head reads for rows at `places`, [texts, rows, width], with gradients.

        states: [texts, rows, width], what would enter the layer `first`.
        """
        sees = places.sees(past.hidden.shape[1])[:, None]  # as the teacher's attention takes it
        positions = places.positions
        turned = self._rotary(states, position_ids=positions)
        for number in range(first, len(self._layers)):
            states = self._layers[number](
                entering(number, states),
                attention_mask=sees,
                position_ids=positions,
                position_embeddings=turned,
                past_key_values=past.cache,
                use_cache=True,
            )
        hidden: torch.Tensor = self._norm(states)
        return hidden


def at(states: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Of states [texts, time, width], those at `positions` [texts, rows]: [texts, rows, width]."""
    return states.gather(1, positions[..., None].expand(-1, -1, states.shape[-1]))
