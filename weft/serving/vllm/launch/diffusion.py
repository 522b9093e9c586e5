"""Launch of diffusion models: whether vLLM can run one here, and its arguments.

Refuses what vLLM's path for such models cannot do, before anything starts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from weft.core.errors import EngineMissing, SpecError
from weft.core.values import AUTOREGRESSIVE
from weft.decoding.diffusion.catalogue import NAMES
from weft.decoding.options import format_decoder
from weft.serving.extra_arguments import DECODE
from weft.serving.vllm.diffusion import ARCHITECTURES, CANVAS
from weft.serving.vllm.launch.engine import Engine, distribution_here, platform_of
from weft.serving.vllm.launch.spec import ServeSpec

if TYPE_CHECKING:
    from weft.decoding.diffusion.models.folder import ModelDescription


_WRITTEN_FOR: Final = "0.32."


@dataclass(frozen=True, slots=True)
class DiffusionSupport:
    """`why` lists what is missing; `vllm` is the installed version."""

    can: bool
    why: tuple[str, ...] = ()
    vllm: str | None = None

    @property
    def summary(self) -> str:
        """One line for the user."""
        if self.can:
            return f"vLLM {self.vllm}: can be tried, but weft never ran it there"
        return "not here: " + "; ".join(self.why)


def diffusion_support(
    here: Callable[[], tuple[str, str]] = distribution_here,
    platform: Callable[[str, str], str | None] = platform_of,
    has: Callable[[str], bool] = lambda name: find_spec(name) is not None,
) -> DiffusionSupport:
    """Support of the installed vLLM, from its version and the drivers."""
    try:
        distribution, version = here()
    except EngineMissing as missing:
        return DiffusionSupport(False, (missing.message,))
    why = []
    kind = platform(distribution, version)
    if kind == "cpu":
        why.append("this vLLM computes on the CPU, and its second model runner needs Triton")
    elif kind is None:
        why.append("this vLLM needs a GPU, and none is here")
    elif not has("triton"):
        why.append("Triton is not installed, which vLLM's second model runner needs")
    if not version.startswith(_WRITTEN_FOR):
        why.append(f"written for vLLM {_WRITTEN_FOR}x, and {version} is installed")
    return DiffusionSupport(not why, tuple(why), version)


ENVIRONMENT: Final[Mapping[str, str]] = MappingProxyType({"VLLM_USE_V2_MODEL_RUNNER": "1"})
"""Canvases need vLLM's second model runner."""
_PLAIN: Final = "sequential"
_CANVAS: Final = "--diffusion-config"
_LOCALLY: Final = (
    "`use: local` runs it in this process, and `weft gateway FILE --model NAME` serves that"
)


def canvas_model(folder: Path | None) -> ModelDescription | None:
    """The diffusion model in `folder`; None for other models, and without a folder.

    Raises: `CapabilityError` for a diffusion model that weft does not support.
    """
    if folder is None:
        return None
    # slow to import, so only on launch
    from weft.decoding.diffusion.models import is_diffusion
    from weft.decoding.diffusion.models.folder import describe

    return describe(folder) if is_diffusion(folder) else None


def refuse_canvases(spec: ServeSpec, engine: Engine, model: ModelDescription) -> None:
    """Raises: `SpecError` with the reason and an alternative."""
    here = diffusion_support(
        lambda: (engine.distribution, engine.version), lambda *_: engine.platform
    )
    if not here.can:
        raise SpecError(
            f"{spec.name} is a diffusion model, and vLLM cannot run one here: "
            + "; ".join(here.why),
            hint=_LOCALLY,
        )
    if model.body not in ARCHITECTURES:
        raise SpecError(
            f"{spec.name} is a {model.family.model_type}: weft's path in vLLM has no experts",
            hint=_LOCALLY,
        )
    if spec.adapters:
        raise SpecError(
            "vLLM's path for diffusion models takes no adapters",
            hint="merge them into the weights",
        )
    from weft.serving.vllm.diffusion.decoder import served_as

    served_as(model, _width(model), default_decoder(spec))


def canvas_arguments(spec: ServeSpec, model: ModelDescription) -> tuple[str, ...]:
    """Arguments for a diffusion model. Keeps a canvas that `spec.extra` sets."""
    width = _width(model)
    override = {"architectures": [ARCHITECTURES[model.body]], "canvas_length": width}
    given = any(word.partition("=")[0] == _CANVAS for word in spec.extra)
    return (
        *("--hf-overrides", _json(override)),
        *(() if given else (_CANVAS, _json({"canvas_length": width}))),
        *("--generation-config", "vllm"),  # the folder's own sets a temperature, which is refused
        *("--additional-config", _json({DECODE: default_decoder(spec)})),
    )


def default_decoder(spec: ServeSpec) -> str:
    """Default decoder of the server. Raises: `SpecError` for a decoder of other models."""
    if spec.decode == AUTOREGRESSIVE:
        return _PLAIN
    if spec.decode.method not in NAMES:
        raise SpecError(
            f"the decoder {spec.decode.method!r} is for models that write on, and {spec.name} is a"
            " diffusion model",
            hint=f"it has: {', '.join(NAMES)}",
        )
    return format_decoder(spec.decode)


def _width(model: ModelDescription) -> int:
    return model.traits.block or CANVAS


def _json(config: Mapping[str, object]) -> str:
    return json.dumps(config, separators=(",", ":"))
