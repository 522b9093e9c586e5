"""The twelve jobs: what each is, and its right result. Data that every program of a job shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DOCUMENTS: Final = {
    "bees.txt": "A bee dances to show where food is. The dance tells direction and distance.",
    "tides.txt": "Tides follow the moon. Two tides a day reach most coasts.",
    "glass.txt": "Glass is made of sand. Food was kept in glass before tin.",
}
SOURCES: Final = {
    "good.py": "def twice(x):\n    return 2 * x\n",
    "bad.py": "def run(text):\n    return eval(text)\n",
}


@dataclass(frozen=True, slots=True)
class Job:
    """`result`: what every program of the job returns."""

    summary: str
    result: object


JOBS: Final[Mapping[str, Job]] = {
    "rag": Job(
        "a question over a folder of texts, typed answer, invented citations dropped",
        {"answer": "Bees dance to show where food is.", "citations": ["bees.txt"]},
    ),
    "review": Job(
        "files side by side, three reviewers each, accepted when two accept, one report",
        {"good.py": "accepted", "bad.py": "rejected: it evaluates text"},
    ),
    "agent": Job(
        "an agent with two tools; paying waits for a person, in a second process",
        {"asked": {"order": 17, "amount": 40}, "answer": "Order 17 is refunded.", "paid": [17]},
    ),
    "chat": Job("a chat that remembers from run to run", ["Hello", "You are Ada"]),
    "fanout": Job(
        "500 calls, at most 20 at a time, retries, and a partial result",
        {"done": 495, "failed": 5, "calls": 510},
    ),
    "prompts": Job("two prompts on 50 cases", {"short": 0.9, "careful": 1.0}),
    "react": Job("an agent with two tools (LangGraph's quick start)", "The result is 14."),
    "handoff": Job("an agent that hands over to another", "Booked a flight to Oslo."),
    "jokes": Job(
        "map-reduce: subjects, a joke for each, the best (LangGraph's guide)", "A joke about ants"
    ),
    "refund": Job(
        "a workflow that waits for a person's yes (LangGraph's interrupt)",
        {"asked": "Refund 40 for order 17?", "state": "paid 40"},
    ),
    "essay": Job("a draft, criticised and rewritten until it is good", "draft 3"),
    "question": Job(
        "question, answer, evaluation, until it is right (pydantic-graph's example)",
        {"asked": 2, "state": "correct"},
    ),
}


def lay_out(folder: Path) -> None:
    """Write the files that jobs read into a folder."""
    for place, files in (("documents", DOCUMENTS), ("sources", SOURCES)):
        (folder / place).mkdir()
        for name, text in files.items():
            (folder / place / name).write_text(text, encoding="utf-8")
