"""Where tickets come from and where they go."""

import weft

TICKETS = [
    "I was charged twice for my subscription this month.",
    "The app crashes when I open the settings page.",
    "How do I change my delivery address?",
    "My invoice shows the wrong company name.",
    "Since the update the export button does nothing.",
    "Do you also ship to Norway?",
]


@weft.tool
def inbox(limit: int) -> list[str]:
    """The oldest open tickets."""
    return TICKETS[:limit]


@weft.tool
def refund_desk(ticket: str) -> str:
    """Open a case with accounting."""
    return f"accounting will look at: {ticket}"


@weft.tool
def bug_tracker(ticket: str) -> str:
    """File a bug."""
    return f"bug filed: {ticket}"


def count(labels: list[dict[str, str]]) -> dict[str, int]:
    """How many tickets have which topic, most frequent first."""
    topics = [label["topic"] for label in labels]
    return {t: topics.count(t) for t in sorted(set(topics), key=lambda t: (-topics.count(t), t))}
