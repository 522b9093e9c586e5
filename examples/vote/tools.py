"""Counting votes."""

from collections import Counter


def majority(answers: list[dict[str, int]]) -> dict[str, int]:
    """The answer most samples agree on, the smaller one of equals, and how many agreed."""
    votes = Counter(answer["answer"] for answer in answers)
    best = min(votes, key=lambda answer: (-votes[answer], answer))
    return {"answer": best, "votes": votes[best], "samples": len(answers)}
