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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import torch
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from evals.reasoning.countdown.problem import Key, read_problems
from evals.reasoning.countdown.sequences import Kind, Recipe, training_calls
from evals.reasoning.countdown.vocabulary import compact_tokenizer

POOL_PROBLEMS: Final = 400
"""Problems whose strings are sorted by length together, so that a batch has little padding."""
IGNORED: Final = -100
PERIODS: Final = (2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0)
PROGRESS: Final = "progress.pt"


@dataclass(frozen=True, slots=True)
class Plan:
    """One training run. The budget is tokens seen, so that twins are trained on equally many.

    `window` cuts every string off, as the model's context will.
    """

    kind: Kind
    tokens: int = 8_000_000
    window: int = 288
    width: int = 128
    layers: int = 4
    batch_tokens: int = 2048
    learning_rate: float = 2e-3
    warmup_steps: int = 100
    seed: int = 0


@dataclass(slots=True)
class Position:
    """How far a run has come: all that a resumed one needs besides the weights."""

    pool: int = 0
    step: int = 0
    tokens: int = 0
    seconds: float = 0.0


def train(plan: Plan, out: Path, held_out: frozenset[Key], save_every_s: float = 60.0) -> Position:
    """Train to the plan's tokens, and leave model, tokenizer and plan in `out`.

    Goes on where an earlier run stopped. `held_out`: keys of test problems, which are never drawn.
    """
    torch.manual_seed(plan.seed)
    tokenizer = compact_tokenizer()
    model = LlamaForCausalLM(configuration(plan, tokenizer))
    lay_out_numbers(model, tokenizer)
    optimizer = torch.optim.AdamW(
        model.parameters(), plan.learning_rate, betas=(0.9, 0.95), weight_decay=0.01
    )
    at = _resume(out, model, optimizer)
    started = saved = time.monotonic() - at.seconds
    losses: list[float] = []
    while at.tokens < plan.tokens:
        for batch in pool(plan, at.pool, held_out, tokenizer):
            losses.append(_step(model, optimizer, batch, _rate(plan, at)))
            at.step += 1
            at.tokens += sum(map(len, batch))
            at.seconds = time.monotonic() - started
            if at.step % 100 == 0:
                _report(plan, at, losses)
                losses.clear()
            if at.tokens >= plan.tokens:
                break
        at.pool += 1
        if time.monotonic() - saved > save_every_s or at.tokens >= plan.tokens:
            saved = time.monotonic()
            _save(out, plan, model, optimizer, tokenizer, at)
    return at


def configuration(plan: Plan, tokenizer: PreTrainedTokenizerFast) -> LlamaConfig:
    """A Llama with heads of 64, which every engine has kernels for, and tied embeddings."""
    return LlamaConfig(
        vocab_size=-(-len(tokenizer) // 64) * 64,
        hidden_size=plan.width,
        intermediate_size=-(-plan.width * 8 // 3 // 64) * 64,
        num_hidden_layers=plan.layers,
        num_attention_heads=plan.width // 64,
        num_key_value_heads=plan.width // 64,
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


def pool(
    plan: Plan, index: int, held_out: frozenset[Key], tokenizer: PreTrainedTokenizerFast
) -> Iterator[list[list[int]]]:
    """The batches of the index-th pool of problems: ids with `<s>` and `</s>`, window at most."""

    def length(text: str) -> int:
        return len(tokenizer(text).input_ids) + 1

    seed = plan.seed * 1_000_000 + index + 1
    calls = training_calls(plan.kind, Recipe(), seed, POOL_PROBLEMS, held_out, length)
    encoded = tokenizer(list(calls)).input_ids
    rows = sorted(((*ids, tokenizer.eos_token_id)[: plan.window] for ids in encoded), key=len)
    batches: list[list[list[int]]] = [[]]
    for row in rows:
        if (len(batches[-1]) + 1) * len(row) > plan.batch_tokens:
            batches.append([])
        batches[-1].append(list(row))
    random.Random(seed).shuffle(batches)
    yield from batches


def _step(
    model: LlamaForCausalLM, optimizer: torch.optim.Optimizer, rows: list[list[int]], rate: float
) -> float:
    width = max(map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])  # (rows, width)
    wanted = torch.tensor([row[1:] + [IGNORED] * (width - len(row)) for row in rows])
    for group in optimizer.param_groups:
        group["lr"] = rate
    model.train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(input_ids=ids, use_cache=False).logits[:, :-1]
    loss = cross_entropy(logits.float().flatten(0, 1), wanted.flatten(), ignore_index=IGNORED)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return float(loss.detach())


def _rate(plan: Plan, at: Position) -> float:
    """Linear warm-up, then half a cosine down to a fiftieth."""
    done = min(1.0, at.tokens / plan.tokens)
    cosine = 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done))
    return plan.learning_rate * cosine * min(1.0, (at.step + 1) / plan.warmup_steps)


def _report(plan: Plan, at: Position, losses: list[float]) -> None:
    print(
        f"{plan.kind} step {at.step} tokens {at.tokens / 1e6:.2f}M of {plan.tokens / 1e6:.1f}M "
        f"loss {sum(losses) / len(losses):.4f} {at.tokens / at.seconds:,.0f} tokens/s "
        f"{at.seconds / 60:.1f} min",
        flush=True,
    )


def _save(
    out: Path,
    plan: Plan,
    model: LlamaForCausalLM,
    optimizer: torch.optim.Optimizer,
    tokenizer: PreTrainedTokenizerFast,
    at: Position,
) -> None:
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    (out / "training.json").write_text(
        json.dumps({"plan": asdict(plan), "recipe": asdict(Recipe()), "position": asdict(at)})
    )
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "position": asdict(at),
    }
    torch.save(state, out / f"{PROGRESS}.new")
    (out / f"{PROGRESS}.new").replace(out / PROGRESS)


def _resume(out: Path, model: LlamaForCausalLM, optimizer: torch.optim.Optimizer) -> Position:
    if not (out / PROGRESS).exists():
        out.mkdir(parents=True, exist_ok=True)
        return Position()
    state = torch.load(out / PROGRESS, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return Position(**state["position"])


def main() -> None:
    """Train as the command line says."""
    usual = Plan("apr")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=("apr", "sos"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--held-out", type=Path, nargs="*", default=[], help="problems not to draw")
    parser.add_argument("--tokens", type=int, default=usual.tokens)
    parser.add_argument("--window", type=int, default=usual.window)
    parser.add_argument("--width", type=int, default=usual.width)
    parser.add_argument("--layers", type=int, default=usual.layers)
    parser.add_argument("--learning-rate", type=float, default=usual.learning_rate)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    plan = Plan(
        given.kind,
        given.tokens,
        given.window,
        given.width,
        given.layers,
        learning_rate=given.learning_rate,
    )
    keys = frozenset(p.key for path in given.held_out for p in read_problems(path))
    train(plan, given.out, keys)


if __name__ == "__main__":
    main()
