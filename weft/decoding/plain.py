"""Plain decoding by name, for models of either kind. Knows no other decoder."""

from __future__ import annotations

from typing import Final

from weft.core.values import Lossless

PLAIN: Final = Lossless("none")
"""For who asks for it, where a request that says nothing gets the model's own decoder."""
PLAIN_NAMES: Final = ("autoregressive", PLAIN.method)
