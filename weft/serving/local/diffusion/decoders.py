"""Decoders of one diffusion model: made at their first use, the latest cached."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from weft.core.errors import CapabilityError, SpecError
from weft.core.values import AUTOREGRESSIVE, DecodeSpec, Lossless
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.catalogue import NAMES, decoder_config, preset
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.options import PLAIN_NAMES
from weft.decoding.speculative import presets

PLAIN = Lossless("sequential")
_CACHE_SIZE = 32


@dataclass(frozen=True, slots=True)
class DiffusionDecoder:
    """A decoder: its method, its config, and whether it is plain decoding."""

    method: str
    config: DecoderConfig
    lossless: bool


class DiffusionDecoders:
    """Makes decoders. `default` is for requests that name none; else plain decoding."""

    def __init__(self, traits: ModelTraits, default: DecodeSpec = AUTOREGRESSIVE) -> None:
        self._traits = traits
        self._default = default
        self._made: OrderedDict[DecodeSpec, DiffusionDecoder] = OrderedDict()

    def decoder(self, decode: DecodeSpec) -> DiffusionDecoder:
        """Raises: `CapabilityError` for a decoder that is unknown, is for other kinds of models, or
        may change the text although the request asks for a lossless one; the errors of making it.
        """
        spec = self._default if decode == AUTOREGRESSIVE else decode
        if spec.method in PLAIN_NAMES:
            spec = PLAIN
        if spec not in self._made:
            try:
                self._made[spec] = self._make(spec)
            except SpecError as error:  # to the caller, this model lacks the decoder
                raise CapabilityError(error.message, hint=error.hint) from error
            if len(self._made) > _CACHE_SIZE:
                self._made.popitem(last=False)
        self._made.move_to_end(spec)
        return self._made[spec]

    def _make(self, spec: DecodeSpec) -> DiffusionDecoder:
        if spec.method in presets.NAMES:
            raise CapabilityError(
                f"the decoder {spec.method!r} drafts for models that write on, token by token; this"
                " is a diffusion model",
                hint=f"it has: {', '.join(NAMES)}",
            )
        plain = preset(spec.method).plain
        if isinstance(spec, Lossless) and not plain:
            raise CapabilityError(
                f"the decoder {spec.method!r} may change the text",
                hint="ask for it as a lossy one, if that is what you want",
            )
        return DiffusionDecoder(
            spec.method, decoder_config(spec.method, self._traits, dict(spec.options)), plain
        )
