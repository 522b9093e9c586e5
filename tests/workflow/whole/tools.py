"""What the workflows of this folder call."""

import weft


@weft.tool
def search(query: str, limit: int = 3) -> list[dict[str, str]]:
    """Find texts.

    Args:
        query: what to look for
        limit: how many texts
    """
    return [{"text": f"{query} {number}"} for number in range(limit)]


@weft.tool
async def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


def longest(texts: list[str], least: int = 0) -> str:
    """The longest text."""
    return max((text for text in texts if len(text) >= least), key=len)


def shout(text: str, mark: str = "!") -> str:
    return text.upper() + mark
