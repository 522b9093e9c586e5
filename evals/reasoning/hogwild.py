"""What concurrent attention costs: workers of one group against one writer of as many tokens.

The embedded model writes equally many tokens in one request, in independent requests of one batch,
and as workers of each layout, in interleaved rounds and without openings, so that every token is
drawn. Ratios are of CPU times, which other programs disturb least. Then one layer's attention by
itself: turned queries and a merge against keys turned and put one after another.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final, get_args

from evals.engine.rows import Lookup, Row, spread
from evals.planning.effort import Effort, Skipped
from evals.reasoning.report import Target
from weft.core.errors import ModelNotFound
from weft.core.ports import AttentionLayout, ConcurrentAttention, ModelRequest, Sampling, complete
from weft.core.values import Completion, Message
from weft.serving.local import LocalModel

MODEL: Final = "smollm2-135m-instruct"
LAYOUTS: Final[tuple[AttentionLayout, ...]] = get_args(AttentionLayout)
SYSTEMS: Final = ("sequential", "independent", *LAYOUTS)
TOPICS: Final = ("rain", "a dog", "the sea", "bread", "a train", "winter", "music", "a garden")
HEADS, KV_HEADS, HEAD_DIM = 9, 3, 64
_REPEATS: Final = 20
TARGETS: Final = tuple(
    Target(f"attention_{count}", "merge", "error", 1e-5, at_most=True) for count in (2, 4)
)


@dataclass(slots=True)
class Samples:
    """One entry a round. Times in seconds."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    forwards: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)


async def run(effort: Effort) -> list[Row]:
    """All rows. Raises: `Skipped` where the model is not on this machine."""
    rows = attention_rows(rounds=effort.of(5, 15))
    try:
        model = LocalModel(MODEL)
    except ModelNotFound as missing:
        raise Skipped(str(missing)) from missing
    async with aclosing(model):
        for count in (2, 4):
            samples = await compare(model, count, effort.of(16, 48), effort.of(3, 5))
            rows += writing_rows(count, samples)
    return rows


async def compare(model: LocalModel, count: int, tokens: int, rounds: int) -> dict[str, Samples]:
    """`count` times `tokens` tokens in every system, which take turns at going first."""
    samples = {system: Samples() for system in SYSTEMS}
    await _write(model, "combined", count, 4, "warm")
    for number in range(rounds):
        shift = number % len(SYSTEMS)
        for system in SYSTEMS[shift:] + SYSTEMS[:shift]:
            before, wall, cpu = model.forwards, time.perf_counter(), time.process_time()
            done = await _write(model, system, count, tokens, f"{system} {number}")
            into = samples[system]
            into.wall_s.append(time.perf_counter() - wall)
            into.cpu_s.append(time.process_time() - cpu)
            into.forwards.append(model.forwards - before)
            into.tokens.append(sum(answer.usage.completion_tokens for answer in done))
    return samples


async def _write(
    model: LocalModel, system: str, count: int, tokens: int, mark: str
) -> list[Completion]:
    """What came of one system; `mark` makes its prompts new, so that no round finds them read."""
    text = f"Note {mark}: tell me all you know of {TOPICS[len(mark) % len(TOPICS)]}."
    request = ModelRequest(
        messages=(Message("user", text),),
        sampling=Sampling(max_tokens=tokens, temperature=1.0, seed=len(mark)),
        extra={"ignore_eos": True},
    )
    asked = [replace(request, sampling=replace(request.sampling, seed=n)) for n in range(count)]
    if system == "sequential":
        asked = [replace(request, sampling=replace(request.sampling, max_tokens=count * tokens))]
    elif system != "independent":
        asked = [
            replace(one, attention=ConcurrentAttention(mark, count, index, layout))
            for index, one in enumerate(asked)
            for layout in LAYOUTS
            if layout == system
        ]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(complete(model, one)) for one in asked]
    return [task.result() for task in tasks]


def writing_rows(count: int, samples: dict[str, Samples]) -> list[Row]:
    """Medians; the ratio is the median of the rounds' own ratios to the single writer."""
    case, rows = f"workers_{count}", []
    for system, found in samples.items():
        pairs = zip(found.cpu_s, samples["sequential"].cpu_s, strict=True)
        ratios = [own / other for own, other in pairs]
        low, high = spread(ratios)
        forwards = median(found.forwards)
        for metric, value, unit in (
            ("tokens", median(found.tokens), "tokens"),
            ("forwards", forwards, "passes"),
            ("tokens_per_forward", median(found.tokens) / forwards, "tokens"),
            ("wall_s", median(found.wall_s), "s"),
            ("cpu_s", median(found.cpu_s), "s"),
            ("ratio", median(ratios), "x sequential"),
            ("ratio_p10", low, "x sequential"),
            ("ratio_p90", high, "x sequential"),
            ("rounds", len(ratios), "rounds"),
        ):
            rows.append(Row(case, system, metric, value, unit))
    return rows


