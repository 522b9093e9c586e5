"""The trained weights that come with weft, in a package of their own: `weft-weights`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from weft.core.errors import CapabilityError
from weft.core.extras import optional_packages


def shipped_weights(kind: Literal["diffusion", "planner", "speculative"]) -> Path:
    """The folder of the models or drafters of that kind, one subfolder each.

    Raises: `CapabilityError` that names the package where it is not installed.
    """
    with optional_packages("the weights that come with weft", CapabilityError):
        import weft_weights
    return weft_weights.folder(kind)
