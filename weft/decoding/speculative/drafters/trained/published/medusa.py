"""Medusa heads (arXiv 2401.10774) as FasterDecoding publishes them, and as vLLM reads them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from torch import nn
from torch.nn.functional import linear, silu

from weft.decoding.config_fields import CONFIG, ConfigFields
from weft.decoding.network.network import Network
from weft.decoding.speculative.drafters.trained.published.checkpoint import (
    FILES,
    PublishedCheckpoint,
    check_keys,
)

HEADS_FILES: Final = (*FILES, "medusa_lm_head.safetensors", "medusa_lm_head.pt")
_MOST_HEADS: Final = 16
_MOST_LAYERS: Final = 8
_PREFIXES: Final = ("medusa_heads.", "medusa_head.")
_READ: Final = frozenset(
    {
        "base_model_name_or_path",
        "hidden_size",
        "logit_scale",
        "max_paths",
        "max_seq_len",
        "medusa_fc_bias",
        "medusa_num_heads",
        "medusa_num_layers",
        "num_heads",
        "num_hidden_layers",
        "original_lm_head",
        "topk",
        "truncated_vocab_size",
        "version",
        "vocab_size",
    }
)


class PublishedMedusaHeads(nn.Module):  # type: ignore[misc]
    """Residual blocks with a head of their own for each distance.

    blocks  [heads][layers] linear maps; a block adds `silu(map(x))` to x
    tables  [heads or 1] weights [ids, width]; one is shared by all
    ids     [ids]: the token of each row of the tables
    """

    def __init__(
        self,
        blocks: Iterable[Iterable[nn.Linear]],
        tables: Iterable[torch.Tensor],
        ids: torch.Tensor,
    ) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.ModuleList(layers) for layers in blocks)
        self.tables = list(tables)
        self.ids = ids

    def __len__(self) -> int:
        return len(self.blocks)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """hidden: [.., width], the input of the model's head -> logits [heads, .., ids]"""
        found = []
        for number, layers in enumerate(self.blocks):
            x = hidden.to(self.tables[0].dtype)
            for layer in layers:
                x = x + silu(layer(x))
            found.append(linear(x, self.tables[number % len(self.tables)]))
        return torch.stack(found)


def read_medusa(folder: Path, network: Network) -> PublishedMedusaHeads:
    """Read a folder as heads for `network`.

    Heads beyond the number in config.json are left out, as in Medusa's own loader.
    Raises: `CapabilityError` naming file and key for what is missing, wrong or not run here.
    """
    config = ConfigFields.read(folder / CONFIG)
    check_keys(config, _READ)
    config.must_be("logit_scale", 1)
    config.must_be("hidden_size", network.width)
    config.must_be("vocab_size", network.vocabulary_size)
    heads = config.whole(_key(config, "num_heads", "medusa_num_heads"), 1, _MOST_HEADS)
    layers = config.whole(_key(config, "num_hidden_layers", "medusa_num_layers"), 0, _MOST_LAYERS)
    checkpoint = PublishedCheckpoint.read(folder, HEADS_FILES)
    shared = config.flag("original_lm_head", default=False)
    names = _names(checkpoint, layers, shared)
    like = network.embed([0])
    blocks = [
        [_block(checkpoint, names, network.width, head, layer, like) for layer in range(layers)]
        for head in range(heads)
    ]
    ids = _token_map(config, checkpoint, network)
    tables = [
        _table(checkpoint, names, head, ids, network).to(like.device, like.dtype)
        for head in range(1 if shared else heads)
    ]
    checkpoint.skip(*names.others(heads))
    checkpoint.close()
    return PublishedMedusaHeads(blocks, tables, ids.to(like.device))


@dataclass(frozen=True, slots=True)
class MedusaNames:
    """The names of tensors in one of the two formats: vLLM's, or the published one.

    present  of the file
    vllm     vLLM's format
    prefix   of the published one
    layers   residual blocks of a head
    shared   one table for all heads
    """

    present: frozenset[str]
    vllm: bool
    prefix: str
    layers: int
    shared: bool

    def block(self, head: int, layer: int, part: str) -> str:
        """The weight or bias of a residual block."""
        if self.vllm:
            return f"blocks.{head}.layers.{layer}.{part}"
        return f"{self.prefix}{head}.{layer}.linear.{part}"

    def table(self, head: int) -> str:
        """The last weight of a head."""
        if self.vllm and self.shared and "lm_heads.0.weight" not in self.present:
            return "lm_head.weight"
        if self.vllm:
            return f"lm_heads.{head}.weight"
        return f"{self.prefix}{head}.{self.layers}.weight"

    def others(self, heads: int) -> list[str]:
        """Tensors of heads from number `heads` on, and of tables that another one replaces."""
        found = []
        for name in self.present:
            words = name.removeprefix(self.prefix).split(".")
            numbers = [word for word in words[:2] if word.isdecimal()][:1]
            late = bool(numbers) and int(numbers[0]) >= heads
            table = self.shared and words[0] == "lm_heads"
            if late or table:
                found.append(name)
        return found


def _names(checkpoint: PublishedCheckpoint, layers: int, shared: bool) -> MedusaNames:
    present = frozenset(checkpoint.tensors)
    vllm = any(name.startswith(("blocks.", "lm_head")) for name in present)
    starts = [start for start in _PREFIXES if any(name.startswith(start) for name in present)]
    return MedusaNames(present, vllm, starts[0] if starts else "", layers, shared)


def _key(config: ConfigFields, first: str, second: str) -> str:
    return second if first not in config else first


def _block(
    checkpoint: PublishedCheckpoint,
    names: MedusaNames,
    width: int,
    head: int,
    layer: int,
    like: torch.Tensor,
) -> nn.Linear:
    bias = names.block(head, layer, "bias")
    with torch.device("meta"):
        block = nn.Linear(width, width, bias=bias in checkpoint)
    parts = {part: names.block(head, layer, part) for part in block.state_dict()}
    return checkpoint.fill(block, parts, like)


def _token_map(
    config: ConfigFields, checkpoint: PublishedCheckpoint, network: Network
) -> torch.Tensor:
    """[ids]: all tokens, or those of vLLM's `token_map`."""
    every = network.vocabulary_size
    few = config.whole("truncated_vocab_size", 1, every, every)
    if few == every:
        return torch.arange(every)
    ids = checkpoint.take_ids("token_map", (few,))
    if int(ids.min()) < 0 or int(ids.max()) >= every or len(ids.unique()) < few:
        raise checkpoint.wrong("token_map", f"is no list of {few} different tokens")
    return ids


def _table(
    checkpoint: PublishedCheckpoint,
    names: MedusaNames,
    head: int,
    ids: torch.Tensor,
    network: Network,
) -> torch.Tensor:
    """[ids, width]; a table of all tokens is cut to those of the map, as in vLLM."""
    name = names.table(head)
    found = checkpoint.tensors.get(name)
    whole = found is not None and found.ndim == 2 and len(found) == network.vocabulary_size
    rows = network.vocabulary_size if whole else len(ids)
    table = checkpoint.take(name, (rows, network.width))
    return table[ids] if rows != len(ids) else table