def attention_rows(rounds: int, prompt: int = 512, block: int = 256) -> list[Row]:
    """One layer of the embedded model's shape, one new token for each worker, all see all."""
    rows = []
    for count in (2, 4):
        ways, error = _ways(count, prompt, block)
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                begun = time.process_time()
                for _ in range(_REPEATS):
                    way()
                times[name].append((time.process_time() - begun) / _REPEATS * 1e6)
        case = f"attention_{count}"
        for name, found in times.items():
            rows.append(Row(case, name, "layer_us", median(found), "us"))
        ratio = median(a / b for a, b in zip(times["merge"], times["monolithic"], strict=True))
        rows.append(Row(case, "merge", "ratio", ratio, "x monolithic"))
        rows.append(Row(case, "merge", "error", error, "largest difference"))
    return rows


def _ways(count: int, prompt: int, block: int) -> tuple[dict[str, Callable[[], object]], float]:
    """The same attention twice, and how far the two differ."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    from weft.decoding.network.options import model_threads
    from weft.decoding.network.rotary import Rotary, rotate
    from weft.decoding.network.segments import KvSegment, WorkerBlocks, plan_segments, worker_view

    torch.set_num_threads(model_threads())
    torch.manual_seed(0)
    rotary = Rotary(10000.0 ** (-torch.arange(0, HEAD_DIM, 2) / HEAD_DIM))
    keys, values = torch.randn(2, count, KV_HEADS, prompt + block, HEAD_DIM)
    query = torch.randn(HEADS, count, HEAD_DIM)
    blocks = [WorkerBlocks(index, index, prompt, 0, 0, block) for index in range(count)]
    views = [worker_view(b, [o for o in blocks if o is not b], "contiguous") for b in blocks]
    column = prompt + block - 1
    looking = plan_segments(
        [((column,), seen) for seen in views],
        0,
        rotary,
        HEADS // KV_HEADS,
        torch.float32,
        torch.device("cpu"),
    )
    turns = {
        shift: rotary.turns(torch.tensor([shift]))
        for shift in {stretch.shift for seen in views for stretch in seen}
    }

    def merged() -> torch.Tensor:
        with torch.inference_mode():
            return looking.attend(query, keys, values, None)

    def placed(seen: KvSegment) -> torch.Tensor:
        kept = keys[seen.slot, :, seen.first : seen.end]
        return rotate(kept, turns[seen.shift]) if seen.shift else kept

    def monolithic() -> torch.Tensor:
        outputs = []
        with torch.inference_mode():
            for worker, seen in enumerate(views):
                row = torch.cat([placed(stretch) for stretch in seen], dim=1)
                held = torch.cat([values[s.slot, :, s.first : s.end] for s in seen], dim=1)
                own = rotate(query[:, worker : worker + 1], turns[seen[-1].shift])
                own = own.reshape(1, KV_HEADS, -1, HEAD_DIM)
                found = scaled_dot_product_attention(own, row[None], held[None])
                outputs.append(found.reshape(HEADS, HEAD_DIM))
        return torch.stack(outputs)

    error = float((merged() - monolithic()).abs().max())
    return {"merge": merged, "monolithic": monolithic}, error


def table(rows: Sequence[Row]) -> str:
    """One line for each system and number of workers."""
    figures = Lookup(rows)
    lines = [
        "workers  system        tokens  forwards  tokens/forward   wall s    cpu s  x sequential"
    ]
    for count in (2, 4):
        for system in SYSTEMS:
            values = [
                figures(f"workers_{count}", system, metric) or 0.0
                for metric in (
                    "tokens",
                    "forwards",
                    "tokens_per_forward",
                    "wall_s",
                    "cpu_s",
                    "ratio",
                )
            ]
            lines.append(
                f"{count:>7}  {system:14}{values[0]:>6.0f}{values[1]:>10.0f}{values[2]:>16.2f}"
                f"{values[3]:>9.2f}{values[4]:>9.2f}{values[5]:>14.2f}"
            )
    for count in (2, 4):
        case = f"attention_{count}"
        merge, plain = (figures(case, way, "layer_us") or 0.0 for way in ("merge", "monolithic"))
        lines.append(
            f"attention of one layer, {count} workers: merge {merge:.0f} us, keys turned"
            f" {plain:.0f} us; they differ by {figures(case, 'merge', 'error') or 0.0:.1e} at most"
        )
    return "\n".join(lines)
