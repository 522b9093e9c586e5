"""The embedded model, read from its file once for all tests of a session."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tests.serving.local.playback import EXACT
from weft.serving.weights import locate

if TYPE_CHECKING:
    from weft.decoding.network.network import Network

NAME = "smollm2-135m-instruct"


@cache
def network() -> Network:
    """Whoever takes it finds it empty: see the fixture `smollm2_network`."""
    from weft.decoding.network.network import Network

    return Network.load(locate(NAME), EXACT)
