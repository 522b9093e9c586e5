"""A study in a process that kills itself during one of its model calls; run by `test_study`.

python killed_study.py JOURNAL SEED CALLS     CALLS 0: it lives
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncGenerator
from typing import Any

import weft
from tests.optimisation.studies import flow, planted, rows
from weft.core.ports import ModelEvent, ModelRequest

RUN = "killed"


class Mortal:
    """A client that notes its calls, and kills the process during one of them."""

    fake = False

    def __init__(self, inner: Any, calls: int) -> None:
        self._inner, self._left = inner, calls
        self.model = inner.model
        self.capabilities = inner.capabilities
        self.aclose = inner.aclose

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self._left -= 1
        sampling, text = request.sampling, request.messages[-1].content.replace(" ", "_")
        order = "" if request.schema is None else "-".join(request.schema["properties"])
        call = f"{text}|{sampling.seed}|{order}"
        note("calls.txt", call)
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        async for event in self._inner.generate(request):
            yield event


def note(name: str, line: str) -> None:
    """Append a line to a file."""
    with open(name, "a", encoding="utf-8") as file:  # noqa: PTH123
        file.write(f"{line}\n")


def main(place: str, seed: str, calls: str) -> None:
    """Begin the study, or go on with it."""
    models = {"small": Mortal(planted(salt=seed), int(calls))}
    journal = weft.open_journal(place)
    resume = RUN if any(each.run == RUN for each in journal.runs()) else None
    given: dict[str, Any] = {"resume": resume} if resume else {"run": RUN, "budget": 1_500}
    weft.optimise_sync(flow(), rows(80), "exact", models=models, journal=journal, **given)
    journal.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
