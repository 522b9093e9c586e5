"""Llama models with random weights whose heads divide by two. Knows no server."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils.logging import disable_progress_bar

VOCAB = 8_192


def make_model(folder: Path, *, layers: int, hidden: int, width: int, head_dim: int) -> Path:
    """Write a model of 8 heads with 4 for keys and values, and a tokenizer of `VOCAB` words."""
    disable_progress_bar()
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=hidden,
        intermediate_size=width,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=head_dim,
        max_position_embeddings=2_048,
        bos_token_id=0,
        eos_token_id=1,
        tie_word_embeddings=False,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    words = {f"w{n}": n for n in range(VOCAB)}
    PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="w2")),
        bos_token="w0",
        eos_token="w1",
        unk_token="w2",
    ).save_pretrained(folder)
    return folder


def target(folder: Path) -> Path:
    """The model that is compared: 107 million parameters, more than the caches of a CPU hold."""
    return make_model(folder / "target", layers=16, hidden=768, width=2_048, head_dim=64)


def narrow(folder: Path, layers: int) -> Path:
    """A model so narrow that what it takes is the engine's own time."""
    return make_model(folder / f"narrow_{layers}", layers=layers, hidden=64, width=128, head_dim=32)
