"""What a drafter asks the target to read: a tree of candidates, and rows beside it."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.decoding.speculative.auxiliary import NOTHING, AuxPlan
from weft.decoding.speculative.tree import ROOT, DraftTree


@dataclass(frozen=True, slots=True)
class Draft:
    """`tree` may be walked; `aux` is only looked at. `source`: who drafted, for reports."""

    tree: DraftTree = field(default_factory=DraftTree)
    aux: AuxPlan = NOTHING
    source: str = ""

    def clipped(self, depth: int) -> Draft:
        """No deeper than `depth`; rows under what is cut off go too. Unchanged where all fits.

        Rows that are written to cannot be numbered anew: such a draft is cut to its tree.
        """
        if int(self.tree.depths.max()) <= depth:
            return self
        tree = self.tree.clipped(depth)
        stays = self.aux if all(node == ROOT for node in self.aux.under) else NOTHING
        return Draft(tree, NOTHING if stays.writes else stays, self.source)
