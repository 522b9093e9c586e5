"""PaSS: trained look-ahead tokens after the last token draft a chain."""

from __future__ import annotations

from weft.core.errors import SpecError
from weft.decoding.network.network import Network
from weft.decoding.speculative.artefact import find
from weft.decoding.speculative.drafters.pass_ import Below, PassMethod, PassOptions
from weft.decoding.speculative.method import Method
from weft.decoding.speculative.options import switch, text, whole
from weft.decoding.speculative.preset import Options, Preset

KIND = "pass"
MOST_AHEAD = 16


def _make(network: Network, options: Options) -> Method:
    like = network.embed([0])
    asked = PassOptions(_below(options), switch(options, "drawn", default=False))
    most = whole(options, "num_speculative_tokens", MOST_AHEAD, 1, MOST_AHEAD)
    artefact = find(KIND, network, text(options, "model"))
    count = artefact.whole("ahead", 1, MOST_AHEAD)
    ahead = artefact.tensor("ahead", (count, network.width)).to(like.device, like.dtype)
    return PassMethod(ahead, asked, most)


def _below(options: Options) -> Below:
    match options.get("below", "last"):
        case "last" | "every" as below:
            return below
        case other:
            raise SpecError(f"below is {other!r}", hint="last or every")


PRESET = Preset(
    "pass",
    "trained look-ahead tokens after the last token draft a chain",
    _make,
    needs="look-ahead tokens trained for the model",
    options=("num_speculative_tokens", "model", "below", "drawn"),
)
