"""The peers' own environments: made once, beside weft's, from exact pins. Runs nothing in them.

Prefect has one to itself: what it needs makes LangGraph import more, and start later.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from evals.engine.systems import Home

ROOT = Path(__file__).resolve().parents[2]


class PeersUnavailable(Exception):
    """The peers cannot be installed here; the message says why."""


def pins_of(home: Home) -> Path:
    """The file with the exact versions of an environment."""
    return ROOT / "evals" / f"requirements-{home}.txt"


@cache
def interpreter(home: Home) -> str:
    """The Python that has these peers, installed now unless it already has these pins.

    weft's own is the one that runs this. Raises: `PeersUnavailable`.
    """
    if home == "weft":
        return sys.executable
    place = ROOT / f".venv-{home}"
    python = place / ("Scripts" if os.name == "nt" else "bin") / Path(sys.executable).name
    ready, pins = place / ".ready", pins_of(home).read_text()
    if not (ready.exists() and ready.read_text() == pins):
        print(f"installing {place.name}", file=sys.stderr, flush=True)
        _call(sys.executable, "-m", "venv", "--clear", str(place))
        _call(str(python), "-m", "pip", "install", "-q", "-r", str(pins_of(home)))
        ready.write_text(pins)
    return str(python)


def versions(home: Home) -> dict[str, str]:
    """The pinned versions, by package."""
    lines = pins_of(home).read_text().splitlines()
    pins = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return dict(pins)


def environment(folder: Path) -> dict[str, str]:
    """Variables for every process of the evaluation: weft importable and what it keeps in `folder`,
    as what Prefect keeps; compiled modules kept; nothing sent anywhere.
    """
    own = {key: value for key, value in os.environ.items() if not key.startswith("WEFT_")}
    own.pop("PYTHONDONTWRITEBYTECODE", None)
    return {
        **own,
        "PYTHONPATH": str(ROOT),
        "WEFT_HOME": str(folder),
        "PREFECT_HOME": str(folder),
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
        "DO_NOT_TRACK": "1",
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
