"""The decoder of a request, from vLLM's `extra_args`, and what vLLM's path can carry out.

That path allows one query per row and step, a fixed canvas, and no second model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from weft.core.errors import SpecError, WeftError
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.catalogue import decoder_config, parse_diffusion
from weft.decoding.diffusion.models.folder import ModelDescription
from weft.decoding.diffusion.policies.history import SmoothingPolicy
from weft.decoding.diffusion.policies.uniform_state import UniformStatePolicy
from weft.decoding.diffusion.ports import (
    DecoderConfig,
    MovingScheduleSession,
    ProbingSession,
    ShadowReadingSession,
)
from weft.decoding.diffusion.schedules import FixedBlocks
from weft.serving.extra_arguments import DECODE, NODE, SEED, TEMPERATURE

_OURS: Final = (DECODE, TEMPERATURE, SEED)
_OTHERS: Final = frozenset({NODE})
"""Arguments that weft's client sends to any model; they do not concern the decoder."""
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class DecoderRequest:
    """Decoder of a request: a preset with options. `temperature` 0 takes the likeliest tokens.

    vLLM has neither temperature nor seed for diffusion models; they come as extra arguments.
    """

    decode: str
    options: tuple[tuple[str, str | int | float | bool], ...] = ()
    temperature: float = 0.0
    seed: int = 0


def decoder_request_of(extra: Mapping[str, object] | None, default: str) -> DecoderRequest:
    """The request in `extra`; `default` is the decoder if it names none.

    Raises: `SpecError` for unknown keys and wrong values, naming the key.
    """
    given = {} if extra is None else extra
    for key in given:
        known = key in _OURS or key in _OTHERS
        if key.startswith(("weft_", "diffusion_")) and not known:
            raise SpecError(
                f"extra_args has {key!r}, which this model does not understand",
                hint=f"it understands {', '.join(_OURS)}",
            )
    text = given.get(DECODE, default)
    if not isinstance(text, str) or not 0 < len(text) <= _LONGEST:
        raise SpecError(f"{DECODE} is no name of a decoder", hint='write "threshold:0.9"')
    spec = parse_diffusion(text)
    return DecoderRequest(spec.method, spec.options, _temperature(given), _seed(given))


def _temperature(given: Mapping[str, object]) -> float:
    value = given.get(TEMPERATURE, 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 2.0:
        raise SpecError(f"{TEMPERATURE} is {value!r}, no number from 0 to 2")
    return float(value)


def _seed(given: Mapping[str, object]) -> int:
    value = given.get(SEED, 0)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise SpecError(f"{SEED} is no whole number from 0 to 2**63 - 1")
    return value


_PLAIN: Final = "threshold"


@dataclass(frozen=True, slots=True)
class ServedCanvas:
    """A served model; `width` is the length of vLLM's canvas in slots.

    `preset` is the decoder of requests that name none, in text form.

    Raises: `SpecError` unless the canvas fits the model's blocks and the model has a mask.
    """

    traits: ModelTraits
    preset: str
    width: int

    def __post_init__(self) -> None:
        block = self.traits.block
        if self.width < 1 or (block and self.width != block):
            raise SpecError(
                f"a canvas of {self.width} slots for a model with blocks of {block}",
                hint=f"take `--diffusion-config '{{\"canvas_length\": {block or 64}}}'`",
            )
        if self.traits.mask_id is None:
            raise SpecError("a model without a mask is not filled here")


def served_as(model: ModelDescription, width: int, default: object = None) -> ServedCanvas:
    """The served canvas, with `default` as the decoder of requests that name none.

    None: the model's own decoder, or `threshold` where vLLM's path cannot carry that out.

    Raises: `SpecError` for a `default` that the path cannot carry out; see `ServedCanvas`.
    """
    served = ServedCanvas(model.traits, model.preset, width)
    if default is not None:
        served = replace(served, preset=str(default))
    try:
        served_config(decoder_request_of(None, served.preset), served)
    except WeftError:
        if default is not None:
            raise
        return replace(served, preset=_PLAIN)
    return served


def served_config(request: DecoderRequest, served: ServedCanvas) -> DecoderConfig:
    """Parts of the requested decoder, except the cache, which the row provides.

    Raises: `SpecError` for an unknown decoder or option, and for one that vLLM's path cannot carry
    out; the errors of `DiffusionPreset.make`.
    """
    traits = served.traits
    config = decoder_config(request.decode, traits, dict(request.options))
    config = replace(config, schedule=_schedule(request.decode, config, served), keep=True)
    _check(request.decode, config, traits)
    return config


def _schedule(name: str, config: DecoderConfig, served: ServedCanvas) -> FixedBlocks:
    schedule = config.schedule
    if not isinstance(schedule, FixedBlocks):
        raise _refused(name, "chooses its blocks while it writes; inside vLLM they are fixed")
    size = schedule.size or served.width
    return replace(schedule, size=size if served.width % size == 0 else served.width)


def _check(name: str, config: DecoderConfig, traits: ModelTraits) -> None:
    if config.guidance or config.verifiers:
        raise _refused(name, "asks another time or another model about each step")
    if isinstance(config.commit, SmoothingPolicy | UniformStatePolicy):
        raise _refused(name, "reads slots as mixtures of tokens")
    mask = 0 if traits.mask_id is None else traits.mask_id
    commits = config.commit.begin(Canvas([mask], 1, mask), traits)
    if isinstance(commits, ProbingSession):
        raise _refused(name, "looks again before it decides")
    if isinstance(commits, ShadowReadingSession):
        raise _refused(name, "looks at decided slots as if they were masked")
    if isinstance(config.schedule.begin(Canvas([mask], 1, mask), traits), MovingScheduleSession):
        raise _refused(name, "moves its blocks while it writes")


def _refused(name: str, why: str) -> SpecError:
    return SpecError(
        f"the decoder {name!r} {why}: vLLM's diffusion path cannot do that",
        hint="run the model in this process (use: local), or take another decoder",
    )
