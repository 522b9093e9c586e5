"""`python -m evals.reasoning.countdown.train KIND --out FOLDER`: a small Llama from scratch.

It learns what a symbolic search writes. Plain torch, resumable, one pass over fresh problems. Does
not know how the model is run afterwards.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import torch
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from evals.reasoning.countdown.sequences import Material, Recipe, training_texts
from evals.reasoning.countdown.training_record import HELD_OUT as HELD_OUT_SETS
from evals.reasoning.countdown.training_record import TrainedRun, held_out_keys
from evals.reasoning.countdown.vocabulary import compact_tokenizer

POOL_PROBLEMS: Final = 200
"""Problems whose strings are sorted by length together, so that a batch has little padding."""
RECIPE: Final = Recipe()
HELD_OUT: Final = held_out_keys(HELD_OUT_SETS)
"""What is never trained on."""
IGNORED: Final = -100
PERIODS: Final = (2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0)
PROGRESS: Final = "progress.pt"


@dataclass(frozen=True, slots=True)
class Plan:
    """One training run. The budget is tokens seen, so that twins are trained on equally many.

    `window` cuts every string off, as the model's context will.
    """

    material: Material
    tokens: int = 3_500_000
    window: int = 288
    width: int = 128
    layers: int = 4
    heads: int = 4
    batch_tokens: int = 1024
    learning_rate: float = 2e-3
    warmup_steps: int = 50
    seed: int = 0


@dataclass(slots=True)
class Position:
    """How far a run has come: all that a resumed one needs besides the weights."""

    pool: int = 0
    step: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Recent:
    """What the last steps came to: their losses, and how many results of arithmetic were right."""

    losses: list[float] = field(default_factory=list)
    results: int = 0
    right: int = 0


class Training:
    """A run of `plan` in the folder `out`, which goes on where an earlier one stopped.

    A fresh one begins with the weights in `start`, where that is given.
    """

    def __init__(self, plan: Plan, out: Path, start: Path | None = None) -> None:
        torch.manual_seed(plan.seed)
        self.plan = plan
        self.out = out
        self.tokenizer = compact_tokenizer()
        if start is None:
            self.model = LlamaForCausalLM(configuration(plan, self.tokenizer))
            lay_out_numbers(self.model, self.tokenizer)
        else:
            self.model = LlamaForCausalLM.from_pretrained(start, dtype=torch.float32)
        self.optimizers = optimizers(self.model, plan.learning_rate)
        self.at = Position()
        self._equals = self.tokenizer.convert_tokens_to_ids("=")
        if (out / PROGRESS).exists():
            self._resume()

    def run(self, save_every_s: float = 60.0) -> Position:
        """Train to the plan's tokens; model, tokenizer and plan are in `out` then."""
        at, recent = self.at, Recent()
        started = saved = time.monotonic() - at.seconds
        while at.tokens < self.plan.tokens:
            for batch in pool(self.plan, at.pool, self.tokenizer):
                self._step(batch, recent)
                at.step += 1
                at.tokens += sum(map(len, batch))
                at.seconds = time.monotonic() - started
                if at.step % 100 == 0:
                    self._report(recent)
                    recent = Recent()
                if at.tokens >= self.plan.tokens:
                    break
            at.pool += 1
            if time.monotonic() - saved > save_every_s or at.tokens >= self.plan.tokens:
                saved = time.monotonic()
                self._save()
        return at

    def _step(self, rows: list[list[int]], recent: Recent) -> None:
        width = max(map(len, rows))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])  # (rows, width)
        wanted = torch.tensor([row[1:] + [IGNORED] * (width - len(row)) for row in rows])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = self.model(input_ids=ids, use_cache=False).logits[:, :-1]
        logits, wanted = logits.float().flatten(0, 1), wanted.flatten()
        loss = cross_entropy(logits, wanted, ignore_index=IGNORED)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = _rate(self.plan, self.at)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        sums = ids[:, :-1].flatten() == self._equals
        recent.losses.append(float(loss.detach()))
        recent.results += int(sums.sum())
        recent.right += int((logits[sums].argmax(-1) == wanted[sums]).sum())

    def _report(self, recent: Recent) -> None:
        at, plan = self.at, self.plan
        print(
            f"{plan.material} step {at.step} tokens {at.tokens / 1e6:.2f}M of "
            f"{plan.tokens / 1e6:.1f}M loss {sum(recent.losses) / len(recent.losses):.4f} "
            f"results right {recent.right / max(1, recent.results):.1%} "
            f"{at.tokens / at.seconds:,.0f} tokens/s {at.seconds / 60:.1f} min",
            flush=True,
        )

    def _save(self) -> None:
        self.model.save_pretrained(self.out)
        self.tokenizer.save_pretrained(self.out)
        about = {
            "plan": asdict(self.plan),
            "recipe": asdict(RECIPE),
            "position": asdict(self.at),
            "drawn": asdict(trained_run(self.plan, self.at)),
        }
        (self.out / "training.json").write_text(json.dumps(about, indent=1) + "\n")
        state = {
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "position": asdict(self.at),
        }
        unfinished = self.out / f"{PROGRESS}.new"
        torch.save(state, unfinished)
        unfinished.replace(self.out / PROGRESS)

    def _resume(self) -> None:
        state = torch.load(self.out / PROGRESS, weights_only=True)
        self.model.load_state_dict(state["model"])
        for optimizer, kept in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(kept)
        self.at = Position(**state["position"])


