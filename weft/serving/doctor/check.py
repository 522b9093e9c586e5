"""A finding of `weft doctor`, and a probe that runs code in a separate interpreter.

The code may crash, hang or take long to load.
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
    """The subject, its status, what was found, and the command to type where it is not ok.

    `serves`: it can run models when it is ok.
    """

    name: str
    status: Status
    found: str
    advice: str = ""
    serves: bool = False


_QUIET = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"}


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of a probe: the last printed line, and everything written to stderr."""

    ok: bool
    answer: str
    output: str

    @property
    def reason(self) -> str:
        """The last line of the output: usually the exception."""
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        return lines[-1] if lines else "it ended without a word"


def probe(
    code: str, *, timeout_s: float = 120, python: Sequence[str] = (sys.executable,)
) -> ProbeResult:
    """Run `code` in another interpreter. Never raises for an error of the code."""
    try:
        ran = subprocess.run(  # noqa: S603 - this interpreter, and our own code
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
    signal = f"\nended by signal {-ran.returncode}" if ran.returncode < 0 else ""
    lines = ran.stdout.splitlines()
    last = lines[-1] if lines else ""
    return ProbeResult(ran.returncode == 0 and bool(lines), last, ran.stderr + signal)
