"""The draft of the size that pays most on this machine, for drafters whose drafts cost no pass.

PPD calls it hardware-aware (arXiv 2405.18628): more candidates are accepted further, and slow down
the pass that reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping


def pays_most(expected: Mapping[int, float], curve: Callable[[int], float]) -> int:
    """Of the sizes, in rows beside the root, the one with most tokens a time.

    `expected`: by size, the tokens of a step; `curve`: what a pass over so many rows takes. Of
    equals the smallest. Raises: `ValueError` without a size.
    """
    return max(sorted(expected), key=lambda rows: expected[rows] / curve(1 + rows))
