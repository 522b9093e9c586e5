"""What the writing of one text took."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.query import Kind, Query


@dataclass(slots=True)
class Counters:
    """Of one row. A pass counts once for each row that takes part, whatever else is in it.

    passes     by kind, "supervisor" among them: passes of another model
    tokens     that were read, by all passes
    order      (step, slot of the answer) of each commit
    kept       tokens of the answer, without its terminator
    discarded  decided tokens that are no part of it
    """

    passes: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    commits: int = 0
    edits: int = 0
    remasks: int = 0
    forced: int = 0
    order: list[tuple[int, int]] = field(default_factory=list)
    kept: int = 0
    discarded: int = 0

    @property
    def forwards(self) -> int:
        """All passes of the model, but not those of a supervisor."""
        return self.passes.total() - self.passes["supervisor"]

    @property
    def tokens_per_forward(self) -> float:
        """Tokens kept for each pass, those that only store keys or check included."""
        return self.kept / self.forwards if self.forwards else 0.0

    @property
    def tokens_per_query(self) -> float:
        """Tokens kept for each token read: what it costs where compute is the limit."""
        return self.kept / self.tokens if self.tokens else 0.0

    def passed(self, queries: tuple[Query, ...], kind: Kind) -> None:
        """A pass with `queries` of this row."""
        self.passes[kind] += 1
        self.tokens += sum(query.tokens for query in queries)

    def did(self, action: Action, step: int, first: int) -> None:
        """What was done in `step`; the answer begins at slot `first`."""
        self.commits += len(action.commit)
        self.edits += len(action.edit)
        self.remasks += len(action.remask)
        self.order += [(step, int(slot) - first) for slot in action.commit.slots]
