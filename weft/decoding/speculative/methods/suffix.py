"""SuffixDecoding (arXiv 2411.04975): counts of what followed, in the text and in earlier ones.

What sequences wrote is remembered for the next ones, unless `shared` is false: siblings of a
program and runs of the same node write alike. It decides how fast they are, and no token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.decoding.speculative.drafters.suffix.drafter import SuffixOptions
from weft.decoding.speculative.drafters.suffix.remembered import Remembered
from weft.decoding.speculative.drafters.suffix.shared import Shared
from weft.decoding.speculative.lengths import Always
from weft.decoding.speculative.method import Method, Single
from weft.decoding.speculative.options import share, switch, whole
from weft.decoding.speculative.preset import Options, Preset
from weft.decoding.speculative.speculation import MOST_NODES

if TYPE_CHECKING:
    from weft.decoding.network.network import Network
    from weft.decoding.speculative.drafter import Drafter


class SuffixMethod(Single):
    """Implements `Method`. `shared` is what earlier sequences wrote; None: nothing is kept."""

    def __init__(self, options: SuffixOptions, shared: Shared | None, most: int) -> None:
        super().__init__("suffix", lambda: Remembered(options, shared), lambda: Always(most))
        self.shared = shared

    def end(self, drafter: Drafter) -> None:
        if self.shared is not None and isinstance(drafter, Remembered):
            self.shared.remember(drafter.written)


def shared_of(options: Options) -> Shared | None:
    """The texts that the sequences of one method share, if they do. Raises: `SpecError`."""
    depth = whole(options, "depth", 24, 2, 64)
    nodes = whole(options, "nodes", 500_000, 1000, 50_000_000)
    return Shared(depth, nodes) if switch(options, "shared", default=True) else None


def _make(network: Network, options: Options) -> Method:  # noqa: ARG001 - tokens are all it needs
    sizes = SuffixOptions(
        depth=whole(options, "depth", 24, 2, 64),
        factor=whole(options, "factor", 1, 1, 16),
        least=share(options, "least", 0.1),
        tree=switch(options, "tree", default=False),
    )
    most = whole(options, "num_speculative_tokens", 16, 1, MOST_NODES)
    return SuffixMethod(sizes, shared_of(options), most)


PRESET = Preset(
    "suffix",
    "counts of what followed every suffix, in this text and in those of earlier requests",
    _make,
    options=(
        "num_speculative_tokens",
        "depth",
        "factor",
        "least",
        "tree",
        "shared",
        "nodes",
    ),
)
