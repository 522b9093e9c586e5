"""Self-distillation: the target writes the training texts of its drafter.

Follows Medusa (arXiv 2401.10774, section 2.3.2): a drafter must guess what this model writes.
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

_SAVED_EVERY: Final = 32
"""Texts between two replacements of the file."""


@dataclass(frozen=True, slots=True)
class DistillationOptions:
    """How answers are written: `temperature` 0 is greedy; `rows` answers at once, which affects the
    time only. Prompts of more than `longest_prompt` tokens are skipped.

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
    options: DistillationOptions,
    on_text: Callable[[int, int], None] = lambda _done, _total: None,
    stop: Callable[[], bool] = lambda: False,
) -> Corpus | None:
    """Write answers to `prompts` into the file `path`, except for those that it already has.

    `on_text` receives the numbers of finished and of all texts. None once `stop` returns true: the
    next call continues from the file, which is also written after an exception.

    Raises: `InputError` for a file of another origin, or when no prompt is short enough; `OSError`.
    """
    origin = _origin(Fingerprint.of(network), prompts, options)
    done = corpus.read(path, origin) if path.exists() else {}
    fitting = [n for n, prompt in enumerate(prompts) if _fits(prompt, options, network)]
    todo = [number for number in fitting if number not in done]
    on_text(len(done), len(fitting))
    saved = len(done)
    try:
        for number, text in _written(network, prompts, todo, options):
            done[number] = text
            on_text(len(done), len(fitting))
            if stop():
                return None
            if len(done) >= saved + _SAVED_EVERY:
                corpus.write(path, done, origin)
                saved = len(done)
    finally:
        if len(done) > saved:
            corpus.write(path, done, origin)
    return Corpus([done[number] for number in sorted(done)])


@dataclass(slots=True)
class _Row:
    """An answer in progress. The first `read` tokens are in the network's cache."""

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
    options: DistillationOptions,
) -> Iterator[tuple[int, TrainingText]]:
    """Texts in the order of completion; a free row takes the next prompt."""
    waiting = deque(todo)
    rows: dict[int, _Row] = {}
    sampling = SamplingParams(options.temperature, top_p=options.top_p)
    network.reset()
    while waiting or rows:
        for slot in range(options.rows):
            if waiting and slot not in rows:
                number = waiting.popleft()
                rows[slot] = _Row(number, len(prompts[number]), list(prompts[number]))
        readings = network.forward([row.span(slot) for slot, row in rows.items()])
        for slot, row in list(rows.items()):
            distribution = sampling.distribution(readings[slot].logits[-1])
            rng = CounterRng(options.seed * len(prompts) + row.number)
            token = rng.token(distribution, len(row.tokens) - row.answer)
            row.take(token, options.max_tokens, network.generation.end_ids)
            if row.done:
                del rows[slot]
                yield row.number, TrainingText(tuple(row.tokens), row.answer)


def _fits(prompt: Sequence[int], options: DistillationOptions, network: Network) -> bool:
    room = network.context_tokens - options.max_tokens
    return 0 < len(prompt) <= min(options.longest_prompt, room)


def _origin(
    target: Fingerprint, prompts: Sequence[Sequence[int]], options: DistillationOptions
) -> str:
    """The digest of everything that determines the texts."""
    how = {name: value for name, value in asdict(options).items() if name != "rows"}
    described = json.dumps([asdict(target), how, [list(prompt) for prompt in prompts]])
    return hashlib.sha256(described.encode()).hexdigest()
