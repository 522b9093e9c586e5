"""What every system runs: a chain, a fan-out, and a conversation that grows. Knows no system."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

CHAIN: Final = 100
WIDTH: Final = 1000
NODES: Final = {"chain_100": CHAIN, "fanout_1000": WIDTH + 2}
_WORDS: Final = 40


def turns_of(case: str) -> int:
    """How many turns a conversation has: the number in its name."""
    return int(case.removeprefix("conversation_"))


def said(talk: int, turn: int, role: str) -> str:
    """What somebody says in a turn of a conversation: some 500 characters that stand nowhere else.

    They do not repeat themselves, so that compressing them saves less than half.
    """
    words = (sha256(f"{talk} {turn} {role} {n}".encode()).hexdigest()[:12] for n in range(_WORDS))
    return " ".join(words)


def spoken_bytes(turns: int) -> int:
    """The characters of all messages together: what any store has to keep at least."""
    return sum(len(said(0, turn, role)) for turn in range(turns) for role in ("user", "assistant"))
