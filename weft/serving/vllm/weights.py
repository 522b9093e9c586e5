"""Where a model's weights are: weft's own shelf, a folder, or a hub's name that vLLM fetches.

Reads no weights.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from weft.core.errors import ModelNotFound
from weft.serving.weights import locate

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True, slots=True)
class Weights:
    """What to tell the engine, and the folder if the weights are on this machine."""

    argument: str
    folder: Path | None


def find_weights(model: str) -> Weights:
    """The weights that `model` names.

    Raises: `ModelNotFound` where it is neither installed, nor a folder, nor like `owner/name`.
    """
    try:
        folder = locate(model)
    except ModelNotFound:
        if _HUB_NAME.fullmatch(model) and not Path(model).exists():
            return Weights(model, None)
        raise
    return Weights(str(folder), folder)
