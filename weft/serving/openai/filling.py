"""What a server that fills canvases in is told otherwise than one that writes on; does no I/O.

Which it is, its metrics say. How it fills, weft's plugin in it decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from weft.core.errors import CapabilityError, SpecError
from weft.core.ports.model import ModelRequest
from weft.core.values import AUTOREGRESSIVE, Lossless
from weft.decoding.option_text import spelt
from weft.decoding.plain import PLAIN_NAMES
from weft.serving.extra_arguments import DECODE, FIELD, SEED, TEMPERATURE
from weft.serving.openai.server import Server

_ELSEWHERE: Final = {"temperature": TEMPERATURE, "seed": SEED}
_PLAIN: Final = "sequential"


def check_decoder(request: ModelRequest, server: Server) -> None:
    """Raises: `CapabilityError` for a decoder that this server cannot be asked for per call."""
    asked = request.decode
    if asked == AUTOREGRESSIVE or (server.diffuses and asked.method in PLAIN_NAMES):
        return
    if not server.diffuses:
        raise CapabilityError(
            f"this server cannot be asked for the decoder {asked.method!r} per call",
            hint="a server is started with its decoder; only those of diffusion models take others",
        )
    from weft.decoding.diffusion.catalogue import preset

    try:
        plain = preset(asked.method).plain
    except SpecError as error:
        raise CapabilityError(error.message, hint=error.hint) from error
    if isinstance(asked, Lossless) and not plain:
        raise CapabilityError(
            f"the decoder {asked.method!r} may change the text",
            hint="ask for it as a lossy one, if that is what you want",
        )


def filled(body: dict[str, Any], request: ModelRequest, server: Server) -> dict[str, Any]:
    """The body with decoder, temperature and seed where a server that fills in looks for them."""
    given = body.get(FIELD, {})
    if not server.diffuses or not isinstance(given, Mapping):
        return body
    rest = {name: value for name, value in body.items() if name not in _ELSEWHERE}
    ours = {_ELSEWHERE[name]: value for name, value in body.items() if name in _ELSEWHERE}
    if request.decode != AUTOREGRESSIVE:
        plain = request.decode.method in PLAIN_NAMES
        ours[DECODE] = _PLAIN if plain else spelt(request.decode)
    return {**rest, FIELD: {**given, **ours}} if ours else rest
