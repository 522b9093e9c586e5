"""How a server of a diffusion model is started: what vLLM is told beside what it always is.

Refuses what vLLM's path for such models cannot do before anything is started. Starts nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from weft.core.errors import SpecError
from weft.core.values import AUTOREGRESSIVE
from weft.decoding.diffusion.catalogue import NAMES
from weft.decoding.option_text import spelt
from weft.serving.extra_arguments import DECODE
from weft.serving.vllm.diffusion.architectures import ARCHITECTURES, CANVAS
from weft.serving.vllm.diffusion.probe import probe
from weft.serving.vllm.installed import Engine
from weft.serving.vllm.spec import ServeSpec

if TYPE_CHECKING:
    from weft.decoding.diffusion.models.description import Description

ENVIRONMENT: Final[Mapping[str, str]] = MappingProxyType({"VLLM_USE_V2_MODEL_RUNNER": "1"})
"""Without the second model runner there are no canvases."""
_PLAIN: Final = "sequential"
_CANVAS: Final = "--diffusion-config"
_LOCALLY: Final = (
    "`use: local` runs it in this process, and `weft gateway FILE --model NAME` serves that"
)


def canvas_model(folder: Path | None) -> Description | None:
    """The diffusion model in `folder`; None for a model that writes on, or is not here.

    Raises: `CapabilityError` for one that weft does not run.
    """
    if folder is None:
        return None
    # what these read with is only loaded where something is launched
    from weft.decoding.diffusion.models import is_diffusion
    from weft.decoding.diffusion.models.description import described

    return described(folder) if is_diffusion(folder) else None


def refuse_canvases(spec: ServeSpec, engine: Engine, found: Description) -> None:
    """Raises: `SpecError`, with the reason and what to do instead."""
    here = probe(lambda: (engine.distribution, engine.version), lambda *_: engine.platform)
    if not here.can:
        raise SpecError(
            f"{spec.name} is a diffusion model, and vLLM cannot run one here: "
            + "; ".join(here.why),
            hint=_LOCALLY,
        )
    if spec.adapters:
        raise SpecError(
            "vLLM's path for diffusion models takes no adapters",
            hint="merge them into the weights",
        )
    from weft.serving.vllm.diffusion.plugs import served_as

    served_as(found, _width(found), default_decoder(spec))


def canvas_arguments(spec: ServeSpec, found: Description) -> tuple[str, ...]:
    """Beside those of every server. A canvas that `spec.extra` gives is left alone."""
    width = _width(found)
    override = {"architectures": [ARCHITECTURES[found.body]], "canvas_length": width}
    given = any(word.partition("=")[0] == _CANVAS for word in spec.extra)
    return (
        *("--hf-overrides", _json(override)),
        *(() if given else (_CANVAS, _json({"canvas_length": width}))),
        *("--generation-config", "vllm"),  # the folder's own says a temperature, which is refused
        *("--additional-config", _json({DECODE: default_decoder(spec)})),
    )


def default_decoder(spec: ServeSpec) -> str:
    """What requests get that ask for none. Raises: `SpecError` for a decoder of other models."""
    if spec.decode == AUTOREGRESSIVE:
        return _PLAIN
    if spec.decode.method not in NAMES:
        raise SpecError(
            f"the decoder {spec.decode.method!r} is for models that write on, and {spec.name} is a"
            " diffusion model",
            hint=f"it has: {', '.join(NAMES)}",
        )
    return spelt(spec.decode)


def _width(found: Description) -> int:
    return found.traits.block or CANVAS


def _json(said: Mapping[str, object]) -> str:
    return json.dumps(said, separators=(",", ":"))
