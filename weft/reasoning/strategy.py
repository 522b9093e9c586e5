"""The port of strategies: a question in, an engine work out whose value is a `Thought`."""

from __future__ import annotations

from typing import Protocol

from weft.engine import Work
from weft.reasoning.question import Question


class Strategy(Protocol):
    """A way to answer a question with a model; made by `weft.reasoning.strategies`."""

    @property
    def name(self) -> str:
        """What it is called in workflows and on the command line."""

    def work(self, question: Question) -> Work:
        """The work of a node that answers `question`; its value is a `Thought`.

        Its model calls and threads become nodes inside that node. The work raises
        `ReasoningError` or `ModelError` when there is no answer at all.
        """
