"""SuffixDecoding (arXiv 2411.04975): counts of what followed every suffix, in this text and others.

The counts give the probability of a draft, and so its length. Written texts are kept for later
sequences, unless `shared` is false: branches of a program and runs of the same node write alike.
This affects the speed only.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.decoding.speculative.draft import ROOT, DraftTree
from weft.decoding.speculative.drafter import PerSequenceMethod, SpeculativeMethod
from weft.decoding.speculative.presets import Options, Preset, share, switch, whole
from weft.decoding.speculative.speculation import MOST_NODES

if TYPE_CHECKING:
    from weft.decoding.network.network import Network
    from weft.decoding.speculative.drafter import Drafter


class TrieNode:
    """A run of tokens: its number of occurrences, and its continuations."""

    __slots__ = ("children", "count")

    def __init__(self) -> None:
        self.count = 0
        self.children: dict[int, TrieNode] = {}

    def following(self, *, all_of_them: bool) -> list[tuple[int, TrieNode]]:
        """All continuations, or only the most frequent one, the lowest token of equals."""
        if all_of_them or len(self.children) < 2:
            return list(self.children.items())
        token = min(self.children, key=lambda each: (-self.children[each].count, each))
        return [(token, self.children[token])]


class SuffixTrie:
    """Counts of runs of up to `depth` tokens, in `nodes` trie nodes.

    Raises: `ValueError` for a depth below 2, which has no continuations.
    """

    def __init__(self, depth: int) -> None:
        if depth < 2:
            raise ValueError(f"a trie of depth {depth} has no continuations")
        self.depth = depth
        self.root = TrieNode()
        self.nodes = 0

    def grow(self, open_runs: list[TrieNode], token: int) -> list[TrieNode]:
        """Count `token` after the `open_runs` of a text, at first none; the next open runs."""
        grown = [self._counted(run, token) for run in (self.root, *open_runs)]
        return grown[: self.depth - 1]

    def add(self, text: Sequence[int]) -> None:
        """Count a whole text."""
        runs: list[TrieNode] = []
        for token in text:
            runs = self.grow(runs, token)

    def remove(self, text: Sequence[int]) -> None:
        """Remove a text that was added as a whole."""
        for start in range(len(text)):
            node = self.root
            for token in text[start : start + self.depth]:
                child = node.children[token]
                child.count -= 1
                if not child.count:  # its descendants do not occur either
                    self.nodes -= _size(node.children.pop(token))
                    break
                node = child

    def matches(self, text: Sequence[int]) -> Iterator[tuple[int, TrieNode]]:
        """The suffixes of `text` with continuations, and their lengths, ascending."""
        for length in range(1, min(self.depth - 1, len(text)) + 1):
            node: TrieNode | None = self.root
            for token in text[len(text) - length :]:
                node = node.children.get(token) if node is not None else None
            if node is None:
                return  # longer ones contain this one
            if node.children:
                yield length, node

    def _counted(self, run: TrieNode, token: int) -> TrieNode:
        child = run.children.get(token)
        if child is None:
            child = run.children[token] = TrieNode()
            self.nodes += 1
        child.count += 1
        return child


def _size(node: TrieNode) -> int:
    return 1 + sum(_size(child) for child in node.children.values())


class SharedTexts:
    """Texts with at most `nodes` trie nodes together; the oldest are dropped first.

    A text is cut to its last `longest` tokens. Not thread-safe.
    """

    def __init__(self, depth: int = 24, nodes: int = 500_000, longest: int = 4096) -> None:
        self.trie = SuffixTrie(depth)
        self._most = nodes
        self._longest = longest
        self._texts: deque[tuple[int, ...]] = deque()

    def __len__(self) -> int:
        return len(self._texts)

    def remember(self, text: Sequence[int]) -> None:
        """Add the text of a finished request."""
        tail = tuple(text[-self._longest :])
        self._texts.append(tail)
        self.trie.add(tail)
        while self.trie.nodes > self._most:
            self.trie.remove(self._texts.popleft())


@dataclass(frozen=True, slots=True)
class SuffixOptions:
    """`depth` of the trie of the text itself. A match of m tokens is continued by at most
    `factor` * m + `offset` tokens with a probability of at least `least`. `tree`: the likeliest
    nodes instead of the likeliest path.
    """

    depth: int = 24
    factor: float = 1.0
    offset: float = 0.0
    least: float = 0.1
    tree: bool = False


@dataclass(frozen=True, slots=True)
class SuffixDraft:
    """A draft, and the expected number of right tokens by the counts."""

    tree: DraftTree
    expected: float


class SuffixDrafter:
    """Implements `Drafter` over the sequence itself and, if given, earlier texts.

    The draft with the most expected tokens wins; of equals the longer match, then the own text.
    """

    name = "suffix"

    def __init__(
        self, options: SuffixOptions | None = None, shared: SharedTexts | None = None
    ) -> None:
        self._options = options or SuffixOptions()
        self._shared = shared
        self._own = SuffixTrie(self._options.depth)
        self._runs: list[TrieNode] = []
        self._end: list[int] = []

    def extend(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            self._runs = self._own.grow(self._runs, token)
        longest = max(self._own.depth, 0 if self._shared is None else self._shared.trie.depth)
        self._end = [*self._end, *tokens][-longest:]

    def propose(self, most: int) -> DraftTree:
        return self.guess(most).tree

    def guess(self, most: int) -> SuffixDraft:
        """The draft with its expected number of right tokens."""
        best, match = SuffixDraft(DraftTree(), 0.0), 0
        others = () if self._shared is None else (self._shared.trie,)
        for trie in (self._own, *others):
            for length, node in trie.matches(self._end):
                guess = self._followed(node, length, most)
                if (guess.expected, length) > (best.expected, match):
                    best, match = guess, length
        return best

    def _followed(self, node: TrieNode, length: int, most: int) -> SuffixDraft:
        options = self._options
        nodes = min(most, int(options.factor * length + options.offset))
        return likeliest_continuation(node, nodes, options.least, tree=options.tree)


def likeliest_continuation(start: TrieNode, most: int, least: float, *, tree: bool) -> SuffixDraft:
    """The likeliest continuation of `start`: a path, or the likeliest nodes as a tree.

    The probability of a node is its parent's times its share of the parent's occurrences.
    """
    tokens: list[int] = []
    parents: list[int] = []
    expected = 0.0
    waiting: list[tuple[float, int, int, TrieNode]] = []  # -probability, place of the parent, token

    def offer(node: TrieNode, probability: float, place: int) -> None:
        for token, child in node.following(all_of_them=tree):
            share = probability * child.count / node.count
            if share >= least:
                heapq.heappush(waiting, (-share, place, token, child))

    offer(start, 1.0, ROOT)
    while waiting and len(tokens) < most:
        negative, parent, token, node = heapq.heappop(waiting)
        tokens.append(token)
        parents.append(parent)
        expected -= negative
        offer(node, -negative, len(tokens) - 1)
    return SuffixDraft(DraftTree(tuple(tokens), tuple(parents)), expected)


class RecordingSuffixDrafter(SuffixDrafter):
    """Implements `Drafter`. `written` is the answer, after the end of the prompt.

    It includes as much of the prompt as can match the beginning of an answer: most prompts end
    alike, with the words of a template.
    """

    def __init__(self, options: SuffixOptions, shared: SharedTexts | None) -> None:
        super().__init__(options, shared)
        self._depth = options.depth
        self._begun = False
        self.written: list[int] = []

    def extend(self, tokens: Sequence[int]) -> None:
        super().extend(tokens)
        self.written.extend(tokens if self._begun else tokens[-self._depth :])
        self._begun = True


class SuffixMethod(PerSequenceMethod):
    """Implements `SpeculativeMethod`. `shared`: texts of earlier sequences; None: none are kept."""

    def __init__(
        self, name: str, begin: Callable[[], Drafter], nodes: int, shared: SharedTexts | None
    ) -> None:
        super().__init__(name, begin, nodes)
        self.shared = shared

    def end(self, drafter: Drafter) -> None:
        if self.shared is not None and isinstance(drafter, RecordingSuffixDrafter):
            self.shared.remember(drafter.written)


def shared_texts(options: Options) -> SharedTexts | None:
    """The texts that the sequences of one method share, if any. Raises: `SpecError`."""
    depth = whole(options, "depth", 24, 2, 64)
    nodes = whole(options, "nodes", 500_000, 1000, 50_000_000)
    return SharedTexts(depth, nodes) if switch(options, "shared", default=True) else None


def _make(network: Network, options: Options) -> SpeculativeMethod:  # noqa: ARG001 - tokens are all it needs
    sizes = SuffixOptions(
        depth=whole(options, "depth", 24, 2, 64),
        factor=whole(options, "factor", 1, 1, 16),
        least=share(options, "least", 0.1),
        tree=switch(options, "tree", default=False),
    )
    most = whole(options, "num_speculative_tokens", 16, 1, MOST_NODES)
    shared = shared_texts(options)
    return SuffixMethod("suffix", lambda: RecordingSuffixDrafter(sizes, shared), most, shared)


PRESETS = (
    Preset(
        "suffix",
        "counts of what followed every suffix, in this text and in those of earlier requests",
        _make,
        options=(
            "num_speculative_tokens",
            "depth",
            "factor",
            "least",
            "tree",
            "shared",
            "nodes",
        ),
    ),
)
