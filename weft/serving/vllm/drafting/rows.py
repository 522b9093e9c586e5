"""Which request stands in which row: the batch is reordered between steps. Makes no drafts.

With facts a request is known by its name. Without them it is known by its tokens: a row goes on
with the longest line that its tokens begin with. A mistake there costs drafts, never an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.serving.vllm.drafting.facts import RowFacts
from weft.serving.vllm.drafting.line import Line

Ids = NDArray[np.int32]
_PATIENCE: Final = 64
"""So many steps a line may be out of the batch before it counts as ended, if nobody can say."""


class Rows:
    """The lines of all requests that have not ended. `make` makes a new one of a row's facts."""

    def __init__(self, make: Callable[[RowFacts | None], Line]) -> None:
        self._make = make
        self._lines: dict[Line, str] = {}
        self._named: dict[str, Line] = {}
        self._seen: dict[Line, int] = {}
        self._step = 0

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, ids: Ids, new: int, facts: RowFacts | None, taken: Container[Line]) -> Line:
        """The line of a row, told what the row has beyond it. ids: [tokens]

        The last `new` tokens came in this step; `taken` are the lines of other rows of this step.
        """
        line = self._by_tokens(ids, taken) if facts is None else self._by_name(ids, facts)
        if line is None:
            line = self._make(facts)
            self._lines[line] = "" if facts is None else facts.request
            if facts is not None:
                self._named[facts.request] = line
            prompt = len(ids) - new
            if facts is not None and facts.prompt_tokens:
                prompt = min(facts.prompt_tokens, len(ids))
            line.begin(ids[:prompt].tolist())
        self._seen[line] = self._step
        line.extend(ids[len(line.tokens) :].tolist())
        return line

    def ended(self, living: Container[str] | None) -> list[Line]:
        """Take out and return the lines whose requests are over. Call it once a step.

        `living` are the requests that are not. Of lines without a name, and of all where nobody can
        say, time must tell.
        """
        self._step += 1
        over = [
            line
            for line, name in self._lines.items()
            if (self._late(line) if living is None or not name else name not in living)
        ]
        for line in over:
            self.drop(line)
        return over

    def drop(self, line: Line) -> None:
        """Forget a line."""
        name = self._lines.pop(line)
        del self._seen[line]
        if self._named.get(name) is line:
            del self._named[name]

    def _late(self, line: Line) -> bool:
        return self._step - self._seen[line] > _PATIENCE

    def _by_name(self, ids: Ids, facts: RowFacts) -> Line | None:
        line = self._named.get(facts.request)
        if line is None or _may_begin(ids, line):
            return line
        self.drop(line)  # the name was given again
        return None

    def _by_tokens(self, ids: Ids, taken: Container[Line]) -> Line | None:
        nameless = (line for line, name in self._lines.items() if not name and line not in taken)
        fitting = (line for line in nameless if _begins(ids, line))
        return max(fitting, key=lambda line: len(line.tokens), default=None)


def _may_begin(ids: Ids, line: Line) -> bool:
    """Whether the row is as long as the line and has its last token where it should be."""
    known = len(line.tokens)
    return 0 < known <= len(ids) and int(ids[known - 1]) == line.tokens[-1]


def _begins(ids: Ids, line: Line) -> bool:
    known = len(line.tokens)
    return _may_begin(ids, line) and np.array_equal(
        ids[:known], np.fromiter(line.tokens, ids.dtype, known)
    )
