"""The peers' own environment: made once, beside weft's, from exact pins. Runs nothing in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PINS = ROOT / "evals" / "requirements-peers.txt"
HOME = ROOT / ".venv-peers"
_READY = HOME / ".ready"


class PeersUnavailable(Exception):
    """The peers cannot be installed here; the message says why."""


def interpreter() -> Path:
    """The Python that has the peers, installed now unless it already has these pins.

    Raises: `PeersUnavailable`.
    """
    folder = "Scripts" if os.name == "nt" else "bin"
    python = HOME / folder / Path(sys.executable).name
    pins = PINS.read_text()
    if not (_READY.exists() and _READY.read_text() == pins):
        _call(sys.executable, "-m", "venv", "--clear", str(HOME))
        _call(str(python), "-m", "pip", "install", "-q", "-r", str(PINS))
        _READY.write_text(pins)
    return python


def environment() -> dict[str, str]:
    """Variables for every process of the evaluation: weft importable, nothing sent anywhere."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "LANGSMITH_TRACING": "false",
        "LANGCHAIN_TRACING_V2": "false",
    }


def _call(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout or "").strip().splitlines() or ["no output"]
        raise PeersUnavailable(f"{' '.join(command[1:4])} failed: {said[-1]}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeersUnavailable(str(error)) from error
