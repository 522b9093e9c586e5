"""The numbers of a model's `config.json` that decide how it can be cut. Reads no weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from weft.core.errors import SpecError

_DRAFTING = ("nextn", "mtp", "n_predict")


@dataclass(frozen=True, slots=True)
class Shape:
    """Counts of one model; None where its config does not say.

    `context_tokens` is None too where the positions are scaled: the engine knows the rule, not we.
    `drafts` says whether the model has layers that predict more than the next token.
    """

    heads: int | None = None
    kv_heads: int | None = None
    layers: int | None = None
    context_tokens: int | None = None
    drafts: bool = False


UNKNOWN = Shape()


def shape_of(folder: Path) -> Shape:
    """What `config.json` in `folder` says. Raises: `SpecError` where it is no JSON object."""
    path = folder / "config.json"
    try:
        said = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SpecError(f"cannot read {path}: {error}") from error
    if not isinstance(said, dict):
        raise SpecError(f"{path} holds no JSON object")
    inner = said.get("text_config")
    text: Mapping[str, object] = inner if isinstance(inner, dict) else said
    heads = _count(text, "num_attention_heads", "n_head")
    scaled = text.get("rope_scaling") or text.get("rope_parameters")
    plain = not isinstance(scaled, dict) or scaled.get("rope_type", "default") == "default"
    return Shape(
        heads=heads,
        kv_heads=_count(text, "num_key_value_heads") or heads,
        layers=_count(text, "num_hidden_layers", "n_layer"),
        context_tokens=_count(text, "max_position_embeddings", "n_positions") if plain else None,
        drafts=any(part in key for key in text for part in _DRAFTING if text[key]),
    )


def _count(said: Mapping[str, object], *names: str) -> int | None:
    for name in names:
        value = said.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
