"""One vLLM server for an evaluation, and what it counts. Knows no programs.

Started the plain way, without weft: what is measured here is the client.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path

import httpx2

from evals.serving.failure import EvaluationError

MODEL = "smollm2-135m-instruct"
ARGUMENTS = ("--max-model-len", "4096", "--scheduling-policy", "priority", "--enforce-eager")
"""What every server here is started with; everything else is vLLM's own default.

`priority` keeps the order of arrival among requests that name none, as all of `plain` do.
"""
KV_TOKENS = 12_288
"""Keys and values that the server can hold: about a dozen contexts of the traffic here.

That is no less than usual: an H200 of 141 GB filled to 90 % keeps about 850,000 tokens of
Llama-3.1-8B (128 KiB each) beside its weights, six of the 142,000-token contexts that are the
median of the agent traffic in vLLM's issue 57103.
"""
DTYPES = {"float32": 4, "bfloat16": 2}
"""Types of weights and of keys and values, with their bytes."""

_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_SERVER_DEV_MODE": "1",  # for /reset_prefix_cache
}
_START_S = 240.0
_DRAIN_S = 180.0


@dataclass(frozen=True, slots=True)
class Counters:
    """vLLM's own totals since it started; the names are those of its metrics."""

    prefix_cache_queries: float = 0.0
    prefix_cache_hits: float = 0.0
    generation_tokens: float = 0.0
    prompt_tokens: float = 0.0
    num_preemptions: float = 0.0
    num_requests_running: float = 0.0
    num_requests_waiting: float = 0.0

    def since(self, before: Counters) -> Counters:
        """What was added after `before`."""
        names = [field.name for field in fields(self)]
        return Counters(*(getattr(self, name) - getattr(before, name) for name in names))


def read(page: str) -> Counters:
    """The counters on a metrics page, summed over engines. Raises: `EvaluationError`."""
    found = {}
    for field in fields(Counters):
        line = re.compile(rf"^vllm:{field.name}(?:_total)?(?:\{{[^}}]*\}})? (\S+)$", re.MULTILINE)
        values = line.findall(page)
        if not values:
            raise EvaluationError(f"the server's metrics have no {field.name}")
        found[field.name] = sum(map(float, values))
    return Counters(**found)


@dataclass(frozen=True, slots=True)
class Server:
    """A healthy server. `root` is its address without a path."""

    root: str
    model: Path

    @property
    def api(self) -> str:
        """The base of its OpenAI-compatible API."""
        return f"{self.root}/v1"

    async def counters(self) -> Counters:
        """Its counters now."""
        async with httpx2.AsyncClient(trust_env=False) as http:
            return read((await http.get(f"{self.root}/metrics")).text)

    async def clean(self) -> Counters:
        """Wait until nothing runs, forget all cached prefixes, and return the counters.

        Raises: `EvaluationError` when requests go on for ever.
        """
        give_up = time.monotonic() + _DRAIN_S
        while True:
            now = await self.counters()
            if not now.num_requests_running and not now.num_requests_waiting:
                break
            if time.monotonic() > give_up:
                raise EvaluationError("the server does not come to rest")
            await asyncio.sleep(0.1)
        async with httpx2.AsyncClient(trust_env=False) as http:
            answer = await http.post(f"{self.root}/reset_prefix_cache")
            if not answer.is_success:
                raise EvaluationError(f"the prefix cache cannot be reset: {answer.status_code}")
        return await self.counters()


@contextmanager
def serving(model: Path, arguments: Sequence[str] = (), *, dtype: str) -> Iterator[Server]:
    """A vLLM server of the weights in the folder `model`, stopped at the end.

    `arguments` come after `ARGUMENTS`. Raises: `EvaluationError` when it does not come up.
    """
    port = _free_port()
    command = [
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(model), "--served-model-name", MODEL),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--dtype", dtype, "--kv-cache-memory-bytes", str(kv_bytes(model, dtype))),
        *ARGUMENTS,
        *arguments,
    ]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **_ENVIRONMENT, **_cores()},
            start_new_session=True,
        )
        try:
            server = Server(f"http://127.0.0.1:{port}", model)
            _wait_until_healthy(server, process)
            yield server
        except EvaluationError as error:
            log.seek(0)
            raise EvaluationError(f"{error}\n{''.join(log.readlines()[-12:])}") from None
        finally:
            _stop(process)


def kv_bytes(model: Path, dtype: str, tokens: int = KV_TOKENS) -> int:
    """Memory for the keys and values of `tokens` tokens of the model in the folder `model`."""
    config = json.loads((model / "config.json").read_text())
    head: int = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    heads: int = config["num_key_value_heads"] * config["num_hidden_layers"]
    return 2 * heads * head * DTYPES[dtype] * tokens


def _cores() -> Mapping[str, str]:
    """All cores for the one worker: left to itself, vLLM would keep one of two free."""
    return {"VLLM_CPU_OMP_THREADS_BIND": f"0-{(os.cpu_count() or 1) - 1}"}


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait_until_healthy(server: Server, process: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + _START_S
    while time.monotonic() < give_up:
        if process.poll() is not None:
            raise EvaluationError(f"vLLM ended with code {process.returncode} before it was ready")
        try:
            if httpx2.get(f"{server.root}/health", trust_env=False, timeout=2.0).is_success:
                return
        except httpx2.HTTPError:
            pass
        time.sleep(0.25)
    raise EvaluationError(f"vLLM is not healthy after {_START_S:g} s")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and its workers, which are one process group of their own."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(20.0)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
