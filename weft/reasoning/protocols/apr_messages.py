"""What passes between an APR search and its sub-searches: one port, two realisations.

See `apr_nodes` for models trained on traces, `apr_text` for those that are told how.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from weft.reasoning.moves import ChildSpec, Opening
from weft.reasoning.parts import Parts
from weft.reasoning.question import Question
from weft.reasoning.thread.thread import Thread


@dataclass(frozen=True, slots=True)
class Call:
    """One line of a spawn block: the number that the model gave it, and what it says."""

    number: str
    line: str


class Messages(Protocol):
    """What passes between a search and its sub-searches, in one realisation of APR."""

    stops: tuple[str, ...]
    """Where decoding pauses besides at the model's own end."""

    guard: str
    """What the model must not write, since results are the runtime's to write."""

    lead: str
    """What makes a search answer at once; empty: nothing does."""

    def opening(self, question: Question) -> Opening:
        """How the main search begins."""

    def child(self, parent: Thread, call: Call) -> ChildSpec | None:
        """The sub-search that `call` asks for; None: it asks for none that can be started."""

    def returned(self, child: Thread) -> str:
        """What a sub-search hands to its parent; empty: nothing."""

    def result(self, parent: Thread, call: Call, child: Thread | None) -> Parts:
        """How the parent reads what came of `call`; `child` None: it was not started."""

    def answer(self, thread: Thread) -> str:
        """The answer of a main search."""
