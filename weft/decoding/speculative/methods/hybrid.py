"""Counts of suffixes where they are sure, else a long copy: both cost next to nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.decoding.speculative.drafters.hybrid import Hybrid
from weft.decoding.speculative.drafters.lookup import Lookup
from weft.decoding.speculative.drafters.suffix.drafter import SuffixOptions
from weft.decoding.speculative.drafters.suffix.remembered import Remembered
from weft.decoding.speculative.drafters.suffix.shared import Shared
from weft.decoding.speculative.lengths import Always
from weft.decoding.speculative.method import Method, Single
from weft.decoding.speculative.methods.suffix import shared_of
from weft.decoding.speculative.options import whole
from weft.decoding.speculative.preset import Options, Preset
from weft.decoding.speculative.speculation import MOST_NODES

if TYPE_CHECKING:
    from weft.decoding.network.network import Network
    from weft.decoding.speculative.drafter import Drafter


class HybridMethod(Single):
    """Implements `Method`. `shared` is what earlier sequences wrote; None: nothing is kept."""

    def __init__(self, options: SuffixOptions, shared: Shared | None, most: int) -> None:
        super().__init__(
            "hybrid",
            lambda: Hybrid(Remembered(options, shared), Lookup()),
            lambda: Always(most),
        )
        self.shared = shared

    def end(self, drafter: Drafter) -> None:
        if self.shared is not None and isinstance(drafter, Hybrid):
            self.shared.remember(drafter.suffixes.written)


def _make(network: Network, options: Options) -> Method:  # noqa: ARG001 - tokens are all it needs
    most = whole(options, "num_speculative_tokens", 8, 1, MOST_NODES)
    sizes = SuffixOptions(depth=whole(options, "depth", 24, 2, 64))
    return HybridMethod(sizes, shared_of(options), most)


PRESET = Preset(
    "hybrid",
    "suffix where its counts are sure, else lookup",
    _make,
    options=("num_speculative_tokens", "depth", "shared", "nodes"),
)
