"""Writes a Llama to GGUF the way llama.cpp's converter does."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from weft.serving.weights.convert import _BLOCK, _TOP


def write(path: Path, model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    _add_tokenizer(writer, tokenizer)
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    backward = {ours: theirs for theirs, ours in {**_TOP, **_BLOCK}.items()}
    for name, tensor in model.state_dict().items():
        *before, _ = name.split(".")
        if before[0] == "lm_head":
            continue
        if before[:2] == ["model", "layers"]:
            part = backward[".".join(before[3:])]
            renamed = f"blk.{before[2]}.{part}.weight"
        else:
            part = backward[".".join(before)]
            renamed = f"{part}.weight"
        writer.add_tensor(renamed, _pairs_together(tensor, heads.get(part)).float().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _pairs_together(weight: torch.Tensor, heads: int | None) -> torch.Tensor:
    """llama.cpp rotates neighbouring rows; transformers rotates the two halves of a head."""
    if heads is None:
        return weight
    rows, width = weight.shape
    halves = weight.reshape(heads, 2, rows // heads // 2, width)
    return halves.transpose(1, 2).reshape(rows, width).contiguous()


def _add_tokenizer(writer: gguf.GGUFWriter, tokenizer: PreTrainedTokenizerFast) -> None:
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    words = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    special = set(tokenizer.all_special_tokens) | {"<|endoftext|>"}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list([word for word, _ in words])
    writer.add_token_types(
        [gguf.TokenType.CONTROL if word in special else gguf.TokenType.NORMAL for word, _ in words]
    )
    writer.add_token_merges([" ".join(pair) for pair in backend["model"]["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(tokenizer.chat_template)
