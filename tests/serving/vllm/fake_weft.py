"""Programs that use the fake engine in the place of vLLM.

`python -m tests.serving.vllm.fake_weft supervise ID` is a detached supervisor,
`python -m tests.serving.vllm.fake_weft weft ARGUMENTS...` the command line.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from weft.serving.vllm import serve
from weft.serving.vllm.launch.command import Launch, Maker
from weft.serving.vllm.launch.spec import ServeSpec
from weft.serving.vllm.supervise import detached
from weft.serving.vllm.supervise.replica_process import HealthPolicy, RestartPolicy
from weft.serving.vllm.supervise.supervisor import ServerSupervisor

ENGINE = str(Path(__file__).with_name("fake_engine.py"))
COMMAND = [sys.executable, "-m", "tests.serving.vllm.fake_weft", "supervise"]
QUICK = HealthPolicy(
    poll_s=0.02,
    interval_s=0.05,
    timeout_s=60.0,
    failures=2,
    teardown_s=0.0,
    restarts=lambda: RestartPolicy(first_s=0.02, most=3),
)


def launch(port: int, replica: int) -> Launch:
    argv = (sys.executable, "-I", "-S", ENGINE, str(port))
    return Launch(argv, {"FAKE_REPLICA": str(replica)}, port, "fake")


def fake_maker(spec: ServeSpec, drain_s: float) -> Maker:
    return launch


if __name__ == "__main__":
    detached.COMMAND = COMMAND
    serve.maker = fake_maker
    serve.ServerSupervisor = partial(ServerSupervisor, health=QUICK)
    if sys.argv[1] == "supervise":
        sys.exit(detached.supervise(sys.argv[2], launch, QUICK))
    from weft.cli.main import app

    app(sys.argv[2:])
