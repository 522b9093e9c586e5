"""The list models that come with weft, as adapters. Loads each once."""

from __future__ import annotations

from functools import cache
from typing import Final

from evals.planning.effort import Skipped
from weft.core.errors import WeftError
from weft.decoding.diffusion.adapter import ModelAdapter
from weft.decoding.diffusion.models.loading import load
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.network.network import Network
from weft.decoding.network.options import NetworkOptions
from weft.decoding.shipped_weights import shipped_weights

OPTIONS: Final = NetworkOptions(dtype="float32")


@cache
def adapter(variant: str) -> ModelAdapter:
    """The list model `variant`: full, block, dparallel. Raises: `Skipped` where it is not."""
    try:
        model = load(shipped_weights("diffusion") / f"list-{variant}", OPTIONS)
    except WeftError as error:
        raise Skipped(f"{error}") from error
    return NetworkAdapter(model.network, model.traits)


@cache
def twin() -> Network:
    """The autoregressive list model. Raises: `Skipped` where it is not."""
    try:
        return Network.load(shipped_weights("diffusion") / "list-ar", OPTIONS)
    except WeftError as error:
        raise Skipped(f"{error}") from error
