"""Decoders of one diffusion model: made when they are first asked for, the last few kept."""

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
_MOST = 32


@dataclass(frozen=True, slots=True)
class DiffusionDecoder:
    """How a text is written, what that is called, and whether it is plain decoding."""

    method: str
    config: DecoderConfig
    lossless: bool


class DiffusionDecoders:
    """`default` is what requests get that name no decoder; plain decoding where it names none."""

    def __init__(self, traits: ModelTraits, default: DecodeSpec = AUTOREGRESSIVE) -> None:
        self._traits = traits
        self._default = default
        self._made: OrderedDict[DecodeSpec, DiffusionDecoder] = OrderedDict()

    def decoder(self, decode: DecodeSpec) -> DiffusionDecoder:
        """Raises: `CapabilityError` for a decoder that is none, is for models of another kind, or
        may change the text where that was not asked for; what making it raises.
        """
        spec = self._default if decode == AUTOREGRESSIVE else decode
        if spec.method in PLAIN_NAMES:
            spec = PLAIN
        if spec not in self._made:
            try:
                self._made[spec] = self._make(spec)
            except SpecError as error:  # to who asks, it is what this model cannot do
                raise CapabilityError(error.message, hint=error.hint) from error
            if len(self._made) > _MOST:
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