def optimizers(
    model: LlamaForCausalLM, learning_rate: float
) -> tuple[torch.optim.Optimizer, torch.optim.Optimizer]:
    """Muon for the matrices of the layers, AdamW for embeddings and norms."""
    layers = dict(model.model.layers.named_parameters()).values()
    matrices = [weights for weights in layers if weights.ndim == 2]
    known = {id(weights) for weights in matrices}
    rest = [weights for weights in model.parameters() if id(weights) not in known]
    return (
        torch.optim.Muon(
            matrices, learning_rate, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW(rest, learning_rate, betas=(0.9, 0.95), weight_decay=0.01),
    )


def configuration(plan: Plan, tokenizer: PreTrainedTokenizerFast) -> LlamaConfig:
    """A Llama with tied embeddings."""
    return LlamaConfig(
        vocab_size=-(-len(tokenizer) // 64) * 64,
        hidden_size=plan.width,
        intermediate_size=-(-plan.width * 8 // 3 // 64) * 64,
        num_hidden_layers=plan.layers,
        num_attention_heads=plan.heads,
        num_key_value_heads=plan.heads,
        max_position_embeddings=plan.window,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )


def lay_out_numbers(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
    """Start the embeddings of 0 to 999 on circles of several periods, where a sum is a rotation.

    As in FoNE (arXiv 2502.09741); both twins start so. Random ones learn to add only after many
    more tokens than a CPU sees.
    """
    numbers = torch.arange(1000)
    angles = 2 * math.pi * numbers[:, None] / torch.tensor(PERIODS)  # (1000, periods)
    circles = torch.cat((angles.cos(), angles.sin()), dim=1)
    ids = tokenizer.convert_tokens_to_ids([str(int(n)) for n in numbers])
    with torch.no_grad():
        model.get_input_embeddings().weight[ids, : circles.shape[1]] = 0.05 * circles


def pool_seed(plan: Plan, index: int) -> int:
    """The seed of the index-th pool of problems."""
    return plan.seed * 1_000_000 + index + 1


def trained_run(plan: Plan, at: Position) -> TrainedRun:
    """What a run has drawn so far, for the record beside the weights."""
    return TrainedRun(
        name=plan.material,
        material=plan.material,
        tokens=at.tokens,
        first_seed=pool_seed(plan, 0),
        last_seed=pool_seed(plan, at.pool - 1),
        problems_per_seed=POOL_PROBLEMS,
        held_out=tuple(HELD_OUT_SETS),
    )


def pool(plan: Plan, index: int, tokenizer: PreTrainedTokenizerFast) -> Iterator[list[list[int]]]:
    """The batches of the index-th pool of problems: ids with `<s>` and `</s>`, window at most."""

    def length(text: str) -> int:
        return len(tokenizer(text).input_ids) + 1

    seed = pool_seed(plan, index)
    texts = training_texts(plan.material, RECIPE, seed, POOL_PROBLEMS, HELD_OUT, length)
    encoded = tokenizer(list(texts)).input_ids
    rows = sorted(((*ids, tokenizer.eos_token_id)[: plan.window] for ids in encoded), key=len)
    batches: list[list[list[int]]] = [[]]
    for row in rows:
        if (len(batches[-1]) + 1) * len(row) > plan.batch_tokens:
            batches.append([])
        batches[-1].append(list(row))
    random.Random(seed).shuffle(batches)
    yield from batches


def _rate(plan: Plan, at: Position) -> float:
    """Linear warm-up, then half a cosine down to a fiftieth."""
    done = min(1.0, at.tokens / plan.tokens)
    cosine = 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done))
    return plan.learning_rate * cosine * min(1.0, (at.step + 1) / plan.warmup_steps)


def main() -> None:
    """Train as the command line says."""
    usual = Plan("steps")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("material", choices=("steps", "apr", "sos"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--start", type=Path, help="weights to begin with")
    parser.add_argument("--tokens", type=int, default=usual.tokens)
    parser.add_argument("--window", type=int, default=usual.window)
    parser.add_argument("--width", type=int, default=usual.width)
    parser.add_argument("--layers", type=int, default=usual.layers)
    parser.add_argument("--heads", type=int, default=usual.heads)
    parser.add_argument("--learning-rate", type=float, default=usual.learning_rate)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    plan = Plan(
        given.material,
        given.tokens,
        given.window,
        given.width,
        given.layers,
        given.heads,
        learning_rate=given.learning_rate,
    )
    Training(plan, given.out, given.start).run()


if __name__ == "__main__":
    main()
