"""One passage of tokens through the stages of a target. Knows no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["prompt", "newest", "draft", "other"]


@dataclass(slots=True, eq=False)
class Run:
    """`tokens` for the columns from `first` on of slot `lane`.

    kind     prompt: only read. newest: the last token of the text, alone. draft: tokens that are
             expected to follow. other: a token that may stand in the place of a drafted one
    epoch    how often the text had gone on otherwise than expected when the run began
    since    the column from which on `assumed` is not yet the text but expected to become it: what
             earlier runs read, then `tokens`
    fork     a lane, and how many columns of it are copied before the run is read
    cancelled  set at any time: what stages have not begun they leave out
    stamps   its works on the timeline
    """

    number: int
    kind: Kind
    epoch: int
    lane: int
    first: int
    tokens: tuple[int, ...]
    since: int
    assumed: tuple[int, ...]
    fork: tuple[int, int] | None = None
    cancelled: bool = False
    stamps: list[int] = field(default_factory=list)

    def contradicts(self, text: Sequence[int]) -> bool:
        """Whether `text` went on otherwise than the run assumes."""
        written = text[self.since : self.since + len(self.assumed)]
        return any(a != b for a, b in zip(written, self.assumed, strict=False))

    def beyond(self, text: Sequence[int]) -> tuple[int, ...]:
        """What the run assumes to come after `text`, which it does not contradict."""
        return self.assumed[max(0, len(text) - self.since) :]
