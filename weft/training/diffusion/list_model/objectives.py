"""Objectives of the three list models: masked slots, masked slots of a block, or the next token.

Masked diffusion (LLaDA, arXiv 2502.09992) with uniform weights: the mean of -log p over masked
slots, in expectation over answers. The goal of a slot is the average of all valid answers that
agree with the visible slots, so that sampling an answer adds no noise. Half of the texts are read
with all slots of their answers masked, as decoding begins; the others twice, with some masked and
then the rest (complementary masks, Fast-dLLM v2, arXiv 2509.26328).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy, linear, rms_norm, scaled_dot_product_attention, silu

from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.language import ListQuestion
from weft.decoding.diffusion.oracle.languages import DETERMINISTIC, LANGUAGES
from weft.training.devices import mixed_precision
from weft.training.diffusion.list_model.questions import ListBatch, canonical_question, patterns

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM


def hidden(
    model: LlamaForCausalLM, ids: torch.Tensor, wanted: torch.Tensor, sees: torch.Tensor | None
) -> torch.Tensor:
    """[wanted slots, width]: the input of the head there, with gradients.

    ids, wanted: [texts, slots]. sees: [slots, slots] bool; None: full attention.
    """
    base, config = model.model, model.config
    turns = _turns(base.rotary_emb.inv_freq, ids.shape[1])
    states = base.embed_tokens(ids)
    eps: float = config.rms_norm_eps
    for layer in base.layers:
        read = _normed(states, layer.input_layernorm.weight, eps)
        attended = _attention(layer.self_attn, read, turns, sees)
        if layer is base.layers[-1]:  # from here on, slots are independent
            states, attended = states[wanted], attended[wanted]
        states = states + layer.self_attn.o_proj(attended)
        read = _normed(states, layer.post_attention_layernorm.weight, eps)
        both = torch.cat([layer.mlp.gate_proj.weight, layer.mlp.up_proj.weight])
        gate, up = linear(read, both).chunk(2, dim=-1)
        states = states + layer.mlp.down_proj(silu(gate) * up)
    return _normed(states, base.norm.weight, eps)


def block_causal(slots: int, block: int) -> torch.Tensor:
    """[slots, slots]: a slot sees its block and earlier ones. Blocks of one are causal."""
    blocks = torch.arange(slots) // block
    return blocks[:, None] >= blocks


def _normed(states: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return rms_norm(states, (states.shape[-1],), weight, eps)


def _turns(frequencies: torch.Tensor, slots: int) -> tuple[torch.Tensor, torch.Tensor]:
    angles = torch.arange(slots)[:, None] * frequencies
    return angles.cos(), angles.sin()


def _turned(states: torch.Tensor, turns: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Rotary positions on [texts, heads, slots, head_dim]."""
    first, second = states.chunk(2, dim=-1)
    cos, sin = turns
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def _attention(
    attention: torch.nn.Module,
    read: torch.Tensor,
    turns: tuple[torch.Tensor, torch.Tensor],
    sees: torch.Tensor | None,
) -> torch.Tensor:
    """[texts, slots, width], before the output projection."""
    texts, slots, width = read.shape
    three = (attention.q_proj, attention.k_proj, attention.v_proj)
    weights = torch.cat([projection.weight for projection in three])
    apart = linear(read, weights).view(texts, slots, 3, -1, attention.head_dim)
    query, key, value = apart.permute(2, 0, 3, 1, 4).float()
    with torch.autocast(read.device.type, enabled=False):
        attended = scaled_dot_product_attention(
            _turned(query, turns), _turned(key, turns), value, sees
        )
    return attended.transpose(1, 2).reshape(texts, slots, width)


Bits = NDArray[np.bool_]


def expected_tokens(
    question: ListQuestion, answer: NDArray[np.int64], decided: Bits
) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
    """The possible tokens, [tokens], and their probabilities by slot, [slots, tokens].

    answer   [slots] a valid one
    decided  [slots] which of its slots are known

    None for an operation with one valid answer.
    """
    if question.operation in DETERMINISTIC:
        return None
    alphabet = np.array(LANGUAGES[question.operation].alphabet(question), dtype=np.int64)
    same = canonical_question(question)
    hot = _hot(same)  # [answers, slots, tokens]
    alphabet = alphabet[: hot.shape[2]]
    if not decided.any():
        return alphabet, _average(same)
    code = np.empty(alphabet.max() + 1, dtype=np.int64)
    code[alphabet] = np.arange(len(alphabet))
    agree = (patterns(same)[:, decided] == code[answer[decided]]).all(axis=1)
    return alphabet, hot[agree].mean(axis=0, dtype=np.float32)


@lru_cache(maxsize=1024)
def _hot(same: ListQuestion) -> NDArray[np.float32]:
    codes = patterns(same)
    return np.eye(int(codes.max()) + 1, dtype=np.float32)[codes]


