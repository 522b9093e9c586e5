"""One real vLLM server for all tests of a session that ask for `live_vllm` (see conftest).

It serves SmolLM2 in float32 with priority scheduling, the hermes tool parser and one LoRA adapter.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from weft.serving.openai.server import ServerMetrics, parse_metrics
from weft.serving.weights import locate

NAME = "smollm2-135m-instruct"
ADAPTER = "shifted"
CONTEXT = 2048
CORES = "0" if os.cpu_count() == 1 else "0-1"
_START_S = 600.0
# the kernel ends the server with whoever started it, whatever ended that: a time limit, say
_AND_ENDS_WITH_US = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
os.execv(sys.argv[1], sys.argv[1:])
"""
_ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    # As `weft serve` does, see weft.serving.vllm.launch.arguments.
    "VLLM_ENFORCE_STRICT_TOOL_CALLING": "0",
}


class LiveVllm:
    """A server on 127.0.0.1 in a process group of its own: where it is, and what it is doing."""

    def __init__(self, scratch: Path, cores: str = CORES) -> None:
        scratch.mkdir(exist_ok=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.base_url = f"http://127.0.0.1:{self._port}/v1"
        self._log = scratch / "vllm.log"
        command = _command(self._port, _make_adapter(scratch / ADAPTER))
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _AND_ENDS_WITH_US, *command],
                stdout=output,
                stderr=output,
                env=os.environ | _ENVIRONMENT | {"VLLM_CPU_OMP_THREADS_BIND": cores},
                start_new_session=True,
            )

    def metrics(self) -> ServerMetrics:
        """Read without the client under test."""
        root = self.base_url.removesuffix("/v1")
        with urllib.request.urlopen(f"{root}/metrics", timeout=60) as page:
            reading = parse_metrics(page.read())
        assert reading is not None
        return reading

    def wait(self) -> None:
        """Until it is healthy."""
        end = time.monotonic() + _START_S
        while time.monotonic() < end and self._process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/health", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise AssertionError(self._log.read_text("utf-8", "replace")[-3000:])

    def kill(self) -> None:
        """All of its processes, at once."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@contextmanager
def serving(scratch: Path) -> Iterator[LiveVllm]:
    """A healthy server; at the end, whatever happens, all of its processes are killed."""
    live = LiveVllm(scratch)
    try:
        live.wait()
        yield live
    finally:
        live.kill()


def _command(port: int, adapter: Path) -> list[str]:
    options = {
        "model": locate(NAME),
        "served-model-name": NAME,
        "host": "127.0.0.1",
        "port": port,
        "dtype": "float32",
        "max-model-len": CONTEXT,
        "scheduling-policy": "priority",
        "tool-call-parser": "hermes",
        "structured-outputs-config.backend": "guidance",
        "structured-outputs-config.disable_any_whitespace": "true",
        "lora-modules": f"{ADAPTER}={adapter}",
    }
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--enforce-eager", "--enable-lora", "--enable-auto-tool-choice"]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    return command


def _make_adapter(folder: Path) -> Path:
    """Random low-rank changes, large enough to change every answer."""
    import torch
    from safetensors.torch import save_file

    config = json.loads((Path(locate(NAME)) / "config.json").read_text("utf-8"))
    size, rank = config["hidden_size"], 4
    random = torch.Generator().manual_seed(0)
    tensors = {}
    for layer in range(config["num_hidden_layers"]):
        path = f"base_model.model.model.layers.{layer}.self_attn.q_proj"
        tensors[f"{path}.lora_A.weight"] = torch.randn(rank, size, generator=random) / 4
        tensors[f"{path}.lora_B.weight"] = torch.randn(size, rank, generator=random) / 4
    folder.mkdir()
    save_file(tensors, folder / "adapter_model.safetensors")
    about = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": rank, "lora_alpha": rank}
    about |= {"target_modules": ["q_proj"], "base_model_name_or_path": NAME, "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(about), "utf-8")
    return folder
