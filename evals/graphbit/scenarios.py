"""The six scenarios of GraphBit's own benchmark, with prompts of ours. Standard library only.

simple       one call
sequential   four calls, each with the answer before it
parallel     four calls that need nothing of one another
conditional  a call whose answer decides which of two others is made
memory       one call with a prompt of 3,000 words
concurrent   ten programs of one call at once
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

MODEL: Final = "scripted"
LATENCY_S: Final = 0.05
"""How long the server waits before each answer."""
Shape = Literal["single", "chain", "fanout", "branch", "many"]
CLASSIFY: Final = "Classify this message as billing or other, in one word:\nI was charged twice."
CASES: Final[Mapping[str, str]] = {
    "billing": "Answer the customer of the billing department.",
    "other": "Answer the customer of the front desk.",
}
BEFORE: Final = "\n\nThe answer before this one:\n"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A program: its shape, its prompts, and how many calls follow one another."""

    name: str
    shape: Shape
    prompts: tuple[str, ...]
    rounds: int = 1

    @property
    def answers(self) -> int:
        """How many answers a run ends with."""
        return 1 if self.shape in ("single", "chain", "branch") else len(self.prompts)


SCENARIOS: Final = {
    each.name: each
    for each in (
        Scenario("simple", "single", ("Describe a river in two sentences.",)),
        Scenario(
            "sequential",
            "chain",
            (
                "Describe a lamp for a shop.",
                "Write a slogan for it.",
                "Write a customer's review of it.",
                "Summarise what speaks for it.",
            ),
            rounds=4,
        ),
        Scenario(
            "parallel",
            "fanout",
            (
                "Translate good morning to Spanish.",
                "What is the square root of 144?",
                "Write a short poem about rain.",
                "Name three uses of copper.",
            ),
        ),
        Scenario("conditional", "branch", (CLASSIFY, *CASES.values()), rounds=2),
        Scenario("memory", "single", ("What do these show?\n" + "A sample, a point. " * 750,)),
        Scenario("concurrent", "many", tuple(f"Explain subject {n} shortly." for n in range(10))),
    )
}


def answer_to(messages: Sequence[Mapping[str, Any]]) -> str:
    """What the server answers: one word where it is to classify, else forty."""
    text = str(messages[-1]["content"])
    return "billing" if text.startswith("Classify") else " ".join(["answer"] * 40)


@dataclass(frozen=True, slots=True)
class Program:
    """A scenario in the form of one system. `run` returns the answers of one run.

    `close`: closes its connections, if it has any of its own.
    """

    run: Callable[[], Awaitable[Sequence[str]]]
    close: Callable[[], Awaitable[None]] | None = None
