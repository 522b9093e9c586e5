"""Prompt lookup (n-gram speculation): copies what followed the same few tokens before.

After prompt-lookup decoding by A. Saxena and the n-gram proposer of vLLM. A copy that reaches the
end of the sequence continues with its own beginning, so repetitive text is drafted without end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from weft.core.errors import SpecError
from weft.decoding.speculative.draft import DraftTree
from weft.decoding.speculative.drafter import PerSequenceMethod, SpeculativeMethod
from weft.decoding.speculative.presets import Options, Preset, PublishedSpeed, whole
from weft.decoding.speculative.speculation import MOST_NODES

if TYPE_CHECKING:
    from weft.decoding.network.network import Network


Which = Literal["first", "last"]


class LookupDrafter:
    """Implements `Drafter`. The longest match, of `longest` down to `shortest` tokens, wins; of
    equals, the `which` occurrence.

    An index with one entry for each token and length makes a proposal as cheap as its copy.

    Raises: `ValueError` for invalid lengths.
    """

    name = "lookup"

    def __init__(self, longest: int = 3, shortest: int = 1, which: Which = "last") -> None:
        if not 1 <= shortest <= longest:
            raise ValueError(f"no n-grams of {longest} down to {shortest} tokens")
        self._lengths = range(longest, shortest - 1, -1)
        self._which = which
        self._tokens: list[int] = []
        self._after: dict[tuple[int, ...], int] = {}
        """By n-gram: the position after it."""

    def extend(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            # index an n-gram once a token follows: so none matches itself
            for length in self._lengths:
                if length <= len(self._tokens):
                    ngram = tuple(self._tokens[-length:])
                    if self._which == "last" or ngram not in self._after:
                        self._after[ngram] = len(self._tokens)
            self._tokens.append(token)

    def propose(self, most: int) -> DraftTree:
        for length in self._lengths:
            if length > len(self._tokens):
                continue
            start = self._after.get(tuple(self._tokens[-length:]))
            if start is not None:
                return DraftTree.chain(self._copy(start, most))
        return DraftTree()

    def _copy(self, start: int, most: int) -> list[int]:
        period = len(self._tokens) - start
        return [self._tokens[start + step % period] for step in range(most)]


def _make(network: Network, options: Options) -> SpeculativeMethod:  # noqa: ARG001 - tokens are all it needs
    most = whole(options, "num_speculative_tokens", 8, 1, MOST_NODES)
    longest = whole(options, "longest", 3, 1, 16)
    shortest = whole(options, "shortest", 1, 1, longest)
    which = _which(options)
    return PerSequenceMethod("lookup", lambda: LookupDrafter(longest, shortest, which), most)


def _which(options: Options) -> Literal["first", "last"]:
    match options.get("which", "last"):
        case "first" | "last" as which:
            return which
        case other:
            raise SpecError(f"which is {other!r}", hint="first or last")


PRESETS = (
    Preset(
        "lookup",
        "copies what followed the same few tokens earlier in the text",
        _make,
        options=("num_speculative_tokens", "longest", "shortest", "which"),
        published=PublishedSpeed(1.75, "Spec-Bench, Vicuna-7B greedy on an A100"),
    ),
)
