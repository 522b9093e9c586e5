"""What a target's passes take on this machine: measured at first use, then remembered.

In the process, and on the user's shelf under a name that stands for the model and the machine.
"""

from __future__ import annotations

import hashlib
import math
import platform
import threading
from typing import Final

import torch

from weft.core.ports.clock import Clock, SystemClock
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.speculative.artefact import Fingerprint
from weft.decoding.speculative.budget import shelf
from weft.decoding.speculative.budget.costs import Costs
from weft.decoding.speculative.budget.measure import CONTEXTS, SIZES, measured

_WITHIN_S: Final = 1.5
_known: dict[str, Costs] = {}
_measuring = threading.Lock()


def costs_of(network: Network, clock: Clock | None = None) -> Costs:
    """Of a loaded model, as it is computed now. Takes under two seconds the first time.

    Rows that are running are left alone: it reads into a cache of its own.
    """
    name = _name(network)
    with _measuring:
        if name not in _known:
            path = shelf.shelf() / f"costs-{name}.json"
            found = _parsed(shelf.read(path))
            if found is None:
                found = measure(network, clock or SystemClock(), _WITHIN_S)
                shelf.write(path, {str(c): list(t.items()) for c, t in found.measured.items()})
            _known[name] = found
        return _known[name]


def measure(network: Network, clock: Clock, within_s: float) -> Costs:
    """Measure now, whatever is remembered. What stands in the cache does not change the time."""
    scratch = network.share(network.layers)
    room = scratch.context_tokens - max(SIZES)
    contexts = sorted({min(context, max(room, 0)) for context in CONTEXTS})
    wait = torch.cuda.synchronize if scratch.embed([0]).is_cuda else None

    def read(context: int, tokens: int) -> None:
        columns = range(context, context + tokens)
        scratch.forward([Span(0, columns, [0] * tokens, tokens)])
        if wait is not None:
            wait()

    return measured(read, clock, within_s, contexts)


def _name(network: Network) -> str:
    row = network.embed([0])
    model = Fingerprint.of(network)
    threads = torch.get_num_threads()
    kept = (str(row.dtype), network.quantization, torch.__version__)
    where = (platform.node(), platform.processor(), str(row.device), threads)
    return hashlib.sha256(repr((model, kept, where)).encode()).hexdigest()[:32]


def _parsed(value: object) -> Costs | None:
    """What `costs_of` wrote; None for anything else."""
    if not isinstance(value, dict):
        return None
    try:
        times = {int(c): {int(n): float(s) for n, s in of} for c, of in value.items()}
        if any(not math.isfinite(s) for of in times.values() for s in of.values()):
            return None
        return Costs(times)
    except (TypeError, ValueError, OverflowError):
        return None
