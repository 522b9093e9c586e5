"""What a request asks of the decoder, in vLLM's `extra_args`. Knows neither torch nor vLLM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from weft.core.errors import SpecError
from weft.decoding.diffusion.spelling import parse_diffusion
from weft.serving.extra_arguments import DECODE, NODE, SEED, TEMPERATURE

_OURS: Final = (DECODE, TEMPERATURE, SEED)
_OTHERS: Final = frozenset({NODE})
"""What weft's client sends whatever the model: no wish about its decoder."""
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Asked:
    """`decode` is a preset's name, `options` are its own. `temperature` 0 takes what is likeliest.

    vLLM itself has no temperature and no seed for diffusion models: they are asked for here.
    """

    decode: str
    options: tuple[tuple[str, str | int | float | bool], ...] = ()
    temperature: float = 0.0
    seed: int = 0


def asked_of(extra: Mapping[str, object] | None, usual: str) -> Asked:
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
    return Asked(spec.method, spec.options, _temperature(given), _seed(given))


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
