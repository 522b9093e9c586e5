"""A context of token ids and their positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from weft.core.ports.model import Placed


@dataclass(frozen=True, slots=True)
class TokenContext:
    """A prompt and the `ids` written after it; `text` is that of `ids`.

    `placed` covers both; empty: one stretch from position 0.
    """

    prompt: tuple[int, ...]
    ids: tuple[int, ...] = ()
    text: str = ""
    placed: tuple[Placed, ...] = ()

    @property
    def all_ids(self) -> tuple[int, ...]:
        return self.prompt + self.ids

    def __len__(self) -> int:
        return len(self.prompt) + len(self.ids)

    @property
    def stretches(self) -> tuple[Placed, ...]:
        """`placed`, or the one stretch that an empty `placed` means."""
        return self.placed or (Placed(len(self), 0),)

    @property
    def end(self) -> int:
        """The first free position after all stretches."""
        return max(stretch.position + stretch.tokens for stretch in self.stretches)

    def plus(self, ids: tuple[int, ...], text: str) -> TokenContext:
        """This context followed by `ids`, which see all of it."""
        placed = self.placed
        if placed:
            placed = (*placed[:-1], replace(placed[-1], tokens=placed[-1].tokens + len(ids)))
        return TokenContext(self.prompt, self.ids + ids, self.text + text, placed)

    def cut(self, kept: int, text: str) -> TokenContext:
        """This context with only the first `kept` of its ids, whose text is `text`."""
        placed = list(self.placed)
        excess = len(self.ids) - kept
        while placed and excess:
            gone = min(excess, placed[-1].tokens)
            placed[-1] = replace(placed[-1], tokens=placed[-1].tokens - gone)
            excess -= gone
            if excess:
                placed.pop()
        return TokenContext(self.prompt, self.ids[:kept], text, tuple(placed))

    def inherited(self) -> TokenContext:
        """The context of a child: all of this one is its prompt."""
        return TokenContext(self.all_ids, placed=self.placed)

    def spliced(
        self, branches: Sequence[TokenContext], tail: tuple[int, ...], text: str
    ) -> TokenContext:
        """This context followed by what `branches` wrote, in parallel, and by `tail`.

        The branches began with this context. They share a first position and do not see one
        another; the tail begins after the end of the longest and sees everything. `text` is that of
        the tail.
        """
        placed = list(self.stretches)
        for branch in branches:
            placed += _moved(branch.stretches, self.stretches, self.end, len(placed))
        end = max(stretch.position + stretch.tokens for stretch in placed)
        placed.append(Placed(len(tail), end, tuple(range(len(placed)))))
        ids = tuple(chain.from_iterable(branch.ids for branch in branches))
        texts = "".join(branch.text for branch in branches)
        return TokenContext(
            self.prompt, self.ids + ids + tail, self.text + texts + text, tuple(placed)
        )


def _moved(branch: Sequence[Placed], base: Sequence[Placed], end: int, first: int) -> list[Placed]:
    """The stretches of `branch` beyond `base`, for the indices from `first`.

    What the branch appended to the last stretch of its base becomes a stretch of its own, at `end`,
    which sees all of the base.
    """
    last = len(base) - 1
    own = branch[last].tokens - base[last].tokens
    moved = [Placed(own, end, tuple(range(len(base))))]
    for stretch in branch[last + 1 :]:
        sees = {index if index < len(base) else index - last + first for index in stretch.sees}
        if last in stretch.sees:
            sees.add(first)
        moved.append(replace(stretch, sees=tuple(sorted(sees))))
    return moved
