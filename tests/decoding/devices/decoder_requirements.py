"""What decoders of list models cannot do without."""

from __future__ import annotations

from weft.decoding.diffusion.oracle import vocabulary as words
from weft.serving.weights import locate

GIVEN: dict[str, dict[str, str | int]] = {
    "flashdlm": {"supervisor": str(locate("list-ar"))},
    "llada22": {
        "keep": words.index_id(13),
        "delete": words.index_id(14),
        "insert": words.index_id(15),
    },
}
