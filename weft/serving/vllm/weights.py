"""Where weights are: weft's own shelf, a folder, or a hub's name that vLLM fetches. Reads none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from weft.core.errors import ModelNotFound
from weft.core.values import DecodeSpec
from weft.serving.vllm.spec import ServeSpec
from weft.serving.weights import locate

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_CODE = "custom_class"


@dataclass(frozen=True, slots=True)
class Weights:
    """What to tell the engine, the folder if the weights are on this machine, and the draft's."""

    argument: str
    folder: Path | None
    draft: Weights | None = None

    @property
    def here(self) -> bool:
        """Whether all that is needed is on this machine, so that no hub has to be asked."""
        return self.folder is not None and (self.draft is None or self.draft.here)


def find_weights(spec: ServeSpec) -> Weights:
    """The weights of the model and of the draft model, if there is one.

    Raises: `ModelNotFound` where one is neither installed, nor a folder, nor like `owner/name`.
    """
    model = _find(spec.model)
    return Weights(model.argument, model.folder, _draft(spec.decode))


def _draft(decode: DecodeSpec) -> Weights | None:
    name = dict(decode.options).get("model")
    return _find(str(name)) if name is not None and decode.method != _CODE else None


def _find(name: str) -> Weights:
    try:
        folder = locate(name)
    except ModelNotFound:
        if _HUB_NAME.fullmatch(name) and not Path(name).exists():
            return Weights(name, None)
        raise
    return Weights(str(folder), folder)
