"""Converts one GGUF file of a Llama-shaped model to a folder that transformers loads.

Works on tensor names and layouts, whatever the source of the file. Weights become bfloat16: half
the size of float32, and widening them to float32 is exact.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.core.errors import CapabilityError
from weft.core.extras import optional_packages
from weft.serving.weights.catalogue import PullProgress

if TYPE_CHECKING:
    from gguf import GGUFReader
    from numpy.typing import NDArray

_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def convert(gguf: Path, folder: Path, progress: PullProgress) -> None:
    """Write config, generation config, tokenizer with its chat template, and safetensors weights.

    Raises: `CapabilityError` when a library is missing or the model is not Llama-shaped.
    """
    with optional_packages("converting weights", CapabilityError):
        from gguf import GGUFReader
        from transformers import AutoTokenizer
    reader = GGUFReader(gguf)
    if _field(reader, "general.architecture") != "llama":
        raise CapabilityError("only Llama-shaped GGUF files can be converted")
    tensors = _write_weights(reader, folder, progress)
    _write_config(reader, folder, tied="lm_head.weight" not in tensors)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(folder)


def _field(reader: GGUFReader, key: str) -> Any:
    field = reader.get_field(key)
    if field is None:
        raise CapabilityError(f"the GGUF file does not say {key}")
    return field.contents()


def _write_config(reader: GGUFReader, folder: Path, *, tied: bool) -> None:
    from transformers import GenerationConfig, LlamaConfig

    heads = _field(reader, "llama.attention.head_count")
    width = _field(reader, "llama.embedding_length")
    special = {
        f"{name}_token_id": _field(reader, f"tokenizer.ggml.{name}_token_id")
        for name in ("bos", "eos")
    }
    special["pad_token_id"] = special["eos_token_id"]
    config = LlamaConfig(
        vocab_size=len(_field(reader, "tokenizer.ggml.tokens")),
        hidden_size=width,
        intermediate_size=_field(reader, "llama.feed_forward_length"),
        num_hidden_layers=_field(reader, "llama.block_count"),
        num_attention_heads=heads,
        num_key_value_heads=_field(reader, "llama.attention.head_count_kv"),
        head_dim=width // heads,
        max_position_embeddings=_field(reader, "llama.context_length"),
        rms_norm_eps=_field(reader, "llama.attention.layer_norm_rms_epsilon"),
        rope_parameters={
            "rope_type": "default",
            "rope_theta": _field(reader, "llama.rope.freq_base"),
        },
        tie_word_embeddings=tied,
        architectures=["LlamaForCausalLM"],
        dtype="bfloat16",
        **special,
    )
    config.save_pretrained(folder)
    GenerationConfig(**special).save_pretrained(folder)


def _write_weights(reader: GGUFReader, folder: Path, progress: PullProgress) -> set[str]:
    import torch
    from gguf import dequantize
    from safetensors.torch import save_file

    heads = {
        "attn_q": _field(reader, "llama.attention.head_count"),
        "attn_k": _field(reader, "llama.attention.head_count_kv"),
    }
    tensors: dict[str, torch.Tensor] = {}
    for done, tensor in enumerate(reader.tensors, start=1):
        values = dequantize(tensor.data, tensor.tensor_type)
        part = tensor.name.rsplit(".", 2)[-2]
        if part in heads:
            values = _separate_halves(values, heads[part])
        tensors[_name(tensor.name)] = torch.from_numpy(values.copy()).to(torch.bfloat16)
        progress("convert", done, len(reader.tensors))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return set(tensors)


def _name(gguf_name: str) -> str:
    match gguf_name.split("."):
        case ["blk", number, part, "weight"] if part in _BLOCK:
            return f"model.layers.{number}.{_BLOCK[part]}.weight"
        case [part, "weight"] if part in _TOP:
            return f"{_TOP[part]}.weight"
    raise CapabilityError(f"the GGUF file holds {gguf_name}, which no Llama has")


def _separate_halves(weight: NDArray[Any], heads: int) -> NDArray[Any]:
    """Undo llama.cpp's row order, which interleaves the two halves of each rotary pair.

    weight: [heads * head_dim, width]
    """
    rows, width = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, width)
    return pairs.swapaxes(1, 2).reshape(rows, width)
