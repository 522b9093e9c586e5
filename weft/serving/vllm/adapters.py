"""LoRA adapters as vLLM's arguments. Reads each adapter's config, never its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from weft.core.errors import SpecError

_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)


def adapter_arguments(adapters: Mapping[str, str], served: str) -> list[str]:
    """The arguments that load `adapters`, a folder by name, beside the model called `served`.

    Raises: `SpecError` where a folder holds no adapter or a name is taken.
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
