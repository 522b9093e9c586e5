"""The decoder that a request names in its field `decode`. Knows none itself.

Who asks is not trusted: decoders that draft keep tables and read folders, and are for the workflow
file to name, and so are options that are text, for some of them name a file of this machine.
"""

from __future__ import annotations

import asyncio

from weft.core.errors import SpecError
from weft.core.values import AUTOREGRESSIVE, DecodeSpec
from weft.serving.gateway.problem import Refused, bad_request


async def named_decoder(text: str | None) -> DecodeSpec:
    """The decoder of that name; plain decoding where there is none. Raises: `Refused` with 400."""
    if text is None:
        return AUTOREGRESSIVE
    try:
        spec = await asyncio.to_thread(_parsed, text)
    except SpecError as error:
        raise bad_request(str(error), "decode", "invalid_value") from None
    except ImportError:
        raise _unsupported("decoders are named to models of this process; it has none") from None
    if words := [name for name, value in spec.options if isinstance(value, str)]:
        raise _unsupported(f"the decoder's option {words[0]!r} is for the workflow file to set")
    return spec


def _parsed(text: str) -> DecodeSpec:
    # the table of decoders brings torch along, which takes seconds, and may not be installed
    from weft.decoding.decoders import parse_decode
    from weft.decoding.diffusion.catalogue import NAMES
    from weft.decoding.plain import PLAIN_NAMES

    spec = parse_decode(text)
    if spec.method not in (*NAMES, *PLAIN_NAMES):
        raise _unsupported(f"the decoder {spec.method!r} is for the workflow file to name")
    return spec


def _unsupported(message: str) -> Refused:
    return bad_request(message, "decode", "unsupported")
