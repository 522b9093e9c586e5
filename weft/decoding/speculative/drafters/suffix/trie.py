"""How often every run of up to `depth` tokens occurs in some texts, as a trie of counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


class Node:
    """A run of tokens, spelt by the way to it: how often it occurs, and what may follow."""

    __slots__ = ("children", "count")

    def __init__(self) -> None:
        self.count = 0
        self.children: dict[int, Node] = {}

    def following(self, *, all_of_them: bool) -> list[tuple[int, Node]]:
        """What follows, or only what follows most often, the lowest token of equals."""
        if all_of_them or len(self.children) < 2:
            return list(self.children.items())
        token = min(self.children, key=lambda each: (-self.children[each].count, each))
        return [(token, self.children[token])]


class Trie:
    """Counts of runs of up to `depth` tokens; there are `nodes` of them.

    Raises: `ValueError` for a depth below 2, which could not tell what follows anything.
    """

    def __init__(self, depth: int) -> None:
        if depth < 2:
            raise ValueError(f"a trie of depth {depth} knows nothing that follows")
        self.depth = depth
        self.root = Node()
        self.nodes = 0

    def grow(self, open_runs: list[Node], token: int) -> list[Node]:
        """A text goes on with `token`: count it for its `open_runs`, return those of the next one.

        A new text has none.
        """
        grown = [self._counted(run, token) for run in (self.root, *open_runs)]
        return grown[: self.depth - 1]

    def add(self, text: Sequence[int]) -> None:
        """Count a whole text."""
        runs: list[Node] = []
        for token in text:
            runs = self.grow(runs, token)

    def remove(self, text: Sequence[int]) -> None:
        """Forget a text that was added as a whole."""
        for start in range(len(text)):
            node = self.root
            for token in text[start : start + self.depth]:
                child = node.children[token]
                child.count -= 1
                if not child.count:  # then nothing below it occurs any more
                    self.nodes -= _size(node.children.pop(token))
                    break
                node = child

    def matches(self, text: Sequence[int]) -> Iterator[tuple[int, Node]]:
        """The ends of `text` that occur with something after them, and their lengths, ascending."""
        for length in range(1, min(self.depth - 1, len(text)) + 1):
            node: Node | None = self.root
            for token in text[len(text) - length :]:
                node = node.children.get(token) if node is not None else None
            if node is None:
                return  # longer ones end like this one
            if node.children:
                yield length, node

    def _counted(self, run: Node, token: int) -> Node:
        child = run.children.get(token)
        if child is None:
            child = run.children[token] = Node()
            self.nodes += 1
        child.count += 1
        return child


def _size(node: Node) -> int:
    return 1 + sum(_size(child) for child in node.children.values())
