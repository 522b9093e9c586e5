"""Parsing of every named decoder: autoregressive ones and those of diffusion models.

Constructs none, and imports only the modules of the named one.
"""

from __future__ import annotations

from weft.core.errors import SpecError
from weft.core.suggestion import closest
from weft.core.values import DecodeSpec
from weft.decoding.diffusion import catalogue
from weft.decoding.diffusion.catalogue import parse_diffusion
from weft.decoding.options import PLAIN_NAMES
from weft.decoding.speculative import presets
from weft.decoding.speculative.presets import parse_decode as parse_speculative


def parse_decode(text: str) -> DecodeSpec:
    """The decoder that `text` names, of either kind of model.

    Raises: `SpecError` for a name or an option that no decoder has.
    """
    name = text.partition(",")[0].partition(":")[0].strip()
    if name in catalogue.NAMES:
        return parse_diffusion(text)
    if name in (*PLAIN_NAMES, *presets.NAMES, *presets.NOT_HERE):
        return parse_speculative(text)
    raise SpecError(f"there is no decoder {name!r}", hint=_hint(name))


def _hint(name: str) -> str:
    names = (*presets.NAMES, *catalogue.NAMES)
    word, equals, value = name.partition("=")
    if equals and word in names:
        return f"write {word}:{value}"
    if close := closest(name, names):
        return f"did you mean {close!r}? `weft decoders` lists those there are"
    return (
        f"there are: {', '.join(presets.NAMES)}; for diffusion models: {', '.join(catalogue.NAMES)}"
    )
