"""Diffusion models with random weights, small enough to be made by a test."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from tests.serving.local.tiny import CONTEXT, END, make_tokenizer

BLOCK = 8
MASK = "<|mask|>"


def make(folder: Path, attention: str = "full", *, seed: int = 0, **own: object) -> Path:
    """Write a model to `folder`, as weft's own format has it."""
    tokenizer = make_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": [MASK]})
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        initializer_range=0.3,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=END,
        pad_token_id=END,
    )
    model = LlamaForCausalLM(config).eval()
    model.generation_config = GenerationConfig(bos_token_id=1, eos_token_id=END, pad_token_id=END)
    model.save_pretrained(folder)
    path = folder / "config.json"
    said = json.loads(path.read_text("utf-8"))
    said["weft_diffusion"] = {
        "format": 1,
        "attention": attention,
        "mask_id": tokenizer.convert_tokens_to_ids(MASK),
        **({"block": BLOCK} if attention == "block_causal" else {}),
        **own,
    }
    path.write_text(json.dumps(said), "utf-8")
    return folder
