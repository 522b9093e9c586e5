"""What the section `live` is asked for: a model, how many questions, how much each may cost."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from evals.reasoning.equal_budget import Terms
from evals.reasoning.models.tasks import Task, countdown, gsm8k, math500

TASKS: Final[Mapping[str, Callable[[int], Task]]] = {
    "gsm8k": gsm8k,
    "math500": math500,
    "countdown3": countdown,
}


@dataclass(frozen=True, slots=True)
class LiveTerms:
    """`model` as workflows name it: `local:NAME`, `vllm:NAME`; with `base_url` the name that an
    OpenAI-compatible server gives it. Empty: none was named.

    `items` of each task, `at_once` of them side by side (1: wall times are those of one question
    alone). `prices`: money for a million tokens read and written; None: the server is yours.
    """

    model: str = ""
    base_url: str = ""
    items: int = 20
    at_once: int = 1
    tasks: tuple[str, ...] = tuple(TASKS)
    terms: Terms = field(default_factory=lambda: Terms(sample_tokens=512, width=8))
    prices: tuple[float, float] | None = None

    @property
    def declared(self) -> str | dict[str, str]:
        """The model as `Models.of` takes it; a bare name is a model in this process."""
        if self.base_url:
            return {"use": "openai", "model": self.model, "base_url": self.base_url}
        return self.model if ":" in self.model else f"local:{self.model}"

    @property
    def label(self) -> str:
        """The model's name in cases and keys."""
        return re.sub(r"[^a-z0-9.]+", "-", self.model.rpartition(":")[2].lower()).strip("-")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the section to the command line of an evaluation."""
    group = parser.add_argument_group("live", "the section `live`")
    group.add_argument("--model", default="", help="local:NAME, vllm:NAME; with --base-url, NAME")
    group.add_argument("--base-url", default="", help="an OpenAI-compatible server")
    group.add_argument("--items", type=_count, default=20, help="questions of each task")
    group.add_argument("--tasks", type=_tasks, default=tuple(TASKS), help=", ".join(TASKS))
    group.add_argument("--sample-tokens", type=_count, default=512, help="of one sample")
    group.add_argument("--width", type=_count, default=8, help="samples that tokens pay for")
    group.add_argument("--at-once", type=_count, default=1, help="questions side by side")
    group.add_argument(
        "--prices", type=_prices, metavar="IN,OUT", help="money for a million tokens"
    )


def terms_of(asked: argparse.Namespace) -> LiveTerms:
    """The terms that a command line asks for."""
    return LiveTerms(
        asked.model,
        asked.base_url,
        asked.items,
        asked.at_once,
        asked.tasks,
        Terms(asked.sample_tokens, asked.width),
        asked.prices,
    )


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least 1, not {number}")
    return number


def _tasks(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in TASKS]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no task {unknown[0]}; try {', '.join(TASKS)}")
    return names


def _prices(text: str) -> tuple[float, float]:
    read: Sequence[float] = [float(part) for part in text.split(",")]
    if len(read) != 2 or min(read) < 0:
        raise argparse.ArgumentTypeError("two prices: of tokens read, of tokens written")
    return read[0], read[1]
