"""A strict token budget: tokens are reserved before they are spent."""

from __future__ import annotations


class BudgetLedger:
    """A budget of `total` tokens, `kept` of which are reserved for a final answer.

    `spent` counts used tokens, `granted` reserved ones. Their sum stays within `total`, unless a
    call used more than it was granted: later grants are then smaller.

    Raises: `ValueError` for a negative total.
    """

    def __init__(self, total: int, kept: int = 0) -> None:
        if total < 0:
            raise ValueError(f"an allowance is not negative, got {total}")
        self.total = total
        self.kept = min(kept, total // 2)
        self.spent = 0
        self.granted = 0

    @property
    def left(self) -> int:
        """The tokens that a final answer may reserve now."""
        return max(0, self.total - self.spent - self.granted)

    @property
    def free(self) -> int:
        """The tokens that anything else may reserve now."""
        return max(0, self.left - self.kept)

    def reserve(self, wanted: int, *, final: bool = False) -> int:
        """Reserve up to `wanted` tokens; returns their number, 0 when all are spent."""
        granted = max(0, min(wanted, self.left if final else self.free))
        self.granted += granted
        return granted

    def settle(self, granted: int, used: int) -> None:
        """Release a reservation of `granted` tokens, of which `used` were spent."""
        self.granted -= granted
        self.spent += used

    def share(self, wanted: int) -> BudgetLedger:
        """A ledger of up to `wanted` tokens out of this one; `close` returns the rest."""
        return BudgetLedger(self.reserve(wanted))

    def close(self, share: BudgetLedger) -> None:
        """Release what is left of `share`."""
        self.settle(share.total, share.spent)
