"""A Llama of a few megabytes whose heads divide: random weights, readable answers, a chat template.

`python -m tests.integration.tiny_llama FOLDER` makes one. The same seed gives the same weights.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
READABLE = " abcdefghijklmnopqrstuvwxyz"


def make_tiny_llama(
    folder: Path, *, seed: int = 0, layers: int = 2, kv_heads: int = 4, context: int = 2048
) -> Path:
    """Write a model of 8 heads of 32 channels, in float32, with a tokenizer of single bytes.

    Its answers consist of `READABLE` characters, and it never ends one by itself: a request gets
    `max_tokens` tokens, all of which are text.
    """
    tokenizer = _tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=kv_heads,
        max_position_embeddings=context,
        initializer_range=0.2,  # far from uniform: no near-ties between tokens
        bos_token_id=0,
        eos_token_id=2,
        pad_token_id=0,
        tie_word_embeddings=False,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config).to(torch.float32)
    ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(READABLE))
    unreadable = torch.ones(len(tokenizer), dtype=torch.bool)
    unreadable[ids] = False
    with torch.no_grad():
        # A logit of 0 is below the largest of 27 random ones.
        model.lm_head.weight[unreadable] = 0.0
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    generation = {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 0}
    (folder / "generation_config.json").write_text(json.dumps(generation), "utf-8")
    return folder


def _tokenizer() -> PreTrainedTokenizerFast:
    symbols = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    bytewise = Tokenizer(models.BPE({symbol: at for at, symbol in enumerate(symbols)}, []))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=bytewise,
        bos_token=SPECIAL[0],
        pad_token=SPECIAL[0],
        eos_token=SPECIAL[2],
        additional_special_tokens=[SPECIAL[1]],
        chat_template=TEMPLATE,
    )


if __name__ == "__main__":
    print(make_tiny_llama(Path(sys.argv[1])))
