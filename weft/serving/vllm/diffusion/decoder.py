"""The decoder that a request asks for in vLLM's `extra_args`, as far as vLLM can carry it out.

One query a row and step, the canvas where it is, and no second model.
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
"""What weft's client sends whatever the model: no wish about its decoder."""
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class DecoderRequest:
    """`decode` is a preset's name, `options` are its own. `temperature` 0 takes what is likeliest.

    vLLM itself has no temperature and no seed for diffusion models: they are asked for here.
    """

    decode: str
    options: tuple[tuple[str, str | int | float | bool], ...] = ()
    temperature: float = 0.0
    seed: int = 0


def decoder_request_of(extra: Mapping[str, object] | None, usual: str) -> DecoderRequest:
    """What `extra` asks; `usual` is the decoder where it names none.

    Raises: `SpecError` for what no decoder understands, naming the key.
    """
    given = {} if extra is None else extra
    for key in given:
        known = key in _OURS or key in _OTHERS
        if key.startswith(("weft_", "diffusion_")) and not known:
            raise SpecError(
                f"extra_args has {key!r}, which this model does not understand",
                hint=f"it understands {', '.join(_OURS)}",
            )
    text = given.get(DECODE, usual)
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
    """A model as it is served: `width` slots of vLLM's canvas.

    `preset` is the decoder of requests that name none, as people write it.

    Raises: `SpecError` for a canvas that is no whole number of the model's blocks.
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


def served_as(found: ModelDescription, width: int, usual: object = None) -> ServedCanvas:
    """With `usual` as the decoder of requests that name none.

    None: the model's own decoder, or `threshold` where vLLM's path cannot carry that out.

    Raises: `SpecError` for a decoder that it cannot carry out; see `ServedCanvas`.
    """
    served = ServedCanvas(found.traits, found.preset, width)
    if usual is not None:
        served = replace(served, preset=str(usual))
    try:
        served_config(decoder_request_of(None, served.preset), served)
    except WeftError:
        if usual is not None:
            raise
        return replace(served, preset=_PLAIN)
    return served


def served_config(asked: DecoderRequest, served: ServedCanvas) -> DecoderConfig:
    """Plugs of the decoder that was asked for; its cache is left to who begins a row.

    Raises: `SpecError` for a decoder or an option that there is not, or that vLLM's path cannot
    carry out; what `DiffusionPreset.make` raises.
    """
    traits = served.traits
    config = decoder_config(asked.decode, traits, dict(asked.options))
    config = replace(config, schedule=_schedule(asked.decode, config, served), keep=True)
    _check(asked.decode, config, traits)
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
