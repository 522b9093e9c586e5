"""Published diffusion models, and weft's own, as networks: their configs, weights and traits.

Importing it imports no torch; calling `load` does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weft.decoding.adapters.folder import FindModel
from weft.decoding.diffusion.models.folder import is_diffusion, tokenizer_folder

if TYPE_CHECKING:
    from weft.decoding.diffusion.models.loading import DiffusionModel
    from weft.decoding.network.options import NetworkOptions

__all__ = ["is_diffusion", "load", "tokenizer_folder"]


def load(path: Path, options: NetworkOptions, *, find: FindModel | None = None) -> DiffusionModel:
    """Load a diffusion model's folder. `find` locates the base of an adapter folder by its name.

    Raises: `CapabilityError` naming file and key, where the folder is no diffusion model, is broken
    or calls for what is not run here; what `find` raises.
    """
    from weft.decoding.diffusion.models import loading

    return loading.load(path, options, find=find)
