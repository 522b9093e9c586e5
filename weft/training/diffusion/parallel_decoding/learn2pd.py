"""Training of Learn2PD's filter of final predictions (Bao et al., arXiv 2509.25188).

A text is replayed with the greediest right decisions: each pass decides all slots whose likeliest
token is that of the text, and records the confidence of every slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import binary_cross_entropy_with_logits

from weft.core.errors import InputError
from weft.decoding.diffusion.action import Action, SlotTokens
from weft.decoding.diffusion.adapter import ModelAdapter, ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import denoise_all
from weft.decoding.diffusion.policies import learn2pd
from weft.decoding.diffusion.policies.learn2pd import FinalityFilter, confidences
from weft.decoding.diffusion.policies.ranking import rank_rows
from weft.decoding.diffusion.ports import Need
from weft.decoding.diffusion.stats import SampledTokens, Stats
from weft.training.diffusion.parallel_decoding.self_generated import (
    Ids,
    Prompt,
    SelfGeneratedText,
    denoising_rows,
    load_teacher,
    prompts_of,
    write_texts,
)
from weft.training.diffusion.spec import (
    CHECKPOINT,
    DiffusionTrainerSpec,
    DiffusionTrainingJob,
    DiffusionTrainingResult,
    TrainingListener,
    finish,
    prepare,
    run_steps,
)
from weft.training.frame import EvaluationStarted, Schedule, TextsWritten, Trainer

_AT_ONCE: Final = 48


@dataclass(frozen=True, slots=True, eq=False)
class FilterExamples:
    """Passes over windows, as inputs and goals of the filter.

    confidences [looks, slots] of the likeliest tokens, 1 where no slot is open
    right       [looks, slots] whether that token is the final one
    open        [looks, slots] whether the slot is judged
    """

    confidences: NDArray[np.float32]
    right: NDArray[np.bool_]
    open: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.confidences)

    @property
    def learnt_tokens(self) -> int:
        """Number of judged slots."""
        return int(self.open.sum())

    def at(self, which: NDArray[np.int64]) -> FilterExamples:
        """The examples `which`."""
        return FilterExamples(self.confidences[which], self.right[which], self.open[which])


@dataclass(slots=True)
class FilterExampleRecorder:
    """Collects examples."""

    slots: int
    rows: list[tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]] = field(
        default_factory=list
    )

    @property
    def looks(self) -> FilterExamples:
        """All examples, in order."""
        parts = zip(*self.rows, strict=True)
        return FilterExamples(*(np.array(part) for part in parts))


@dataclass(frozen=True, slots=True, eq=False)
class ReplayPolicy:
    """A commit policy that replays `text` [slots of the canvas], and records each pass."""

    text: Ids
    recorder: FilterExampleRecorder
    needs: frozenset[Need] = frozenset()

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> _ReplaySession:
        return _ReplaySession(self)

    def most_forwards(self, slots: int) -> int:
        return slots


class _ReplaySession:
    def __init__(self, settings: ReplayPolicy) -> None:
        self._text, self._recorder = settings.text, settings.recorder

    def propose(self, stats: Stats, _drawn: SampledTokens, canvas: Canvas) -> Action:
        right = stats.open & (stats.top_ids[:, 0] == self._text[stats.slots])
        self._record(stats, right, canvas)
        chosen = right
        if not right.any():  # else the canvas would never change
            chosen = np.zeros_like(right)
            chosen[rank_rows(stats.confidence, stats.open)[:1]] = True
        slots = stats.slots[chosen]
        return Action(commit=SlotTokens.of(slots, self._text[slots]))

    def _record(self, stats: Stats, right: NDArray[np.bool_], canvas: Canvas) -> None:
        size = self._recorder.slots
        places = stats.slots - canvas.window.start
        inside = places < size
        judged = np.zeros((2, size), dtype=np.bool_)
        judged[0, places[inside]] = right[inside]
        judged[1, places[inside]] = stats.open[inside]
        sure = confidences(stats, canvas, size).astype(np.float32)
        self._recorder.rows.append((sure, judged[0], judged[1]))


def replay_texts(
    adapter: ModelAdapter,
    texts: Sequence[SelfGeneratedText],
    slots: int,
    on_text: Callable[[int], None],
    stop: Callable[[], bool],
) -> FilterExamples | None:
    """Examples with `slots` slots of all texts; None when `stop` returned true."""
    recorder = FilterExampleRecorder(slots)
    for first in range(0, len(texts), _AT_ONCE):
        some = texts[first : first + _AT_ONCE]
        policies = [ReplayPolicy(text.ids, recorder) for text in some]
        rows = denoising_rows(
            adapter, [text.prompt for text in some], len(some[0].answer), policies
        )
        denoise_all(rows, adapter)
        on_text(first + len(some))
        if stop():
            return None
    return recorder.looks


_HELD_OUT_EVERY: Final = 10
_THRESHOLDS: Final = (0.9, 0.96)


class FilterObjective:
    """Trains the filter: binary cross entropy over open slots."""

    def __init__(self, slots: int, hidden: int, seed: int) -> None:
        torch.manual_seed(seed)
        self.module = torch.nn.Sequential(
            torch.nn.Linear(slots, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, slots)
        )
        """So small that it is trained on the CPU, whatever the model's device."""

    def loss(self, batch: FilterExamples, rng: np.random.Generator) -> torch.Tensor:  # noqa: ARG002
        """The mean loss of open slots."""
        odds = self.module(torch.from_numpy(batch.confidences))
        judged = torch.from_numpy(batch.open)
        right = torch.from_numpy(batch.right).float()
        return binary_cross_entropy_with_logits(odds[judged], right[judged])

    @property
    def finality(self) -> FinalityFilter:
        """The current filter."""
        inward, _, outward = self.module
        parts = (inward.weight, inward.bias, outward.weight, outward.bias)
        return FinalityFilter(*(part.detach().numpy().copy() for part in parts))


