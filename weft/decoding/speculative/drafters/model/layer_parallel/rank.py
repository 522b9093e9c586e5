"""The program of every rank but the first: load, meet the others, then draft, line by line.

Its input has a line with the layout, then one for each draft. It ends with its input, and when a
rank is lost.
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
    config = json.loads(sys.stdin.readline())
    layered = _meet(config)
    for line in sys.stdin:
        layered.draft(
            [DraftJob(**{**job, "tokens": tuple(job["tokens"])}) for job in json.loads(line)]
        )


def _meet(config: dict[str, Any]) -> LayerParallelModel:
    layout = ShardLayout.from_json(config["layout"])
    rank = config["rank"]
    loaded = load_shards(layout, (rank,))
    store = join_store(config["port"], layout.ranks, config["start_s"])
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the parent no longer reads the pipe
    device = loaded.shards[0].device
    group = join_group(store, rank, layout.ranks, device, config["exchange_s"])
    return LayerParallelModel(loaded.shards, RankChannel(group), loaded.groups, layout.threads)


if __name__ == "__main__":
    main()
