"""The frozen target as a teacher: batches of texts, with gradients to rows that follow in them.

On transformers' own model and attention; `Network` has no gradients. `LayerwiseTeacher` continues
from within texts at any layer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM, DynamicCache

from weft.core.errors import InputError
from weft.decoding.network.layers import LOADING, find_layers, no_progress_bars
from weft.training.corpus import TokenBatch

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True, eq=False)
class TeacherCache:
    """Keys and values of a batch, for rows that follow somewhere in it; for one use.

    `hidden` [texts, time, width] is the input of the head.
    """

    cache: DynamicCache
    hidden: torch.Tensor


class Teacher:
    """A frozen causal language model. Implements `FingerprintedModel`."""

    def __init__(self, model: PreTrainedModel) -> None:
        config = model.config.get_text_config()
        self._model = model.eval().requires_grad_(requires_grad=False)
        self.layers: int = config.num_hidden_layers
        self.width: int = config.hidden_size
        self.vocabulary_size: int = config.vocab_size

    @classmethod
    def load(cls, path: Path, device: str = "cpu", dtype: torch.dtype = torch.float32) -> Teacher:
        """Load a model folder. Raises: `InputError` for a broken one."""
        try:
            with LOADING, no_progress_bars():
                model = AutoModelForCausalLM.from_pretrained(
                    path,
                    dtype=dtype,
                    attn_implementation="sdpa",
                    use_safetensors=True,
                    local_files_only=True,
                ).to(device)
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(f"{path} is no model to learn from: {error}") from error
        return cls(model)

    @property
    def model(self) -> PreTrainedModel:
        """The model, for objectives that use its layers."""
        return self._model

    @property
    def device(self) -> torch.device:
        """The device, on which trained parameters and batches must be, too."""
        device: torch.device = self._model.device
        return device

    def embed(self, tokens: Sequence[int]) -> torch.Tensor:
        """[tokens, width]: embeddings of tokens."""
        ids = torch.tensor(tokens, dtype=torch.int64, device=self._model.device)
        embedded: torch.Tensor = self._model.get_input_embeddings()(ids)
        return embedded

    def head(self, hidden: torch.Tensor, ids: torch.Tensor | None = None) -> torch.Tensor:
        """Logits [..., vocabulary], or [..., ids] of some tokens, of states [..., width]."""
        head = self._model.get_output_embeddings()
        if ids is None:
            logits: torch.Tensor = head(hidden)
            return logits
        bias = None if head.bias is None else head.bias[ids]
        return torch.nn.functional.linear(hidden, head.weight[ids], bias)

    def states(self, batch: TokenBatch, taps: Collection[int]) -> dict[int, torch.Tensor]:
        """Inputs of the layers `taps`, [texts, time, width] each; `layers`: of the head."""
        with torch.no_grad():
            output = self._model.base_model(
                input_ids=batch.tokens, use_cache=False, output_hidden_states=True
            )
        return {tap: output.hidden_states[tap] for tap in taps}

    def read(self, batch: TokenBatch) -> TeacherCache:
        """Read texts, to continue from within them."""
        with torch.no_grad():
            cache = DynamicCache(config=self._model.config)
            output = self._model.base_model(
                input_ids=batch.tokens, use_cache=True, past_key_values=cache
            )
        return TeacherCache(cache, output.last_hidden_state)

    def onwards(
        self,
        past: TeacherCache,
        embedded: torch.Tensor,
        positions: torch.Tensor,
        sees: torch.Tensor,
    ) -> torch.Tensor:
        """The input of the head for rows of the same texts, [texts, rows, width], with gradients.

        embedded   [texts, rows, width]: inputs of the first layer
        positions  [texts, rows]
        sees       [texts, rows, time + rows] bool: visible tokens of the text, then visible rows
        """
        mask = torch.zeros_like(sees, dtype=embedded.dtype)
        mask.masked_fill_(~sees, torch.finfo(embedded.dtype).min)
        output = self._model.base_model(
            inputs_embeds=embedded,
            position_ids=positions,
            attention_mask=mask[:, None],
            past_key_values=past.cache,
            use_cache=True,
        )
        hidden: torch.Tensor = output.last_hidden_state
        return hidden


Entering = Callable[[int, torch.Tensor], torch.Tensor]
"""Returns the actual input of a layer for a computed one, [texts, rows, width]."""


@dataclass(frozen=True, slots=True, eq=False)
class AnchorRows:
    """Positions in texts, and `ahead` rows after each, with the positions that follow it.

    anchors  [texts, places]: positions of tokens
    drawn    [texts, places]: False where a text had no place
    """

    anchors: torch.Tensor
    drawn: torch.Tensor
    ahead: int

    @property
    def positions(self) -> torch.Tensor:
        """[texts, places * ahead]: positions of the rows."""
        steps = torch.arange(1, self.ahead + 1, device=self.anchors.device)
        return (self.anchors[..., None] + steps).flatten(1)

    def sees(self, time: int) -> torch.Tensor:
        """[texts, rows, time + rows]: a row sees the text up to its anchor, then its own chain."""
        rows = self.anchors.shape[1] * self.ahead
        device = self.anchors.device
        ends = self.anchors.repeat_interleave(self.ahead, dim=1)[..., None]
        text = torch.arange(time, device=device) <= ends
        of, at = np.divmod(np.arange(rows), self.ahead)
        own = (of == of[:, None]) & (at <= at[:, None])
        chains = torch.from_numpy(own).to(device).expand(len(text), -1, -1)
        return torch.cat([text, chains], dim=2)


def draw_anchors(batch: TokenBatch, ahead: int, count: int, rng: np.random.Generator) -> AnchorRows:
    """`count` random positions of each text before at least `ahead` tokens of an answer."""
    fits = torch.zeros_like(batch.there)
    fits[:, : -ahead or None] = batch.there[:, ahead:]
    fits[:, :-1] &= batch.answered[:, 1:]
    fits[:, -1] = False
    anchors = torch.zeros(len(fits), count, dtype=torch.int64)
    drawn = torch.zeros(len(fits), count, dtype=torch.bool)
    for row, fitting in enumerate(fits.cpu().numpy()):
        there = np.flatnonzero(fitting)
        if len(there):
            anchors[row] = torch.from_numpy(rng.choice(there, count, replace=len(there) < count))
            drawn[row] = True
    return AnchorRows(anchors.to(fits.device), drawn.to(fits.device), ahead)


class LayerwiseTeacher:
    """Runs the layers of `teacher` one by one.

    Raises: `InputError` for a model with another structure than Llama's.
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
        self, batch: TokenBatch, taps: Collection[int] = ()
    ) -> tuple[TeacherCache, dict[int, torch.Tensor]]:
        """Read texts, to continue from within them, and the inputs of the layers `taps`."""
        with torch.no_grad():
            output = self._model.base_model(
                input_ids=batch.tokens,
                use_cache=True,
                past_key_values=DynamicCache(config=self._model.config),
                output_hidden_states=bool(taps),
            )
        states = {tap: output.hidden_states[tap] for tap in taps}
        return TeacherCache(output.past_key_values, output.last_hidden_state), states

    def onwards(
        self,
        past: TeacherCache,
        states: torch.Tensor,
        places: AnchorRows,
        first: int = 0,
        entering: Entering = lambda _layer, states: states,
    ) -> torch.Tensor:
        """The input of the head for rows at `places`, [texts, rows, width], with gradients.

        states: [texts, rows, width], inputs of the layer `first`.
        """
        sees = places.sees(past.hidden.shape[1])[:, None]  # the shape of the model's attention mask
        positions = places.positions
        rotation = self._rotary(states, position_ids=positions)
        for number in range(first, len(self._layers)):
            states = self._layers[number](
                entering(number, states),
                attention_mask=sees,
                position_ids=positions,
                position_embeddings=rotation,
                past_key_values=past.cache,
                use_cache=True,
            )
        hidden: torch.Tensor = self._norm(states)
        return hidden


