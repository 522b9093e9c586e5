"""A draft model over processes: this one is the first rank, and starts and ends the others."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import asdict

from weft.core.errors import ModelUnavailable, StartError
from weft.decoding.speculative.drafters.layer_parallel.child import Child
from weft.decoding.speculative.drafters.layer_parallel.connect import join_group, open_store
from weft.decoding.speculative.drafters.layer_parallel.layered import Job, Layered
from weft.decoding.speculative.drafters.layer_parallel.layout import Layout
from weft.decoding.speculative.drafters.layer_parallel.team import Loaded, load
from weft.decoding.speculative.drafters.layer_parallel.wire import GroupWire

START_S = 120.0
EXCHANGE_S = 60.0


class Ranks:
    """Implements `Team` over `layout.ranks` processes on this machine.

    start_s     how long the other processes may take to come up
    exchange_s  how long ranks wait for one another within a draft

    Raises: `StartError` when they do not come up; what `load` raises.
    """

    def __init__(
        self, layout: Layout, start_s: float = START_S, exchange_s: float = EXCHANGE_S
    ) -> None:
        loaded = load(layout, (0,))  # first: what is wrong with the model is told from here
        self.context_tokens = loaded.context_tokens
        self.forwards = 0
        self._children: list[Child] = []
        self._layered: Layered | None = None
        self._ending = threading.Lock()
        try:
            self._layered = self._started(layout, loaded, start_s, exchange_s)
        except RuntimeError as error:
            self.close()
            raise StartError(f"the ranks of the draft model did not meet: {error}") from error
        except BaseException:
            self.close()
            raise

    def draft(self, jobs: Sequence[Job]) -> list[list[int]]:
        layered = self._layered
        if layered is None:
            raise ModelUnavailable("the ranks of the draft model are gone", retryable=False)
        try:
            for child in self._children:
                child.tell([asdict(job) for job in jobs])
            drafts = layered.draft(jobs)
        except (RuntimeError, OSError) as error:
            self.close()
            raise ModelUnavailable(f"a rank of the draft model was lost: {error}") from error
        except BaseException:
            self.close()  # the others wait for what will not come
            raise
        self.forwards = layered.forwards
        return drafts

    def close(self) -> None:
        with self._ending:
            layered, self._layered = self._layered, None
            if layered is not None:
                layered.close()
            while self._children:
                self._children.pop().close()

    def _started(
        self, layout: Layout, loaded: Loaded, start_s: float, exchange_s: float
    ) -> Layered:
        store = open_store(layout.ranks, start_s)
        for rank in range(1, layout.ranks):
            told = {
                "layout": layout.to_json(),
                "rank": rank,
                "port": store.port,
                "start_s": start_s,
                "exchange_s": exchange_s,
            }
            self._children.append(Child(rank, told))
        for child in self._children:
            child.wait_until_ready(start_s)
        device = loaded.shards[0].device
        group = join_group(store, 0, layout.ranks, device, exchange_s)
        return Layered(loaded.shards, GroupWire(group), loaded.groups, layout.threads)
