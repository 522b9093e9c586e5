"""dParallel: trains a model to be certain of many slots at once (arXiv 2509.26488).

Of each text one block is trained, with earlier blocks whole and later ones masked: the cross
entropy of its masked slots, and of its other slots with these masked instead; and, where the
likeliest token is right already, the entropy of a sharpened prediction, to raise certainty.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from weft.core.errors import CapabilityError, InputError
from weft.decoding.adapters import adapter_file
from weft.decoding.diffusion.adapter import ModelAdapter
from weft.decoding.diffusion.denoising import denoise_all
from weft.decoding.diffusion.models.families import OURS
from weft.decoding.diffusion.models.folder import FORMAT
from weft.decoding.diffusion.models.loading import load_trainable
from weft.decoding.diffusion.policies.confidence import EntropyThresholdPolicy
from weft.decoding.network.layers import no_progress_bars
from weft.decoding.network.options import NetworkOptions
from weft.training.devices import mixed_precision
from weft.training.diffusion.block import model_config
from weft.training.diffusion.block.masked_lora import MaskedLoraModel
from weft.training.diffusion.parallel_decoding.self_generated import (
    Prompt,
    SelfGeneratedText,
    denoising_rows,
    load_teacher,
    prompts_of,
    write_texts,
)
from weft.training.diffusion.spec import (
    CHECKPOINT,
    CONFIG,
    DiffusionTrainerSpec,
    DiffusionTrainingJob,
    DiffusionTrainingResult,
    TrainingListener,
    finish,
    prepare,
    run_steps,
)
from weft.training.frame import EvaluationStarted, Schedule, TextsWritten, Trainer

if TYPE_CHECKING:
    from transformers import PreTrainedModel


_ALPHA: Final = 2.0
"""Alpha of LoRA, as a multiple of the rank."""
_PRESET: Final = "dparallel"


class DiffusionStudent:
    """The job's model in training. `rank` 0: all weights are trained.

    Raises: `InputError` for an unreadable model, or one with unsupported attention.
    """

    def __init__(self, job: DiffusionTrainingJob, rank: int) -> None:
        assert job.model is not None
        options = NetworkOptions(dtype="float32", threads=job.threads, device=job.device)
        try:
            self._loaded = load_trainable(job.model, options, find=job.find)
        except CapabilityError as error:
            message = f"{job.model} is no diffusion model to distil: {error.message}"
            raise InputError(message, hint=error.hint) from error
        self.traits = self._loaded.traits
        self._model: PreTrainedModel = self._loaded.model
        kind = self._model.config.model_type
        if self.traits.attention == "causal_encoder" or kind not in OURS:
            raise InputError(
                f"{job.model} is not distilled here: a {kind} model whose attention is"
                f" {self.traits.attention}",
                hint=f"take a {', '.join(OURS)} whose slots see all, or all up to their block",
            )
        self._maps: MaskedLoraModel | None = None
        if rank:
            self._model.requires_grad_(requires_grad=False)
            mask = self.mask
            self._maps = MaskedLoraModel(self._model, rank, _ALPHA * rank, mask, fills=True)
        self.module: torch.nn.Module = self._maps or self._model

    @property
    def mask(self) -> int:
        """The mask, which undecided slots contain."""
        assert self.traits.mask_id is not None
        return self.traits.mask_id

    @property
    def device(self) -> torch.device:
        """Where it learns."""
        device: torch.device = self._model.device
        return device

    def logits(self, ids: torch.Tensor, wanted: torch.Tensor, sees: torch.Tensor) -> torch.Tensor:
        """[wanted slots, vocabulary], aligned, with gradients.

        ids, wanted  [texts, slots]
        sees         [slots, slots] bool: visibility
        """
        # a shifted model predicts a slot at the one before it
        rows = wanted.roll(-1, dims=1) if self.traits.shifted else wanted
        with mixed_precision(self.device):
            output = self._model.base_model(
                input_ids=ids, attention_mask=sees.expand(len(ids), 1, -1, -1), use_cache=False
            )
            logits: torch.Tensor = self._model.get_output_embeddings()(
                output.last_hidden_state[rows]
            )
        return logits.float()[:, : self.traits.vocabulary]

    def save(self, folder: Path) -> None:
        """Write the whole model in half precision, in weft's own format. Raises: `OSError`."""
        if self._maps is not None:
            partial = folder / f".{model_config.ADAPTER}"
            adapter_file.write(partial, dict(self._maps.tensors()), self._maps.alpha)
            try:
                self._maps.detach_hooks()
                adapter_file.merge(self._model, partial)
            finally:
                partial.unlink(missing_ok=True)
        with no_progress_bars():
            self._model.cpu().half().save_pretrained(folder)  # the last use of the model
        model_config.write_model_config(folder, self._loaded.folder, self._config())

    def _config(self) -> dict[str, object]:
        traits = self.traits
        return {
            "format": FORMAT,
            "attention": traits.attention,
            **({"block": traits.block} if traits.block else {}),
            "shifted": traits.shifted,
            "mask_id": traits.mask_id,
            "end_ids": sorted(traits.end_ids),
            "banned": sorted(traits.banned),
            "preset": _PRESET,
        }


