"""`python -m evals.local_batching [--quick] [--json FILE] [--plot FILE]`.

Eight requests to the embedded model, one after another and all at once, in interleaved rounds of
one process; then random JSON Schemas. No prompt is asked twice, so that no round profits from the
cached prefixes of another.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import jsonschema

from evals.engine.rows import Row, spread
from evals.random_schemas import random_schema
from evals.results import environment, write_results
from weft.core.errors import ModelNotFound, ModelOutputError
from weft.core.ports import ModelRequest, Sampling, complete
from weft.core.values import Completion, JsonSchema, Message
from weft.serving.local import LocalModel, LocalOptions

MODEL = "smollm2-135m-instruct"
CASE = "smollm2_8"
SCHEMAS = "random_schemas"
REQUESTS = 8
SYSTEMS = ("sequential", "batched")
TOPICS = ("rain", "a dog", "the sea", "bread", "a train", "winter", "music", "a garden")


@dataclass(frozen=True, slots=True)
class Effort:
    """How often to repeat, how much each request writes, and how many schemas to try."""

    rounds: int
    tokens: int
    schemas: int


FULL = Effort(rounds=7, tokens=64, schemas=200)
QUICK = Effort(rounds=3, tokens=24, schemas=40)


@dataclass(slots=True)
class Samples:
    """One entry a round. Times in seconds."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    forwards: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)


def prompts(system: str, number: int) -> list[str]:
    """The questions of one round; as long as those of any other, and different from them all."""
    mark = f"{system[0].upper()}{number:02d}"
    return [f"Note {mark}{n}: write a short story about {t}." for n, t in enumerate(TOPICS)]


async def ask(model: LocalModel, text: str, tokens: int) -> Completion:
    """One greedy request that writes exactly `tokens` tokens."""
    request = ModelRequest(
        messages=(Message("user", text),),
        sampling=Sampling(max_tokens=tokens, temperature=0.0),
        extra={"ignore_eos": True},
    )
    return await complete(model, request)


async def one_after_another(model: LocalModel, texts: Sequence[str], tokens: int) -> int:
    """How many tokens were written."""
    done = [await ask(model, text, tokens) for text in texts]
    return sum(answer.usage.completion_tokens for answer in done)


async def all_at_once(model: LocalModel, texts: Sequence[str], tokens: int) -> int:
    """How many tokens were written."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(model, text, tokens)) for text in texts]
    return sum(task.result().usage.completion_tokens for task in tasks)


async def measure(model: LocalModel, effort: Effort) -> dict[str, Samples]:
    """Interleaved rounds, the two ways taking turns at going first."""
    ways = dict(zip(SYSTEMS, (one_after_another, all_at_once), strict=True))
    samples = {system: Samples() for system in SYSTEMS}
    await all_at_once(model, prompts("warm", 0), tokens=4)
    for number in range(effort.rounds):
        for system in SYSTEMS if number % 2 == 0 else reversed(SYSTEMS):
            texts = prompts(system, number)
            before, wall, cpu = model.forwards, time.perf_counter(), time.process_time()
            tokens = await ways[system](model, texts, effort.tokens)
            into = samples[system]
            into.wall_s.append(time.perf_counter() - wall)
            into.cpu_s.append(time.process_time() - cpu)
            into.forwards.append(model.forwards - before)
            into.tokens.append(tokens)
    return samples


def timing_rows(samples: dict[str, Samples]) -> list[Row]:
    """Medians with their spread; the ratio is the median of the rounds' own ratios."""
    rows = []
    for system, found in samples.items():
        low, high = spread(found.wall_s)
        speeds = [tokens / wall for tokens, wall in zip(found.tokens, found.wall_s, strict=True)]
        for metric, value, unit in (
            ("median_s", median(found.wall_s), "s"),
            ("p10_s", low, "s"),
            ("p90_s", high, "s"),
            ("cpu_s", median(found.cpu_s), "s"),
            ("tokens_per_s", median(speeds), "tokens/s"),
            ("forwards", median(found.forwards), "passes"),
            ("tokens", median(found.tokens), "tokens"),
            ("rounds", len(found.wall_s), "rounds"),
        ):
            rows.append(Row(CASE, system, metric, value, unit))
    own, other = (samples[system].wall_s for system in reversed(SYSTEMS))
    ratios = [a / b for a, b in zip(own, other, strict=True)]
    for metric, value in zip(
        ("ratio", "ratio_p10", "ratio_p90"), (median(ratios), *spread(ratios)), strict=True
    ):
        rows.append(Row(CASE, SYSTEMS[1], metric, value, "x sequential"))
    return rows