class FilterExampleSource:
    """A `BatchSource` of `looks`, which are set later."""

    looks: FilterExamples

    def draw(self, rng: np.random.Generator, texts: int, longest: int) -> FilterExamples:  # noqa: ARG002
        """`texts` random examples; all, if there are fewer."""
        if texts >= len(self.looks):
            return self.looks
        return self.looks.at(rng.choice(len(self.looks), texts, replace=False))


def _train(
    job: DiffusionTrainingJob, resume: bool, listener: TrainingListener
) -> DiffusionTrainingResult | None:
    if job.model is None:
        raise InputError("a filter is for one model", hint="--model NAME or FOLDER")
    settings, schedule = KIND.set_to(job), KIND.scheduled(job)
    if not settings["hidden"] or not settings["texts"]:
        raise InputError("neither texts nor what is hidden can be none")
    prepare(job, schedule, resume)
    adapter = load_teacher(job)
    prompts = prompts_of(job, adapter.traits)
    room = settings["slots"] or prompts.slots
    slots = adapter.traits.block or room
    objective = FilterObjective(slots, settings["hidden"], schedule.seed)
    source = FilterExampleSource()
    trainer = Trainer[FilterExamples](objective, source, schedule, job.out / CHECKPOINT)
    if resume:
        trainer.resume()
    selected = prompts.drawn(settings["texts"], room, np.random.default_rng(schedule.seed))
    looks = _looks(adapter, selected, room, slots, listener)
    if looks is None:
        trainer.keep()  # the same examples can be made again
        return None
    if len(looks) < _HELD_OUT_EVERY:
        raise InputError(
            f"{len(looks)} looks at predictions are too few to learn from",
            hint=f"write more texts: --set texts={KIND.settings['texts']}",
        )
    held_out = np.arange(len(looks)) % _HELD_OUT_EVERY == _HELD_OUT_EVERY - 1
    source.looks = looks.at(np.flatnonzero(~held_out))
    losses = run_steps(trainer, listener)
    if losses is None:
        return None
    rest = looks.at(np.flatnonzero(held_out))
    listener.on_news(EvaluationStarted(len(rest)))
    lines = list(_trusted(objective.finality, rest))
    details = {"looks": len(looks), "steps": schedule.steps}
    learn2pd.save_filter(job.out, objective.finality, adapter.traits.digest, details)
    return finish(KIND.name, job, schedule.steps, losses, lines)


def _looks(
    adapter: ModelAdapter,
    prompts: Sequence[Prompt],
    room: int,
    slots: int,
    listener: TrainingListener,
) -> FilterExamples | None:
    """Examples of answers with `room` slots, in windows of `slots`."""
    count = len(prompts)
    both = 2 * count
    texts = write_texts(
        adapter,
        prompts,
        room,
        lambda done: listener.on_news(TextsWritten(done, both)),
        listener.stop,
    )
    if texts is None:
        return None
    return replay_texts(
        adapter,
        texts,
        slots,
        lambda done: listener.on_news(TextsWritten(count + done, both)),
        listener.stop,
    )


def _trusted(judge: FinalityFilter, looks: FilterExamples) -> Iterator[str]:
    """The results of each threshold as a line of text: passed slots, and wrong ones."""
    odds = np.array([judge.final(row) for row in looks.confidences.astype(np.float64)])
    for threshold in _THRESHOLDS:
        passed = (odds > threshold) & looks.open
        wrong = int((passed & ~looks.right).sum())
        of = int((looks.right & looks.open).sum())
        yield (
            f"above {threshold}: {int((passed & looks.right).sum())} of {of} final slots let "
            f"through, and {wrong} of {int((~looks.right & looks.open).sum())} that were not"
        )


KIND: Final = DiffusionTrainerSpec(
    "learn2pd",
    "a filter that tells which slots of a diffusion model are final",
    Schedule(steps=3000, texts=2048, longest=1, rate=3e-3, warm_up=0.02, keep_every=500),
    {"slots": 0, "hidden": 32, "texts": 600},
    _train,
    frozenset({"model", "data", "device"}),
)
"""`slots` of an answer; 0: 16 for a list model, else 64."""
