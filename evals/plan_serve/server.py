"""One vLLM server for an evaluation. Knows no traffic."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from weft.serving.vllm.launch.command import launch
from weft.serving.vllm.launch.engine import installed_engine
from weft.serving.vllm.launch.spec import ServeSpec

_START_S = 240.0
_KV_SIZE = re.compile(r"KV cache size: ([\d,]+) tokens")


class ServerFailed(Exception):
    """A server did not come up, or answered wrongly; says the end of its log."""


@dataclass(frozen=True, slots=True)
class Server:
    """A healthy server: its address, and how many tokens it says its KV cache holds."""

    url: str
    kv_tokens: int


@contextmanager
def serving(spec: ServeSpec, log: Path) -> Iterator[Server]:
    """Start vLLM as weft does, and end every process of it afterwards.

    Raises: `ServerFailed` when it is not healthy in time.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = launch(spec, installed_engine("cpu"), port)
    with log.open("wb") as out:
        process = subprocess.Popen(
            start.argv,
            env={**os.environ, **start.env},
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(process, url, log)
        yield Server(url, _kv_tokens(log))
    finally:
        _end(process)


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + _START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx2.get(f"{url}/health", timeout=2.0).status_code == 200:
                return
        except httpx2.HTTPError:
            time.sleep(0.3)
    raise ServerFailed("\n".join(log.read_text("utf-8", "replace").splitlines()[-15:]))


def _kv_tokens(log: Path) -> int:
    found = _KV_SIZE.search(log.read_text("utf-8", "replace"))
    if found is None:
        raise ServerFailed(f"{log} does not say the size of the KV cache")
    return int(found[1].replace(",", ""))


def _end(process: subprocess.Popen[bytes]) -> None:
    for sent, patience_s in ((signal.SIGTERM, 20.0), (signal.SIGKILL, 10.0)):
        try:
            os.killpg(process.pid, sent)
            process.wait(patience_s)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    try:  # workers that outlive their parent
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