async def constrained(model: LocalModel, schema: JsonSchema, seed: int) -> str | None:
    """An answer at temperature 1 that fits the schema; None when it was cut at max_tokens."""
    request = ModelRequest(
        messages=(Message("user", "Fill in the form with anything you like."),),
        sampling=Sampling(max_tokens=800, temperature=1.0, seed=seed),
        schema=schema,
    )
    try:
        return (await complete(model, request)).text
    except ModelOutputError:
        return None


async def schema_rows(model: LocalModel, count: int) -> list[Row]:
    """How many answers to random schemas parse and validate, of those that were not cut."""
    source = random.Random(0)
    schemas = [random_schema(source) for _ in range(count)]
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(constrained(model, schema, seed))
            for seed, schema in enumerate(schemas)
        ]
    answers = [(schema, task.result()) for schema, task in zip(schemas, tasks, strict=True)]
    written = [(schema, text) for schema, text in answers if text is not None]
    counts = {
        "asked": count,
        "answered": len(written),
        "cut": count - len(written),
        "parsed": sum(parses(text) for _, text in written),
        "valid": sum(parses(text) and fits(text, schema) for schema, text in written),
    }
    return [Row(SCHEMAS, "constrained", metric, n, "answers") for metric, n in counts.items()]


def parses(text: str) -> bool:
    """Whether `text` is JSON."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def fits(text: str, schema: JsonSchema) -> bool:
    """Whether JSON `text` validates."""
    return bool(jsonschema.Draft202012Validator(schema).is_valid(json.loads(text)))


def table(rows: Sequence[Row]) -> str:
    """All rows for people."""
    lines = [
        f"{row.case:16}{row.system:14}{row.metric:14}{row.value:>12,.3f}  {row.unit}"
        for row in rows
    ]
    return "\n".join(lines)


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the two medians as bars to `path`, in the format of its suffix."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    value = {(row.system, row.metric): row.value for row in rows if row.case == CASE}
    middles = [value[system, "median_s"] for system in SYSTEMS]
    below = [value[s, "median_s"] - value[s, "p10_s"] for s in SYSTEMS]
    above = [value[s, "p90_s"] - value[s, "median_s"] for s in SYSTEMS]
    labels = [
        f"{value[s, 'median_s']:.2f} s\n{value[s, 'tokens_per_s']:.0f} tokens/s\n"
        f"{value[s, 'forwards']:.0f} forward passes"
        for s in SYSTEMS
    ]
    figure, axes = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
    bars = axes.bar(SYSTEMS, middles, 0.6, yerr=[below, above], color=["#a3a3a3", "#0b6e4f"])
    axes.bar_label(bars, labels, padding=4)
    axes.margins(y=0.22)
    axes.set_ylabel("seconds for 8 requests")
    axes.set_title(f"{MODEL}: 8 requests, {value['batched', 'ratio']:.2f} times the time")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


async def evaluate(effort: Effort) -> list[Row]:
    """All rows. Raises: `ModelNotFound` when the weights are not on this machine."""
    async with aclosing(LocalModel(MODEL)) as model:
        rows = timing_rows(await measure(model, effort))
    async with aclosing(LocalModel(MODEL, LocalOptions(max_string_chars=80, max_items=4))) as model:
        return rows + await schema_rows(model, effort.schemas)


def main() -> None:
    """Evaluate; print the table; write what was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m evals.local_batching",
        description="What continuous batching of the embedded model saves.",
    )
    parser.add_argument("--quick", action="store_true", help="the same, with fewer repetitions")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the medians there")
    arguments = parser.parse_args()
    try:
        rows = asyncio.run(evaluate(QUICK if arguments.quick else FULL))
    except ModelNotFound as missing:
        raise SystemExit(str(missing)) from missing
    print(table(rows))
    if arguments.json:
        write_results(arguments.json, rows, environment(("torch",)))
    if arguments.plot:
        draw(rows, arguments.plot)


if __name__ == "__main__":
    main()
