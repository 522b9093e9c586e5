"""A drafter that costs nothing, against a text that is known: what decoding would have taken.

Greedy decoding with a lossless method writes the same text whatever is drafted, so a text that was
written once tells the passes of every drafter that looks at tokens only. Knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.decoding.speculative.draft import ROOT, DraftTree
from weft.decoding.speculative.drafter import Drafter
from weft.decoding.speculative.speculation import SpeculativeCounters


def replayed(drafter: Drafter, text: Sequence[int], most: int) -> SpeculativeCounters:
    """The passes that `text` takes; the drafter has been told the prompt, and is told the text."""
    counters = SpeculativeCounters()
    while counters.tokens < len(text):
        left = text[counters.tokens :]
        proposed = drafter.propose(most)
        tree = proposed if isinstance(proposed, DraftTree) else proposed.tree
        tree = tree.clipped(len(left) - 1)
        accepted = _followed(tree, left)
        counters.step(len(tree), int(tree.depths.max()), accepted, accepted, accepted + 1)
        drafter.extend(left[: accepted + 1])
    return counters


def _followed(tree: DraftTree, text: Sequence[int]) -> int:
    """How many nodes of the tree the text goes along."""
    node = ROOT
    for depth, token in enumerate(text):
        there = [child for child in tree.children(node) if tree.tokens[child] == token]
        if not there:
            return depth
        node = there[0]
    return len(text)
