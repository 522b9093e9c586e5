"""What decoding one prompt took, and what many prompts took together. Knows no engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest


@dataclass(frozen=True, slots=True)
class Taken:
    """One answer: its `tokens`, and the `forwards` of the target that wrote them, not the prompt's.

    drafted, accepted  candidates that were read, and kept
    tested, held       by depth: steps whose draft was looked at there, and went on there
    draft_forwards     passes of a drafting network; `proposal_s`: seconds spent on drafts
    seconds            for the answer; the prompt had been read
    """

    tokens: tuple[int, ...]
    forwards: int
    seconds: float
    drafted: int = 0
    accepted: int = 0
    tested: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    draft_forwards: int = 0
    proposal_s: float = 0.0
    fallback: str = ""


@dataclass(frozen=True, slots=True)
class Together:
    """Sums over answers."""

    answers: Sequence[Taken]

    @property
    def tokens(self) -> int:
        """Of all answers."""
        return sum(len(one.tokens) for one in self.answers)

    @property
    def forwards(self) -> int:
        """Of the target."""
        return sum(one.forwards for one in self.answers)

    @property
    def seconds(self) -> float:
        """One after another."""
        return sum(one.seconds for one in self.answers)

    @property
    def tokens_per_forward(self) -> float:
        """1 in plain decoding, unless a grammar forces tokens."""
        return self.tokens / self.forwards

    @property
    def accepted_length(self) -> float:
        """Tokens that a pass commits: what was accepted of the draft, and the target's own.

        As the mean accepted length of Spec-Bench (arXiv 2401.07851): 1 in plain decoding.
        """
        return 1.0 + sum(one.accepted for one in self.answers) / self.forwards

    @property
    def chances(self) -> Sequence[float]:
        """By depth: how often a draft that was looked at there went on."""
        tested = _columns(one.tested for one in self.answers)
        held = _columns(one.held for one in self.answers)
        return [h / t for h, t in zip(held, tested, strict=True) if t]


def _columns(rows: Iterable[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip_longest(*rows, fillvalue=0)]
