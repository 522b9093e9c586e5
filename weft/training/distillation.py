"""Self-distillation: the target writes the texts that its drafter learns from.

Follows Medusa (arXiv 2401.10774, section 2.3.2): a drafter has to guess what this model writes,
not what others wrote.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.decoding.speculative.trained_drafter import Fingerprint
from weft.training import corpus
from weft.training.corpus import Corpus, TrainingText

_KEPT_EVERY: Final = 32
"""So many texts are written before the file is replaced again."""


@dataclass(frozen=True, slots=True)
class DistillationOptions:
    """How answers are written: `temperature` 0 is greedy; `rows` at once, which changes nothing
    but the time. A prompt of more than `longest_prompt` tokens gets none.

    Raises: `ValueError` for a value out of range.
    """

    max_tokens: int = 192
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    longest_prompt: int = 1024
    rows: int = 16

    def __post_init__(self) -> None:
        if min(self.max_tokens, self.longest_prompt, self.rows) < 1:
            raise ValueError(f"nothing can be written with {self}")
        SamplingParams(self.temperature, top_p=self.top_p)


def distil(
    network: Network,
    prompts: Sequence[Sequence[int]],
    path: Path,
    writing: DistillationOptions,
    on_text: Callable[[int, int], None] = lambda _done, _total: None,
    stop: Callable[[], bool] = lambda: False,
) -> Corpus | None:
    """Answers to `prompts`, kept in the file `path`; what stands there already is not written anew.

    `on_text` is told how many of how many are there. None once `stop` says so: then the next call
    goes on from the file, which is also left when an exception ends this one.

    Raises: `InputError` for a file that was written from something else, or when nothing is short
    enough; `OSError`.
    """
    origin = _origin(Fingerprint.of(network), prompts, writing)
    done = corpus.read(path, origin) if path.exists() else {}
    fitting = [n for n, prompt in enumerate(prompts) if _fits(prompt, writing, network)]
    todo = [number for number in fitting if number not in done]
    on_text(len(done), len(fitting))
    kept = len(done)
    try:
        for number, text in _written(network, prompts, todo, writing):
            done[number] = text
            on_text(len(done), len(fitting))
            if stop():
                return None
            if len(done) >= kept + _KEPT_EVERY:
                corpus.write(path, done, origin)
                kept = len(done)
    finally:
        if len(done) > kept:
            corpus.write(path, done, origin)
    return Corpus([done[number] for number in sorted(done)])


@dataclass(slots=True)
class _Row:
    """One answer on its way. The first `read` tokens are in the network's cache."""

    number: int
    answer: int
    tokens: list[int]
    read: int = 0
    done: bool = field(default=False)

    def span(self, slot: int) -> Span:
        columns = range(self.read, len(self.tokens))
        return Span(slot, columns, self.tokens[self.read :], wants_logits=1)

    def take(self, token: int, max_tokens: int, ends: frozenset[int]) -> None:
        self.read = len(self.tokens)
        self.tokens.append(token)
        self.done = token in ends or len(self.tokens) - self.answer >= max_tokens


def _written(
    network: Network,
    prompts: Sequence[Sequence[int]],
    todo: Sequence[int],
    writing: DistillationOptions,
) -> Iterator[tuple[int, TrainingText]]:
    """Texts as they are done; a row that is free takes the next prompt."""
    waiting = deque(todo)
    rows: dict[int, _Row] = {}
    sampling = SamplingParams(writing.temperature, top_p=writing.top_p)
    network.reset()
    while waiting or rows:
        for slot in range(writing.rows):
            if waiting and slot not in rows:
                number = waiting.popleft()
                rows[slot] = _Row(number, len(prompts[number]), list(prompts[number]))
        readings = network.forward([row.span(slot) for slot, row in rows.items()])
        for slot, row in list(rows.items()):
            distribution = sampling.distribution(readings[slot].logits[-1])
            rng = CounterRng(writing.seed * len(prompts) + row.number)
            token = rng.token(distribution, len(row.tokens) - row.answer)
            row.take(token, writing.max_tokens, network.generation.end_ids)
            if row.done:
                del rows[slot]
                yield row.number, TrainingText(tuple(row.tokens), row.answer)


def _fits(prompt: Sequence[int], writing: DistillationOptions, network: Network) -> bool:
    room = network.context_tokens - writing.max_tokens
    return 0 < len(prompt) <= min(writing.longest_prompt, room)


def _origin(
    target: Fingerprint, prompts: Sequence[Sequence[int]], writing: DistillationOptions
) -> str:
    """What the texts come of, as a digest."""
    how = {name: value for name, value in asdict(writing).items() if name != "rows"}
    described = json.dumps([asdict(target), how, [list(prompt) for prompt in prompts]])
    return hashlib.sha256(described.encode()).hexdigest()