_SHARPENED: Final = 0.5
_CERTAINTY: Final = 2.0
"""Weight of the entropy, relative to cross entropy."""


@dataclass(frozen=True, slots=True, eq=False)
class SelfGeneratedBatch:
    """Texts of equal length. ids [texts, slots]; answer: the first slot of each answer."""

    ids: torch.Tensor
    answer: torch.Tensor

    @property
    def learnt_tokens(self) -> int:
        """Number of answer slots."""
        return int((self.ids.shape[1] - self.answer).sum())


class SelfGeneratedSource:
    """A `BatchSource` of texts set later; those of a batch have equal length."""

    def __init__(self) -> None:
        self._by_length: list[list[SelfGeneratedText]] = []
        self._shares = np.zeros(0)

    def give(self, texts: Sequence[SelfGeneratedText]) -> None:
        """Set the texts. Raises: `InputError` for none."""
        if not texts:
            raise InputError("there are no texts to learn from")
        by_length: dict[int, list[SelfGeneratedText]] = defaultdict(list)
        for text in texts:
            by_length[len(text.ids)].append(text)
        self._by_length = [by_length[length] for length in sorted(by_length)]
        self._shares = np.array([len(some) for some in self._by_length]) / len(texts)

    def draw(self, rng: np.random.Generator, texts: int, longest: int) -> SelfGeneratedBatch:  # noqa: ARG002
        """`texts` of one length, some more than once where there are fewer."""
        some = self._by_length[rng.choice(len(self._shares), p=self._shares)]
        chosen = [some[at] for at in rng.integers(len(some), size=texts)]
        ids = np.array([text.ids for text in chosen])
        first = np.array([len(text.prompt) for text in chosen])
        return SelfGeneratedBatch(torch.from_numpy(ids), torch.from_numpy(first))


