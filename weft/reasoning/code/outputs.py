"""What a program printed, in a form in which equal answers are equal texts. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from weft.reasoning.code.sandbox.outcome import Ran

_REAL: Final = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE][-+]?\d))(?:[eE][-+]?\d+)?")
_SHOWN_CHARS: Final = 400


@dataclass(frozen=True, slots=True)
class Output:
    """What came of one program with one input: `text` as `canonical` writes it, if `ok`.

    `why`: in words, why there is no output; it is no part of what is compared.
    """

    text: str
    ok: bool = True
    why: str = field(default="", compare=False)

    def shown(self) -> str:
        """For a prompt: the beginning, or what went wrong."""
        if not self.ok:
            return f"(no output: {self.why[:_SHOWN_CHARS]})"
        cut = "..." if len(self.text) > _SHOWN_CHARS else ""
        return self.text[:_SHOWN_CHARS] + cut or "(empty)"


def output_of(ran: Ran) -> Output:
    """The output of a run; one that did not finish has none."""
    if not ran.ok:
        return Output("", ok=False, why=ran.why)
    return Output(canonical(ran.stdout))


def canonical(text: str) -> str:
    """`text` with one blank or line break between words, and reals of six significant digits."""
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return _REAL.sub(_rounded, "\n".join(line for line in lines if line))


def _rounded(number: re.Match[str]) -> str:
    return format(float(number[0]), ".6g")
