"""A token budget: nothing is spent that was not granted. Knows no thread."""

from __future__ import annotations


class BudgetLedger:
    """`total` tokens, of which `kept` are only granted for a final answer.

    `spent` counts what was used, `granted` what is out. The two never come to more than `total`,
    unless somebody used more than was granted: then the next are granted less.

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
        """What could be granted for a final answer now."""
        return max(0, self.total - self.spent - self.granted)

    @property
    def free(self) -> int:
        """What could be granted for anything else now."""
        return max(0, self.left - self.kept)

    def reserve(self, wanted: int, *, final: bool = False) -> int:
        """Set aside up to `wanted` tokens; how many there are, 0 when all are spent."""
        granted = max(0, min(wanted, self.left if final else self.free))
        self.granted += granted
        return granted

    def settle(self, granted: int, used: int) -> None:
        """Give back what was `granted`, of which so much was `used`; once for each grant."""
        self.granted -= granted
        self.spent += used

    def share(self, wanted: int) -> BudgetLedger:
        """A ledger of up to `wanted` tokens out of this one; `close` gives back the rest."""
        return BudgetLedger(self.reserve(wanted))

    def close(self, share: BudgetLedger) -> None:
        """Take back what is left of `share`."""
        self.settle(share.total, share.spent)
