"""The list model as a folder: a small Llama over the oracle's vocabulary, and its tokenizer.

A conversation is `operation [arguments] | item item ...`; the answer is items.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from weft.core.errors import InputError
from weft.decoding import tensor_file
from weft.decoding.config_fields import write_config
from weft.decoding.diffusion.models.folder import FORMAT, OWN
from weft.decoding.diffusion.oracle import vocabulary as words

_SPECIAL: Final = 4
"""The first ids are not words: padding, end, separator, mask."""
_SPACE: Final = "Ġ"
"""The space before a word in byte-level tokenizers."""
_TEMPLATE: Final = (
    "{% for message in messages %}{% if message.role == 'user' %}"
    " {{ message.content | trim | replace(' |', '<sep>') }}<sep>"
    "{% else %}{{ raise_exception('a question is one message of the user') }}{% endif %}"
    "{% endfor %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer of the words of the list languages, separated by single spaces."""
    spelling = {
        token if number < _SPECIAL else _SPACE + token: number
        for number, token in enumerate(words.TOKENS)
    }
    backend = Tokenizer(models.WordLevel(spelling, unk_token="<unknown>"))  # noqa: S106 - none
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(" ", "merged_with_next"),
            pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in words.TOKENS[:_SPECIAL]]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token=words.TOKENS[words.EOS],
        pad_token=words.TOKENS[words.PAD],
        chat_template=_TEMPLATE,
    )


def write_tokenizer(folder: Path) -> None:
    """Write the tokenizer of a list model to `folder`. Raises: `OSError`."""
    tokenizer().save_pretrained(folder)


Variant = Literal["full", "block", "ar"]
VARIANTS: Final[tuple[Variant, ...]] = ("full", "block", "ar")
"""Full attention, block-causal attention, and the autoregressive baseline."""
BLOCK: Final = 4
_HINT: Final = "name the folder of a list model of the same size"
_WEIGHTS: Final = "model.safetensors"
_EMBEDDING: Final = "model.embed_tokens.weight"
_LAYER: Final = ".self_attn.q_proj.weight"
_WIDEST: Final = 4096
_MOST_LAYERS: Final = 64
_POSITIONS: Final = 256
_SPREAD: Final = 0.05
"""Standard deviation of initial weights: larger than usual, because the model is small."""


def check_size(width: int, layers: int) -> None:
    """Raises: `InputError` for a size that is invalid, or too large."""
    if not 32 <= width <= _WIDEST or width % 32:
        raise InputError(
            f"there is no list model of width {width}", hint=f"take a multiple of 32, to {_WIDEST}"
        )
    if not 1 <= layers <= _MOST_LAYERS:
        raise InputError(
            f"there is no list model of {layers} layers", hint=f"take 1 to {_MOST_LAYERS}"
        )


def new(width: int, layers: int, seed: int) -> LlamaForCausalLM:
    """An untrained model. `width` is a multiple of 32, the size of its heads."""
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
    """Load the weights of a saved model into a new one.

    Raises: `InputError` for missing weights, or those of another shape.
    """
    tensors = _weights(folder)
    for name, parameter in model.named_parameters():
        if name not in tensors or tensors[name].shape != parameter.shape:
            raise InputError(f"{folder}: {name} is of another shape, or missing", hint=_HINT)
        with torch.no_grad():
            parameter.copy_(tensors[name])


def beginning_with(folder: Path) -> LlamaForCausalLM:
    """A saved model. Raises: `InputError` for a folder without one."""
    tensors = _weights(folder)
    embedded = tensors.get(_EMBEDDING)
    if embedded is None or embedded.ndim != 2 or not 0 < embedded.shape[1] <= _WIDEST:
        raise InputError(f"{folder} holds no list model", hint=_HINT)
    layers = sum(name.endswith(_LAYER) for name in tensors)
    model = new(embedded.shape[1], layers, seed=0)
    begin_with(model, folder)
    return model


def _weights(folder: Path) -> dict[str, torch.Tensor]:
    try:
        return tensor_file.read(folder / _WEIGHTS)[0]
    except tensor_file.TensorFileError as error:
        raise InputError(str(error), hint=_HINT) from error


def save(model: LlamaForCausalLM, folder: Path, variant: Variant) -> None:
    """Write a folder that transformers and weft read: weights in half precision.

    Raises: `OSError`.
    """
    write_tokenizer(folder)
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
            "preset": "threshold",
        }
    write_config(folder, config)
