"""What the workflows of this folder would call."""

from dataclasses import dataclass

import weft


@dataclass
class Hit:
    text: str


@weft.tool
def search(query: str, limit: int = 3) -> list[Hit]:
    """Find texts."""
    return [Hit(query)] * limit


def longest(texts: list[str], key: int = 0) -> str:
    return max(texts, key=len)


@weft.tool
def count(text: str) -> int:
    """Count letters."""
    return len(text)


@weft.tool
def find(words: list[str], query: str = "") -> list[Hit]:
    """Find texts in another way."""
    return [Hit(query + word) for word in words]
