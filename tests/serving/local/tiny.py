"""A Llama with random weights and a byte-level tokenizer, small enough to be made by a test."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

CORPUS = [
    "the quick brown fox jumps over the lazy dog and runs home",
    '{"name": "value", "items": [1, 2, 3], "ok": true, "none": null, "other": false}',
    "Ünï cödé — 漢字 🎉 über naïve façade; the other there then them this that",
    "0 1 2 3 4 5 6 7 8 9 10 11 12 100 2024 3.14 -7 1e5",
]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
END = 2
CONTEXT = 1024


def make_tokenizer() -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(CORPUS * 4, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=SPECIAL[1],
        eos_token=SPECIAL[END],
        pad_token=SPECIAL[END],
        chat_template=TEMPLATE,
    )


def make_model(vocabulary: int) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        initializer_range=0.25,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=END,
        pad_token_id=END,
    )
    model = LlamaForCausalLM(config).eval()
    model.generation_config = GenerationConfig(bos_token_id=1, eos_token_id=END, pad_token_id=END)
    return model


def make(folder: Path) -> Path:
    """Write the model to `folder`, as a hub repository would look."""
    tokenizer = make_tokenizer()
    tokenizer.save_pretrained(folder)
    make_model(len(tokenizer)).save_pretrained(folder)
    return folder
