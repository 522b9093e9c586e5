"""Programs of weft on a cluster whose replicas have scripted servers.

`python -m tests.cluster.scripted_program SOCKET ADDRESS` is the bridge,
`python -m tests.cluster.scripted_program weft ARGUMENTS...` the command line.
"""

from __future__ import annotations

import sys

from tests.cluster.scripted_replica import COMMAND, ScriptedPlacer
from weft.cluster import bridge, replicas
from weft.cluster.replica_bridge import ReplicaBridge

if __name__ == "__main__":
    if sys.argv[1] == "weft":
        replicas.REPLICAS = COMMAND
        from weft.cli.main import app

        app(sys.argv[2:])
    placer = ScriptedPlacer(sys.argv[2])
    bridge.run(sys.argv[1], placer.connect(), ReplicaBridge(placer))
