"""PEARL (arXiv 2408.11850): draft model and target at work at the same time."""

from __future__ import annotations

from weft.core.ports.clock import SystemClock
from weft.decoding.network.network import Network
from weft.decoding.speculative.drafters.model.cache import DraftCache
from weft.decoding.speculative.drafters.model.opening import opened
from weft.decoding.speculative.drafters.overlapped.gamma import Gamma
from weft.decoding.speculative.drafters.overlapped.method import Overlapped
from weft.decoding.speculative.drafters.overlapped.pearl import Pearl
from weft.decoding.speculative.drafters.overlapped.worker import Inline, Threaded, Worker
from weft.decoding.speculative.method import Method
from weft.decoding.speculative.options import switch, text, whole
from weft.decoding.speculative.preset import Options, Preset
from weft.decoding.speculative.speculation import MOST_NODES

OPTIONS = ("model", "layers", "num_speculative_tokens", "overlap")
START = 4


def _make(network: Network, options: Options) -> Method:
    longest = whole(options, "num_speculative_tokens", 8, 1, MOST_NODES)
    now = SystemClock().now
    adaptive = switch(options, "adaptive", default=True)
    start = START if adaptive else longest
    return Overlapped(
        "pearl",
        draft_cache(network, options),
        worker("pearl", options),
        Gamma(start, longest, now, adaptive=adaptive),
        Pearl(),
        now,
        longest,
    )


def draft_cache(network: Network, options: Options) -> DraftCache:
    """The draft model of the options `model` or `layers`, for sequences of `network`."""
    layers = whole(options, "layers", 0, 0, network.layers - 1)
    draft = opened(network, text(options, "model"), layers)
    return DraftCache(draft, network.vocabulary_size)


def worker(name: str, options: Options) -> Worker:
    """A thread; with `overlap` off none, for the same drafts one after the other."""
    return Threaded(f"weft-{name}") if switch(options, "overlap", default=True) else Inline()


PRESET = Preset(
    "pearl",
    "a draft model that goes on while the target verifies, in a thread of its own (PEARL)",
    _make,
    needs="a draft model: model=FOLDER, else the target's first `layers`",
    options=(*OPTIONS, "adaptive"),
)
