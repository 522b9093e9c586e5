"""Which command-line flags the installed engine has: asked once, remembered by version.

Knows the shape of argparse's help; does not know what any flag means.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from platformdirs import user_cache_path

from weft.core.errors import EngineMissing

MODULE = "vllm.entrypoints.openai.api_server"
_TIMEOUT_S = 180
_FLAG = re.compile(r"--[a-z][a-z0-9-]*")
_SURELY = "--model"


def flags_of(
    distribution: str, version: str, *, home: Path | None = None, command: Sequence[str] = ()
) -> frozenset[str]:
    """All flags of the engine's server, from the user's cache if this version was asked before.

    `command` replaces the command that prints the help. The first call takes about 10 s.
    Raises: `EngineMissing` with the engine's own last words where it cannot even print its help.
    """
    path = _cache(distribution, version, home)
    known = _read(path)
    if known is None:
        known = parse_help(_help(command or (sys.executable, "-m", MODULE, "--help=all")))
        if _SURELY not in known:
            raise EngineMissing(
                f"{distribution} {version} prints a help that names no {_SURELY}",
                hint=f"try `python -m {MODULE} --help=all`; weft knows vLLM 0.32",
            )
        _write(path, known)
    return known


def parse_help(text: str) -> frozenset[str]:
    """The flags that an argparse help defines; not those its explanations mention."""
    found: set[str] = set()
    for line in text.splitlines():
        body = line.lstrip()
        if body.startswith("-") and len(line) - len(body) <= 4:
            found.update(_FLAG.findall(re.split(r"\s{2,}", body, maxsplit=1)[0]))
    return frozenset(found)


def _help(command: Sequence[str]) -> str:
    environment = {**os.environ, "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "COLUMNS": "100"}
    try:
        ran = subprocess.run(  # noqa: S603 - our own interpreter and a constant module
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineMissing(f"vLLM cannot be asked for its flags: {error}") from error
    if ran.returncode != 0:
        last = next((line for line in reversed(ran.stderr.splitlines()) if line.strip()), "")
        raise EngineMissing(
            f"vLLM is installed, but does not load: {last.strip() or ran.returncode}",
            hint="`weft doctor` says why and what to type",
        )
    return ran.stdout


def _cache(distribution: str, version: str, home: Path | None) -> Path:
    root = Path(home or os.environ.get("WEFT_HOME") or user_cache_path("weft")).expanduser()
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    name = re.sub(r"[^\w.+-]", "_", f"{distribution}-{version}-python{python}")
    return root / "engines" / f"{name}.json"


def _read(path: Path) -> frozenset[str] | None:
    try:
        said = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    fine = isinstance(said, list) and all(isinstance(flag, str) for flag in said)
    return frozenset(said) if fine and _SURELY in said else None


def _write(path: Path, flags: frozenset[str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=path.name, delete=False
        ) as file:
            json.dump(sorted(flags), file)
        Path(file.name).replace(path)
    except OSError:
        return  # a cache that cannot be written costs time only
