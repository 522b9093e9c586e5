"""Networks with random weights that read a text in any order, and texts for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM, LlamaConfig, PretrainedConfig, Qwen3Config

from weft.decoding.diffusion.adapter import ModelAdapter, ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.diffusion.query import Query
from weft.decoding.network import attention
from weft.decoding.network.network import Network
from weft.decoding.network.options import NetworkOptions

VOCABULARY, MASK, END = 64, 63, 62
ENDS = frozenset({END})
EXACT = NetworkOptions(dtype="float32", threads=1)
FULL = ModelTraits(VOCABULARY, MASK, ENDS)
SHIFTED = ModelTraits(VOCABULARY, MASK, ENDS, shifted=True)
BLOCKS = ModelTraits(VOCABULARY, MASK, ENDS, attention="block_causal", block=4)
SHIFTED_BLOCKS = ModelTraits(
    VOCABULARY, MASK, ENDS, attention="block_causal", block=4, shifted=True
)
ENCODER = ModelTraits(VOCABULARY, MASK, ENDS, attention="causal_encoder")
NOISE = ModelTraits(VOCABULARY, None, ENDS)
PROMPT = [5, 9, 3, 7, 11]
_SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
}


def llama(**more: object) -> PretrainedConfig:
    return LlamaConfig(**{**_SHAPE, **more})


def qwen(**more: object) -> PretrainedConfig:
    return Qwen3Config(**{**_SHAPE, "head_dim": 8, **more})


def network(config: PretrainedConfig | None = None, dtype: torch.dtype = torch.float32) -> Network:
    """Of the same weights for the same shape."""
    attention.register()
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(
        config or llama(), attn_implementation=attention.NAME, dtype=dtype
    )
    return Network(model.eval(), EXACT)


def text(length: int, seed: int = 0) -> list[int]:
    """Tokens that are neither mask nor end."""
    return np.random.default_rng(seed).integers(0, END, length).tolist()


def canvas(prompt: Sequence[int] = PROMPT, length: int = 11, row: int = 0) -> Canvas:
    """With its answer as the window."""
    made = Canvas(prompt, length, MASK, row=row)
    made.window = range(made.first, made.length)
    return made


def whole(made: Canvas, wanted: Sequence[int] | None = None, **more: object) -> Query:
    """Reads all, and wants what is undecided."""
    feed = np.arange(made.length)
    slots = made.open if wanted is None else np.array(wanted, dtype=np.int64)
    return Query(made, feed, slots, made.length, **more)  # type: ignore[arg-type]


def part(made: Canvas, feed: Sequence[int], wanted: Sequence[int], **more: object) -> Query:
    """Reads some slots."""
    slots = np.array(feed, dtype=np.int64)
    return Query(made, slots, np.array(wanted, dtype=np.int64), made.length, **more)  # type: ignore[arg-type]


@dataclass
class Recording:
    """An adapter, and all that it was asked and answered."""

    adapter: ModelAdapter
    passes: list[list[Query]] = field(default_factory=list)
    answers: list[list[NDArray[np.float32]]] = field(default_factory=list)

    @property
    def traits(self) -> ModelTraits:
        return self.adapter.traits

    def forward(self, queries: Sequence[Query]) -> list[NDArray[np.float32]]:
        answers = self.adapter.forward(queries)
        self.passes.append(list(queries))
        self.answers.append(answers)
        return answers

    def forget(self, row: int) -> None:
        self.adapter.forget(row)


def recording(net: Network, traits: ModelTraits) -> Recording:
    return Recording(NetworkAdapter(net, traits))
