"""A release note that gets shorter until it fits."""

import weft


@weft.tool
def changes() -> list[str]:
    """What is new."""
    return [
        "Nodes start the moment their own inputs are complete.",
        "A map hands on its items one by one.",
        "Failures stay where they happen, and the rest of the run goes on without them.",
    ]


def shorten(lines: list[str]) -> list[str]:
    """The same lines with the longest one cut by a few words."""
    longest = max(range(len(lines)), key=lambda i: len(lines[i]))
    shorter = lines[longest].rstrip(".").rsplit(" ", 3)[0] + "."
    return [shorter if i == longest else line for i, line in enumerate(lines)]


@weft.tool
def publish(text: str) -> str:
    """Pretend to publish."""
    return f"published {len(text)} characters"
