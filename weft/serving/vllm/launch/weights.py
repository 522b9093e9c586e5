"""Locations of weights and adapters, and the numbers of a model's config that limit parallelism."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from weft.core.errors import ModelNotFound, SpecError
from weft.core.values import DecodeSpec
from weft.serving.vllm.launch.spec import ServeSpec
from weft.serving.weights import locate

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_CODE = "custom_class"


@dataclass(frozen=True, slots=True)
class ModelWeights:
    """vLLM's argument for the weights, their folder if they are local, and the draft's weights."""

    argument: str
    folder: Path | None
    draft: ModelWeights | None = None

    @property
    def here(self) -> bool:
        """Whether all weights are on this machine, so that no hub is needed."""
        return self.folder is not None and (self.draft is None or self.draft.here)


def find_weights(spec: ServeSpec) -> ModelWeights:
    """The weights of the model and of its draft model, if any.

    Raises: `ModelNotFound` where one is neither installed, nor a folder, nor like `owner/name`.
    """
    model = _find(spec.model)
    return ModelWeights(model.argument, model.folder, _draft(spec.decode))


def _draft(decode: DecodeSpec) -> ModelWeights | None:
    name = dict(decode.options).get("model")
    return _find(str(name)) if name is not None and decode.method != _CODE else None


def _find(name: str) -> ModelWeights:
    try:
        folder = locate(name)
    except ModelNotFound:
        if _HUB_NAME.fullmatch(name) and not Path(name).exists():
            return ModelWeights(name, None)
        raise
    return ModelWeights(str(folder), folder)


_DRAFTING = ("nextn", "mtp", "n_predict")


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Numbers of one model; None where its config does not contain them.

    `context_tokens` is also None where positions are scaled, by rules that only the engine knows.
    `drafts`: the model has layers that predict more than the next token.
    """

    heads: int | None = None
    kv_heads: int | None = None
    layers: int | None = None
    context_tokens: int | None = None
    drafts: bool = False


UNKNOWN = ModelShape()


def shape_of(folder: Path) -> ModelShape:
    """The numbers in `config.json` of `folder`. Raises: `SpecError` unless it is a JSON object."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SpecError(f"cannot read {path}: {error}") from error
    if not isinstance(config, dict):
        raise SpecError(f"{path} holds no JSON object")
    inner = config.get("text_config")
    text: Mapping[str, object] = inner if isinstance(inner, dict) else config
    heads = _count(text, "num_attention_heads", "n_head")
    scaled = text.get("rope_scaling") or text.get("rope_parameters")
    plain = not isinstance(scaled, dict) or scaled.get("rope_type", "default") == "default"
    return ModelShape(
        heads=heads,
        kv_heads=_count(text, "num_key_value_heads") or heads,
        layers=_count(text, "num_hidden_layers", "n_layer"),
        context_tokens=_count(text, "max_position_embeddings", "n_positions") if plain else None,
        drafts=any(part in key for key in text for part in _DRAFTING if text[key]),
    )


def _count(config: Mapping[str, object], *names: str) -> int | None:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)


def adapter_arguments(adapters: Mapping[str, str], served: str) -> list[str]:
    """The arguments that load `adapters`, folders by name, next to the model `served`.

    Raises: `SpecError` where a folder contains no adapter or a name is taken.
    """
    if not adapters:
        return []
    if served in adapters:
        raise SpecError(f"an adapter and the model are both called {served!r}")
    folders = {name: Path(folder).expanduser().resolve() for name, folder in adapters.items()}
    ranks = [_rank(name, folder) for name, folder in folders.items()]
    modules = [f"{name}={folder}" for name, folder in folders.items()]
    largest = next(rank for rank in _RANKS if rank >= max(ranks))
    return [
        "--enable-lora",
        "--max-loras",
        str(len(adapters)),
        "--max-lora-rank",
        str(largest),
        "--lora-modules",
        *modules,
    ]


def _rank(name: str, folder: Path) -> int:
    if not name or "=" in name:
        raise SpecError(f"an adapter cannot be called {name!r}", hint="leave out `=`")
    path = folder / "adapter_config.json"
    try:
        rank = json.loads(path.read_text("utf-8"))["r"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SpecError(
            f"the adapter {name!r} cannot be read: {path}: {error}",
            hint="name the folder that peft's `save_pretrained` wrote",
        ) from error
    if not isinstance(rank, int) or not 0 < rank <= _RANKS[-1]:
        raise SpecError(f"the adapter {name!r} has rank {rank}; vLLM takes 1 to {_RANKS[-1]}")
    return rank