class CertaintyObjective:
    """Trains one block of `block` slots of each text, counted from the answer's first; with `own`,
    the model's own blocks, counted from slot 0. Of a block, a share from `least` to all is masked.
    """

    def __init__(self, student: DiffusionStudent, block: int, own: bool, least: float) -> None:
        self.module: torch.nn.Module = student.module
        self._student = student
        self._block, self._own, self._least = block, own, least

    def loss(self, batch: SelfGeneratedBatch, rng: np.random.Generator) -> torch.Tensor:
        """The cross entropies of both masks, plus the weighted entropy."""
        slots = batch.ids.shape[1]
        at = torch.arange(slots)
        starts = torch.zeros_like(batch.answer) if self._own else batch.answer
        blocks = (at - starts[:, None]).div(self._block, rounding_mode="floor")
        ours = at >= batch.answer[:, None]
        now = self._chosen(batch, blocks, rng)
        inside = ours & (blocks == now)
        masked = inside & self._some(inside, rng)
        later = ours & (blocks > now)
        both = torch.cat([masked, inside & ~masked])
        hidden = both | torch.cat([later, later])
        ids = torch.cat([batch.ids, batch.ids])
        device = self._student.device
        logits = self._student.logits(
            ids.masked_fill(hidden, self._student.mask).to(device),
            both.to(device),
            self._sees(slots).to(device),
        )
        goals = ids[both].to(device)
        wrong = cross_entropy(logits, goals, reduction="none")
        count = int(masked.sum())
        losses = wrong[:count].mean()
        if count < len(wrong):
            losses = losses + wrong[count:].mean()
        right = logits.argmax(dim=1) == goals
        if not right.any():
            return losses
        sharp = (logits[right] / _SHARPENED).log_softmax(dim=1)
        entropy = -(sharp.exp() * sharp).sum(dim=1).mean()
        return losses + _CERTAINTY * entropy

    def _sees(self, slots: int) -> torch.Tensor:
        """[slots, slots]: full attention, or a slot's block and earlier ones."""
        blocks = torch.arange(slots) // (self._block if self._own else slots)
        return blocks[:, None] >= blocks

    def _chosen(
        self, batch: SelfGeneratedBatch, blocks: torch.Tensor, rng: np.random.Generator
    ) -> torch.Tensor:
        """[texts, 1]: a random block of each answer."""
        first = blocks.gather(1, batch.answer[:, None])
        count = blocks[:, -1:] - first + 1
        share = torch.from_numpy(rng.random((len(blocks), 1)))
        return first + (share * count).long()

    def _some(self, inside: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
        """[texts, slots]: a random share of those `inside`, at least one."""
        texts, slots = inside.shape
        count = inside.sum(dim=1, keepdim=True).numpy()
        share = self._least + (1.0 - self._least) * rng.random((texts, 1))
        wanted = np.maximum(np.rint(share * count), 1)
        order = np.where(inside.numpy(), rng.random((texts, slots)), 2.0)
        rank = order.argsort(axis=1).argsort(axis=1)
        return torch.from_numpy(rank < wanted)


_ALL: Final = 100
_AT_ONCE: Final = 8


def _train(
    job: DiffusionTrainingJob, resume: bool, listener: TrainingListener
) -> DiffusionTrainingResult | None:
    if job.model is None:
        raise InputError("a distillation is of one model", hint="--model NAME or FOLDER")
    settings, schedule = KIND.set_to(job), KIND.scheduled(job)
    if not settings["block"] or not settings["texts"] or settings["least_masked"] > _ALL:
        raise InputError("neither blocks nor texts can be none, nor shares above 100")
    prepare(job, schedule, resume)
    adapter = load_teacher(job)
    prompts = prompts_of(job, adapter.traits)
    slots = settings["slots"] or prompts.slots
    own = adapter.traits.block
    student = DiffusionStudent(job, settings["rank"])
    block = own or settings["block"]
    objective = CertaintyObjective(student, block, own > 0, settings["least_masked"] / _ALL)
    source = SelfGeneratedSource()
    trainer = Trainer[SelfGeneratedBatch](objective, source, schedule, job.out / CHECKPOINT)
    if resume:
        trainer.resume()
    selected = prompts.drawn(settings["texts"], slots, np.random.default_rng(schedule.seed))
    texts = write_texts(
        adapter,
        selected,
        slots,
        lambda done: listener.on_news(TextsWritten(done, len(selected))),
        listener.stop,
    )
    if texts is None:
        trainer.keep()  # the same texts can be written again
        return None
    source.give(texts)
    losses = run_steps(trainer, listener)
    if losses is None:
        return None
    unseen = prompts.held_out(settings["examined"])
    listener.on_news(EvaluationStarted(len(unseen)))
    student.save(job.out)
    after = load_teacher(replace(job, model=job.out))
    lines = _compared(adapter, after, unseen, slots, listener)
    if lines is None:
        (job.out / CONFIG).unlink()  # not complete: a resumed training measures it
        return None
    return finish(KIND.name, job, schedule.steps, losses, lines)


def _compared(
    before: ModelAdapter,
    after: ModelAdapter,
    prompts: list[Prompt],
    slots: int,
    listener: TrainingListener,
) -> list[str] | None:
    """Results on held-out prompts as lines of text; None when `listener.stop` returned true."""
    rates = []
    for adapter in (before, after):
        tokens = passes = same = 0
        for first in range(0, len(prompts), _AT_ONCE):
            some = prompts[first : first + _AT_ONCE]
            one_by_one = write_texts(before, some, slots, lambda _done: None, listener.stop)
            if one_by_one is None:
                return None
            rows = denoising_rows(adapter, some, slots, [EntropyThresholdPolicy()] * len(some))
            denoise_all(rows, adapter)
            for row, text in zip(rows, one_by_one, strict=True):
                written = row.kept
                tokens += len(written)
                passes += row.counters.forwards
                same += int((written == text.answer[: len(written)]).sum())
        rates.append((tokens / max(passes, 1), same / max(tokens, 1)))
    if not prompts:
        return []
    (rate, agreed), (faster, agrees) = rates
    texts = f"{len(prompts)} texts that were not learnt from"
    same_slots = "slots as the model that was learnt from writes them one by one"
    return [
        f"{texts}: {rate:.2f} tokens a pass before, {faster:.2f} after",
        f"{same_slots}: {agreed:.0%} before, {agrees:.0%} after",
    ]


KIND: Final = DiffusionTrainerSpec(
    "dparallel",
    "a diffusion model distilled from its own texts to be certain of more slots at once",
    Schedule(steps=300, texts=48, longest=1, rate=3e-4, warm_up=0.05, keep_every=100),
    {"block": 16, "slots": 0, "least_masked": 50, "texts": 1200, "examined": 40, "rank": 0},
    _train,
    frozenset({"model", "data", "device"}),
)
"""block: of a model without blocks. slots: of an answer; 0: 16 for a list model, else 64. rank: of
the low-rank updates; 0 trains all weights.
"""
