"""The program of a rank that is not the first: load, meet the others, draft along, line by line.

Its parent speaks first: a line with the layout, then one for each draft. It ends with its input,
and when a rank is lost.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from weft.decoding.speculative.drafters.model.layer_parallel.layered import (
    DraftJob,
    LayerParallelModel,
    RankChannel,
    load_shards,
)
from weft.decoding.speculative.drafters.model.layer_parallel.processes import (
    READY,
    join_group,
    join_store,
)
from weft.decoding.speculative.drafters.model.layer_parallel.shard import ShardLayout


def main() -> None:
    """Run until the input ends."""
    told = json.loads(sys.stdin.readline())
    layered = _meet(told)
    for line in sys.stdin:
        layered.draft(
            [DraftJob(**{**job, "tokens": tuple(job["tokens"])}) for job in json.loads(line)]
        )


def _meet(told: dict[str, Any]) -> LayerParallelModel:
    layout = ShardLayout.from_json(told["layout"])
    rank = told["rank"]
    loaded = load_shards(layout, (rank,))
    store = join_store(told["port"], layout.ranks, told["start_s"])
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nobody listens there from now on
    device = loaded.shards[0].device
    group = join_group(store, rank, layout.ranks, device, told["exchange_s"])
    return LayerParallelModel(loaded.shards, RankChannel(group), loaded.groups, layout.threads)


if __name__ == "__main__":
    main()
