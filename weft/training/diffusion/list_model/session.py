"""The training of a list model: generated texts, steps, a folder, an evaluation.

It is evaluated on questions about held-out items, in whole passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from numpy.typing import NDArray

from weft.core.errors import InputError
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.closed_forms import ONE_STEP, one_step
from weft.decoding.diffusion.oracle.language import ListQuestion
from weft.decoding.diffusion.oracle.languages import DETERMINISTIC, LANGUAGES, valid
from weft.training.diffusion.list_model import network
from weft.training.diffusion.list_model.objectives import (
    CausalObjective,
    MaskedObjective,
    block_causal,
    hidden,
)
from weft.training.diffusion.list_model.questions import (
    LONGEST,
    ListBatch,
    ListSource,
    draw_question,
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
from weft.training.frame import EvaluationStarted, Schedule, Trainer
from weft.training.muon import Muon

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM


@dataclass(frozen=True, slots=True)
class ListPredictor:
    """A list model. `block` 0: full attention. `causal`: a slot predicts the next one."""

    model: LlamaForCausalLM
    block: int = 0
    causal: bool = False

    def logits(self, ids: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        """ids, wanted [texts, slots]: [wanted slots, vocabulary], aligned."""
        block = 1 if self.causal else self.block
        sees = block_causal(ids.shape[1], block) if block else None
        at = wanted.roll(-1, dims=1) if self.causal else wanted
        with torch.no_grad():
            logits: torch.Tensor = self.model.lm_head(hidden(self.model, ids, at, sees)).float()
        logits[:, [words.MASK, words.PAD]] = -torch.inf
        return logits


def questions(operation: str, n: int, count: int, seed: int = 0) -> list[ListQuestion]:
    """`count` held-out questions."""
    rng = np.random.default_rng([seed, n])
    return [draw_question(operation, n, rng, unseen=True) for _ in range(count)]


def validity(
    reader: ListPredictor,
    examples: list[ListQuestion],
    passes: int,
    rng: np.random.Generator | None = None,
) -> float:
    """The share of valid answers to questions of one form.

    passes: in which an answer is written; 0: one token a pass, in random order, or from left to
    right with a causal model. rng: for the order, and for sampling; None: the likeliest tokens.
    """
    answers = _answers(reader, examples, passes, rng)
    right = [valid(question, row) for question, row in zip(examples, answers.tolist(), strict=True)]
    return float(np.mean(right))


def _answers(
    reader: ListPredictor,
    examples: list[ListQuestion],
    passes: int,
    rng: np.random.Generator | None,
) -> NDArray[np.int64]:
    """[questions, tokens of an answer], on a canvas with one slot more, which is an EOS."""
    first = len(examples[0].prompt)
    length = LANGUAGES[examples[0].operation].length(examples[0])
    ids = torch.full((len(examples), first + length + 1), words.MASK)
    for row, question in zip(ids, examples, strict=True):
        row[:first] = torch.tensor(question.prompt)
    order = np.tile(np.arange(first, first + length), (len(examples), 1))
    if not reader.causal and not reader.block:
        order = (rng or np.random.default_rng(0)).permuted(order, axis=1)
    for slots in np.array_split(order, passes or length, axis=1):
        wanted = torch.zeros_like(ids, dtype=torch.bool).scatter_(1, torch.tensor(slots), True)
        logits = reader.logits(ids, wanted)
        ids[wanted] = _drawn(logits, rng)
    answers: NDArray[np.int64] = ids[:, first : first + length].numpy()
    return answers


def _drawn(logits: torch.Tensor, rng: np.random.Generator | None) -> torch.Tensor:
    """[slots]: the likeliest tokens, or tokens at their probabilities (exponential race)."""
    if rng is None:
        return logits.argmax(dim=1)
    waits = torch.from_numpy(rng.exponential(size=tuple(logits.shape)))
    return (logits.double().softmax(dim=1) / waits).argmax(dim=1)


_ITEMS: Final = 5


def _train(
    job: DiffusionTrainingJob, resume: bool, listener: TrainingListener
) -> DiffusionTrainingResult | None:
    variant = _variant(job.variant)
    settings, schedule = KIND.set_to(job), KIND.scheduled(job)
    network.check_size(settings["width"], settings["layers"])
    prepare(job, schedule, resume)
    model = network.new(settings["width"], settings["layers"], schedule.seed)
    if job.model is not None:
        network.begin_with(model, job.model)
    objective = _objective(model, variant)
    trainer = Trainer[ListBatch](
        objective, ListSource(), schedule, job.out / CHECKPOINT, optimiser=_optimiser
    )
    if resume:
        trainer.resume()
    losses = run_steps(trainer, listener)
    if losses is None:
        return None
    count = settings["examined"]
    listener.on_news(EvaluationStarted(count * len(LANGUAGES)))
    reader = ListPredictor(model, objective.block, variant == "ar")
    lines = []
    for line in _examined(reader, count, schedule.seed) if count else ():
        if listener.stop():
            return None
        lines.append(line)
    network.save(model, job.out, variant)
    return finish(KIND.name, job, schedule.steps, losses, lines)


def _variant(name: str | None) -> network.Variant:
    for variant in network.VARIANTS:
        if variant == name:
            return variant
    there = ", ".join(network.VARIANTS)
    raise InputError(f"there is no list model {name!r}", hint=f"--variant is one of {there}")


def _objective(
    model: LlamaForCausalLM, variant: network.Variant
) -> MaskedObjective | CausalObjective:
    if variant == "ar":
        return CausalObjective(model)
    return MaskedObjective(model, network.BLOCK if variant == "block" else 0)


def _optimiser(
    learnt: Mapping[str, torch.nn.Parameter], schedule: Schedule
) -> torch.optim.Optimizer:
    """Muon for the weights between embeddings and head."""
    inner = {name: p for name, p in learnt.items() if p.ndim == 2 and ".layers." in name}
    others = [p for name, p in learnt.items() if name not in inner]
    return Muon(inner.values(), others, schedule.rate, schedule.decay)


def _examined(reader: ListPredictor, count: int, seed: int) -> Iterator[str]:
    """The result of each operation, as a line of text."""
    for name in LANGUAGES:
        n = min(_ITEMS, LANGUAGES[name].longest)
        examples = questions(name, n, count, seed)
        rng = None if name in DETERMINISTIC else np.random.default_rng(seed)
        one_by_one = validity(reader, examples, 0, rng)
        line = f"{name} of {n}: {one_by_one:.1%} valid one by one"
        if not reader.causal:
            line += f", {validity(reader, examples, 1, rng):.1%} in one step"
            if name in ONE_STEP:
                line += f" ({one_step(name, n):.1%} if predictions were true)"
        yield line


KIND: Final = DiffusionTrainerSpec(
    "list",
    "a small model of list operations, from nothing",
    Schedule(steps=3200, texts=80, longest=LONGEST, rate=4e-3, warm_up=0.02, keep_every=200),
    {"width": 128, "layers": 4, "examined": 200},
    _train,
    frozenset({"variant", "model"}),
)
