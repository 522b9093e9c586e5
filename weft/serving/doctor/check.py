"""A finding of `weft doctor`, and a probe that runs code in a Python of its own.

The code may crash, hang or load for long.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "missing", "broken"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, how it is, what was found, and what to type where it is not ok.

    `serves` marks what can run models, as soon as it is ok.
    """

    name: str
    status: Status
    found: str
    advice: str = ""
    serves: bool = False


_QUIET = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"}


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """How it went: the last line that was printed, and all that was said on the way."""

    ok: bool
    answer: str
    said: str

    @property
    def reason(self) -> str:
        """The last words: usually the exception."""
        lines = [line.strip() for line in self.said.splitlines() if line.strip()]
        return lines[-1] if lines else "it ended without a word"


def probe(
    code: str, *, timeout_s: float = 120, python: Sequence[str] = (sys.executable,)
) -> ProbeResult:
    """Run `code` in another interpreter. Never raises for what the code does."""
    try:
        ran = subprocess.run(  # noqa: S603 - our own interpreter, and code of our own
            (*python, "-c", code),
            env={**os.environ, **_QUIET},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ProbeResult(False, "", f"no answer within {timeout_s:.0f} s")
    except OSError as error:
        return ProbeResult(False, "", str(error))
    said = ran.stderr if ran.returncode >= 0 else f"{ran.stderr}\nended by signal {-ran.returncode}"
    lines = ran.stdout.splitlines()
    return ProbeResult(ran.returncode == 0 and bool(lines), lines[-1] if lines else "", said)
