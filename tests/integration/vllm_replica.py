"""Plain vLLM servers as processes of their own, to be killed without ceremony."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "replica"
_QUIET = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
_START_S = 600.0


class VllmReplica:
    """One server on 127.0.0.1 in a process group of its own, on one core."""

    def __init__(self, folder: Path, core: int, log: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._log = log
        options = {
            "model": folder,
            "served-model-name": NAME,
            "host": "127.0.0.1",
            "port": self._port,
            "dtype": "float32",
            "max-model-len": 2048,
            "max-num-seqs": 64,
            "scheduling-policy": "priority",
        }
        command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--enforce-eager"]
        for name, value in options.items():
            command += [f"--{name}", str(value)]
        environment = {
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": str(core),
            **_QUIET,
        }
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                env=os.environ | environment,
                start_new_session=True,
            )

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def wait(self) -> None:
        """Until it is healthy."""
        end = time.monotonic() + _START_S
        while time.monotonic() < end:
            if self._process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/health", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        raise AssertionError(self._log.read_text("utf-8", "replace")[-3000:])

    def kill(self) -> None:
        """All of its processes, at once."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self._process.wait()


@contextmanager
def two_replicas(folder: Path, logs: Path) -> Iterator[tuple[VllmReplica, VllmReplica]]:
    """Two healthy servers of one model; killed at the end."""
    last_core = (os.cpu_count() or 1) - 1
    first = VllmReplica(folder, 0, logs / "first.log")
    try:
        second = VllmReplica(folder, min(1, last_core), logs / "second.log")
        try:
            first.wait()
            second.wait()
            yield first, second
        finally:
            second.kill()
    finally:
        first.kill()
