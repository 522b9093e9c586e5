"""The bridge to a cluster on which replicas have scripted servers."""

from __future__ import annotations

import sys

from tests.cluster.scripted_replica import ScriptedPlacer
from weft.cluster import bridge
from weft.cluster.replica_bridge import ReplicaBridge

if __name__ == "__main__":
    placer = ScriptedPlacer(sys.argv[2])
    bridge.run(sys.argv[1], placer.connect(), ReplicaBridge(placer))
