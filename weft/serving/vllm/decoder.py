"""Decoders of servers, of whichever kind of model. Knows no model: which fits is told later."""

from __future__ import annotations

from weft.core.values import DecodeSpec
from weft.decoding.diffusion.catalogue import NAMES
from weft.decoding.diffusion.spelling import parse_diffusion
from weft.serving.vllm.speculative import parse_decode as parse_speculative


def parse_decode(text: str) -> DecodeSpec:
    """A decoder of vLLM's own, or one of a diffusion model, as people write it.

    Raises: `SpecError`.
    """
    name = text.partition(",")[0].partition(":")[0].strip()
    return parse_diffusion(text) if name in NAMES else parse_speculative(text)
