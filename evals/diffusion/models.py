"""The list models that come with weft, as adapters. Loads each once."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from evals.planning.effort import Skipped
from weft.core.errors import WeftError
from weft.decoding import diffusion
from weft.decoding.diffusion.adapter import ModelAdapter
from weft.decoding.diffusion.models.loading import load
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.network.network import Network
from weft.decoding.network.options import NetworkOptions

SHIPPED: Final = Path(diffusion.__file__).parent / "weights"
OPTIONS: Final = NetworkOptions(dtype="float32")


@cache
def adapter(variant: str) -> ModelAdapter:
    """The list model `variant`: full, block, dparallel. Raises: `Skipped` where it is not."""
    try:
        model = load(SHIPPED / f"list-{variant}", OPTIONS)
    except WeftError as error:
        raise Skipped(f"{error}") from error
    return NetworkAdapter(model.network, model.traits)


@cache
def twin() -> Network:
    """The autoregressive list model. Raises: `Skipped` where it is not."""
    folder = SHIPPED / "list-ar"
    if not folder.is_dir():
        raise Skipped(f"there is no {folder.name}")
    return Network.load(folder, OPTIONS)
