"""How likely a draft's token is right: learned from those that were tested before.

Knows what a draft's token stood on (how long a run matched, how many places agree), no tokens.
"""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 20
_SHARES: Final = (0.5, 0.8, 1.0)
_KINDS: Final = len(_SHARES) + 2
_PRIOR: Final = 8.0
_MEMORY: Final = 400.0


class Chances:
    """The share of right tokens for each kind of ground that a draft's token stood on.

    Before anything is known a longer match is better, and so are places that agree. What lies more
    than some 400 tests back is forgotten.
    """

    def __init__(self) -> None:
        self._right = [_PRIOR * _guess(ground) for ground in range(_LONGEST * _KINDS)]
        self._tested = [_PRIOR] * (_LONGEST * _KINDS)

    def ground(self, length: int, agreeing: int, places: int) -> int:
        """The kind of ground: `agreeing` of `places` go on so after a match of `length` tokens."""
        share = agreeing / places
        kind = sum(share >= bound for bound in _SHARES) + (share == 1.0 and places > 1)
        return min(length, _LONGEST - 1) * _KINDS + kind

    def __getitem__(self, ground: int) -> float:
        return self._right[ground] / self._tested[ground]

    def observe(self, ground: int, *, right: bool) -> None:
        """A token on this ground was tested."""
        if self._tested[ground] >= _MEMORY:
            self._tested[ground] /= 2
            self._right[ground] /= 2
        self._tested[ground] += 1.0
        self._right[ground] += right


def _guess(ground: int) -> float:
    length, kind = divmod(ground, _KINDS)
    share = (0.3, 0.65, 0.9, 1.0, 1.0)[kind]
    return share * (1.0 - 0.6 / (1 + length))
