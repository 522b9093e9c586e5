"""The list model as a folder: a small Llama over the oracle's vocabulary, with weft's traits.

Knows no training.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final, Literal

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from weft.core.errors import InputError
from weft.decoding import tensor_file
from weft.decoding.diffusion.models.recognise import OWN
from weft.decoding.diffusion.models.traits import FORMAT
from weft.decoding.diffusion.oracle import vocabulary as words

Variant = Literal["full", "block", "ar"]
VARIANTS: Final[tuple[Variant, ...]] = ("full", "block", "ar")
"""All slots see all; blocks see themselves and those before; the autoregressive twin."""
BLOCK: Final = 4
_CONFIG: Final = "config.json"
_WEIGHTS: Final = "model.safetensors"
_POSITIONS: Final = 256
_SPREAD: Final = 0.05
"""Standard deviation of the first weights: more than usual, the model being small."""


def new(width: int, layers: int, seed: int) -> LlamaForCausalLM:
    """A model that has learnt nothing. `width` is a multiple of 32, the size of its heads."""
    config = LlamaConfig(
        vocab_size=words.SIZE,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 32,
        num_key_value_heads=width // 32,
        intermediate_size=3 * width,
        max_position_embeddings=_POSITIONS,
        tie_word_embeddings=True,
        initializer_range=_SPREAD,
        pad_token_id=words.PAD,
        bos_token_id=None,
        eos_token_id=words.EOS,
    )
    torch.manual_seed(seed)
    return LlamaForCausalLM(config)


def begin_with(model: LlamaForCausalLM, folder: Path) -> None:
    """Give a new model the weights of one that was saved.

    Raises: `InputError` where there are none, or of another shape.
    """
    hint = "name the folder of a list model of the same size"
    try:
        tensors, _ = tensor_file.read(folder / _WEIGHTS)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if tensors[name].shape != parameter.shape:
                    raise InputError(f"{folder}: {name} is of another shape", hint=hint)
                parameter.copy_(tensors[name])
    except tensor_file.TensorFileBroken as error:
        raise InputError(str(error), hint=hint) from error
    except KeyError as error:
        raise InputError(f"{folder} has no weights {error}", hint=hint) from error


def save(model: LlamaForCausalLM, folder: Path, variant: Variant) -> None:
    """Write a folder that transformers and weft read: weights in half precision.

    Raises: `OSError`.
    """
    weights = {name: value.half() for name, value in model.named_parameters()}
    tensor_file.write(folder / _WEIGHTS, weights, {"format": "pt"})
    config = {**model.config.to_diff_dict(), "architectures": ["LlamaForCausalLM"]}
    config |= {"dtype": "float16"}
    if variant != "ar":
        full = variant == "full"
        config[OWN] = {
            "format": FORMAT,
            "attention": "full" if full else "block_causal",
            **({} if full else {"block": BLOCK}),
            "shifted": False,
            "mask_id": words.MASK,
            "end_ids": [words.EOS],
            "banned": [words.PAD],
        }
    beside = folder / f".{_CONFIG}.{os.getpid()}"
    beside.write_text(json.dumps(config, indent=1, allow_nan=False) + "\n", "utf-8")
    beside.replace(folder / _CONFIG)
