"""A thought from the command line, as it is shown: where it begins, and where it is resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weft.cli.threads.report import ThoughtReport
from weft.cli.threads.view import ThreadView

if TYPE_CHECKING:
    from weft.reasoning.thought import Thought
    from weft.workflow import FlowRun


class ShownThought:
    """How a `Session` shows it. `run` is the run that thinks, once it has been prepared."""

    view: Final = ThreadView

    def __init__(self, strategy: str) -> None:
        self.run: FlowRun | None = None
        self.report = ThoughtReport(strategy, self.thought)
        self._strategy = strategy

    def thought(self) -> Thought | None:
        """What came of it; None where there is no answer, or where it was found before."""
        from weft.core.errors import ReasoningError
        from weft.workflow.thinking import thought_of

        try:
            return None if self.run is None else thought_of(self.run, self._strategy)
        except ReasoningError:
            return None