@lru_cache(maxsize=1024)
def _average(same: ListQuestion) -> NDArray[np.float32]:
    average: NDArray[np.float32] = _hot(same).mean(axis=0, dtype=np.float32)
    return average


_END_MASK_RATES: Final = (0.0, 1.0)
"""Half of the texts have all of their last EOS masked or none: decoding often decides them first
and together."""


class MaskedObjective:
    """Trains on masked slots. `block` 0: full attention; else on one block of each text."""

    def __init__(self, model: LlamaForCausalLM, block: int = 0) -> None:
        self.module: torch.nn.Module = model
        self._model = model
        self.block = block

    def loss(self, batch: ListBatch, rng: np.random.Generator) -> torch.Tensor:
        """The mean loss of masked slots."""
        ours = batch.answer | batch.end
        visible = torch.ones_like(ours)
        if self.block:
            now, visible = _one_block(ours, self.block, rng)
            ours = ours & now
        some = ours & _some(batch, rng)
        half = len(ours) // 2
        masked = torch.cat([ours[:half], some[half:], (ours & ~some)[half:]])
        texts = torch.cat([torch.arange(len(ours)), torch.arange(half, len(ours))])
        ids = batch.tokens[texts].masked_fill(masked, words.MASK)
        sees = block_causal(ids.shape[1], self.block) if self.block else None
        with mixed_precision(ids.device):
            logits = self._model.lm_head(hidden(self._model, ids, masked, sees))
        goals = _goals(batch, texts, masked, visible[texts] & ~masked)
        return cross_entropy(logits.float(), goals)


class CausalObjective:
    """Trains on the next token of answers: the autoregressive baseline."""

    block = 1

    def __init__(self, model: LlamaForCausalLM) -> None:
        self.module: torch.nn.Module = model
        self._model = model

    def loss(self, batch: ListBatch, rng: np.random.Generator) -> torch.Tensor:  # noqa: ARG002
        """The mean loss of answer tokens and the EOS after them."""
        read = batch.tokens[:, :-1]
        learnt = batch.answer | batch.end
        with mixed_precision(read.device):
            states = hidden(self._model, read, learnt[:, 1:], block_causal(read.shape[1], 1))
            logits = self._model.lm_head(states)
        texts, slots = learnt.nonzero(as_tuple=True)
        one = torch.zeros(len(slots), learnt.shape[1], dtype=torch.bool)
        one[torch.arange(len(slots)), slots] = True
        before = torch.arange(learnt.shape[1]) < slots[:, None]
        return cross_entropy(logits.float(), _goals(batch, texts, one, before))


def _goals(
    batch: ListBatch, texts: torch.Tensor, learnt: torch.Tensor, known: torch.Tensor
) -> torch.Tensor:
    """[learnt slots, vocabulary]: the average of all answers that agree with the known slots.

    texts          [rows]: the text of each row
    learnt, known  [rows, slots]
    """
    tokens = batch.tokens[texts][learnt]
    goals = torch.nn.functional.one_hot(tokens, words.SIZE).float()
    first = 0
    for text, row, sure in zip(texts.tolist(), learnt.numpy(), known.numpy(), strict=True):
        inside = batch.answer[text].numpy()
        wanted = row[inside]
        count = int(wanted.sum())
        if count:
            answer = batch.tokens[text].numpy()[inside]
            expected = expected_tokens(batch.questions[text], answer, sure[inside])
            if expected is not None:
                alphabet, shares = expected
                goals[first : first + count] = 0.0
                goals[first : first + count, torch.from_numpy(alphabet)] = torch.from_numpy(
                    shares[wanted]
                )
        first += int(row.sum())
    return goals


def _some(batch: ListBatch, rng: np.random.Generator) -> torch.Tensor:
    """[texts, slots]: masked at a random rate of each text; EOS at a rate of their own."""
    texts, slots = batch.tokens.shape
    rates = rng.random((texts, 2))
    ends = rng.integers(4, size=texts)
    rates[:, 1] = np.select([ends == 0, ends == 1], _END_MASK_RATES, rates[:, 1])
    rate = np.where(batch.end.numpy(), rates[:, 1:], rates[:, :1])
    return torch.from_numpy(rng.random((texts, slots)) < rate)


def _one_block(
    ours: torch.Tensor, block: int, rng: np.random.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """[texts, slots] each: a random block with slots of `ours`; that block and earlier ones."""
    slots = ours.shape[1]
    first = ours.to(torch.int8).argmax(dim=1).numpy() // block
    last = (slots - 1) // block
    chosen = first + (rng.random(len(ours)) * (last - first + 1)).astype(np.int64)
    blocks = torch.arange(slots) // block
    now = torch.from_numpy(chosen)[:, None]
    return blocks == now, blocks <= now
