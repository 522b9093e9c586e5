"""What every system is asked, and what it answers. Standard library only: peers import it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

CASES = ("first_token", "stream_1", "streams_32", "prompt")
STREAMS = 32
_TOPICS = ("rain", "a dog", "the sea", "bread", "a train", "winter", "music", "a garden")


@dataclass(frozen=True, slots=True)
class Load:
    """`model` is a folder or a file; `number` makes a round's prompts differ from all others."""

    model: str
    threads: int
    tokens: int
    prompt_words: int
    number: int


def begin() -> tuple[Load, float]:
    """What this process is to do, and when it began. Call it before anything is imported."""
    begun = time.perf_counter()
    return Load(**json.loads(sys.argv[1])), begun


def questions(load: Load, count: int) -> list[str]:
    """Short prompts, each to be answered in `load.tokens` tokens."""
    return [
        f"Note {load.number:02d}{n:02d}: write a story about {_TOPICS[n % len(_TOPICS)]}."
        for n in range(count)
    ]


def long_text(load: Load) -> str:
    """A prompt of `load.prompt_words` words, to be answered in one token."""
    words = [f"{_TOPICS[n % len(_TOPICS)]} {load.number + n}" for n in range(load.prompt_words)]
    return "Count these: " + ", ".join(words)


def timed(work: Callable[[], int]) -> float:
    """Tokens a second of `work`, which returns how many tokens it wrote or read."""
    begun = time.perf_counter()
    return work() / (time.perf_counter() - begun)


def tell(first_token_s: float, speeds: dict[str, float]) -> None:
    """The last line of a worker."""
    print(json.dumps({"first_token": first_token_s, **speeds}), flush=True)


def command(python: str, module: str, load: Load) -> Sequence[str]:
    """The command line of a worker."""
    return (python, "-m", module, json.dumps(asdict(load)))