def at(states: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Of states [texts, time, width], those at `positions` [texts, rows]: [texts, rows, width]."""
    return states.gather(1, positions[..., None].expand(-1, -1, states.shape[-1]))


_MOST_BYTES: Final = 1 << 30


class TeacherStates:
    """Cached inputs of the layers `taps` of `teacher`, in bfloat16, up to `most_bytes`.

    A frozen target computes the same for a text at every step. Every text is read alone, so that
    its states do not depend on the batch. `taps`: see `Teacher.states`; default: the head's input.
    """

    def __init__(
        self, teacher: Teacher, taps: tuple[int, ...] = (), most_bytes: int = _MOST_BYTES
    ) -> None:
        self._teacher = teacher
        self._taps = taps or (teacher.layers,)
        self._room = most_bytes
        self._states: dict[bytes, dict[int, torch.Tensor]] = {}

    def of(self, batch: TokenBatch) -> dict[int, torch.Tensor]:
        """By tap [texts, time, width], for a batch on the teacher's device; 0 after a text."""
        rows = [
            self._read(tokens[there])
            for tokens, there in zip(batch.tokens, batch.there, strict=True)
        ]
        return {tap: pad_sequence([row[tap] for row in rows], True).float() for tap in self._taps}

    def _read(self, tokens: torch.Tensor) -> dict[int, torch.Tensor]:
        """By tap [tokens, width]."""
        key = tokens.cpu().numpy().tobytes()
        if key in self._states:
            return self._states[key]
        there = torch.ones(1, len(tokens), dtype=torch.bool, device=tokens.device)
        states = self._teacher.states(TokenBatch(tokens[None], there, there), self._taps)
        cached = {tap: state[0].to(torch.bfloat16) for tap, state in states.items()}
        self._room -= sum(state.numel() * state.element_size() for state in cached.values())
        if self._room > 0:
            self._states[key] = cached
        return cached
