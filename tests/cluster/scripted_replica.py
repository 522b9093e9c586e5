"""Replicas on a real cluster whose servers are scripted: `evals.scripted_server` in place of vLLM.

`python -m tests.cluster.scripted_replica HOST PORT` is such a server.
"""

from __future__ import annotations

import os
import sys
import threading

from evals.scripted_server import ScriptedServer
from tests.serving.vllm.fake_weft import QUICK
from weft.cluster.ray_replicas import RayPlacer
from weft.cluster.replica_host import ReplicaHost
from weft.serving.vllm.launch.command import Launch, Maker
from weft.serving.vllm.launch.spec import ServeSpec
from weft.serving.vllm.supervise.replica_process import HealthPolicy

COMMAND = ("-m", "tests.cluster.scripted_program")


class ScriptedHost(ReplicaHost):
    """A replica whose server says in which process it is."""

    def maker(self, spec: ServeSpec) -> Maker:
        def launch(port: int, number: int) -> Launch:
            words = (sys.executable, "-m", __name__, spec.host, str(port))
            return Launch(words, {}, port, spec.name)

        return launch

    def health(self, start_timeout_s: float) -> HealthPolicy:
        return QUICK


class ScriptedPlacer(RayPlacer):
    """Places such replicas."""

    host = ScriptedHost


def serve(host: str, port: int) -> None:
    """Serve until a signal."""
    print("INFO Application startup complete.", flush=True)
    with ScriptedServer(lambda _: f"from {os.getpid()}", (host, port)):
        threading.Event().wait()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
