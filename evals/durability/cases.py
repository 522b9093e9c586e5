"""What every system runs: a chain, a fan-out, and a conversation that grows. Knows no system."""

from __future__ import annotations

from typing import Final

CHAIN: Final = 100
WIDTH: Final = 1000
NODES: Final = {"chain_100": CHAIN, "fanout_1000": WIDTH + 2}
_WORDS: Final = 40


def turns_of(case: str) -> int:
    """How many turns a conversation has: the number in its name."""
    return int(case.removeprefix("conversation_"))


def said(turn: int, role: str) -> str:
    """What somebody says in a turn, some 300 characters that stand nowhere else."""
    return " ".join(f"{role}{turn}word{index}" for index in range(_WORDS))


def spoken_bytes(turns: int) -> int:
    """The characters of all messages together: what any store has to keep at least."""
    return sum(len(said(turn, role)) for turn in range(turns) for role in ("user", "assistant"))
