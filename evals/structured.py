"""`python -m evals.structured [--quick] [--only SYSTEM,...] [--json FILE] [--plot FILE]`.

Structured output over generated schemas: how many answers fit at the first try and after a
repair, how many requests that takes, and whether weft counts the tokens that were served.
`fences` wraps its JSON in a fence and prose, `wrong_field` breaks one field until it is told the
error and its place: both are scripted behind an HTTP server, which adds up the usage that it
reports. `local` is the embedded model, held to a grammar. Counts only, no times.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator

from evals.engine.rows import Row
from evals.results import environment, write_results
from evals.scripted_server import MODEL, ScriptedServer
from weft import Flow
from weft.core.ports import ModelEvent, ModelRequest
from weft.core.values import Completion
from weft.events import Event, NodeRepairing
from weft.serving.local import LocalModel

SCHEMAS: Final = 2000
QUICK: Final = 500
LOCAL: Final = "smollm2-135m-instruct"
SYSTEMS: Final = ("fences", "wrong_field", "local")
CASE: Final = "schemas"
_NAMES: Final = ("name", "city", "score", "tags", "ok", "owner", "count", "note")


@dataclass(frozen=True, slots=True)
class Sample:
    """A schema, a value that fits it, and the field that is null in a wrong one."""

    schema: dict[str, Any]
    right: dict[str, Any]
    broken: str


def sample(number: int) -> Sample:
    """The sample of `number`, the same in every run."""
    source = random.Random(number)
    properties: dict[str, Any] = {}
    right: dict[str, Any] = {}
    for name in source.sample(_NAMES, source.randint(1, 5)):
        properties[name], right[name] = _field(source)
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return Sample(schema, right, source.choice(list(right)))


def _field(source: random.Random) -> tuple[dict[str, Any], Any]:
    number = source.randint(0, 99)
    match source.randrange(5):
        case 0:
            return {"type": "string", "maxLength": 20}, f"text {number}"
        case 1:
            return {"type": "integer", "minimum": 0, "maximum": 99}, number
        case 2:
            return {"type": "boolean"}, bool(number % 2)
        case 3:
            return {"enum": ["red", "green", "blue"]}, source.choice(["red", "green", "blue"])
    return {"type": "array", "items": {"type": "integer"}, "maxItems": 3}, [number]


def answer(system: str, messages: Sequence[dict[str, Any]]) -> str:
    """What the scripted `system` answers; the first message ends with the number of the sample."""
    each = sample(int(str(messages[0]["content"]).rpartition(" ")[2]))
    if system == "fences":
        return f"Sure, here it is:\n\n```json\n{json.dumps(each.right)}\n```\nAnything else?"
    is_told = f"at {each.broken}: " in str(messages[-1]["content"])
    return json.dumps(each.right if is_told else {**each.right, each.broken: None})


@dataclass(slots=True)
class Counts:
    """Counts of one system: `tokens` of the run's usage, `served` by the model."""

    schemas: int = 0
    first: int = 0
    repaired: int = 0
    requests: int = 0
    tokens: int = 0
    served: int = 0

    def rows(self, system: str) -> list[Row]:
        """The counts as rows."""
        counts = {
            "schemas": self.schemas,
            "valid_first": self.first,
            "valid_after_repair": self.first + self.repaired,
            "requests": self.requests,
            "run_tokens": self.tokens,
            "served_tokens": self.served,
        }
        return [Row(CASE, system, name, float(value), "count") for name, value in counts.items()]


class CountedModel(LocalModel):
    """The embedded model; adds up the usage of its answers, apart from the run."""

    tokens = 0

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        async with aclosing(super().generate(request)) as events:
            async for event in events:
                if isinstance(event, Completion):
                    self.tokens += event.usage.tokens
                yield event


async def measure(system: str, schemas: int) -> Counts:
    """Ask for every schema once, in one run."""
    if system == "local":
        model = CountedModel(LOCAL)
        try:
            return await _asked(model, model, schemas)
        finally:
            await model.aclose()
    with ScriptedServer(lambda messages: answer(system, messages)) as server:
        remote = {"use": "openai", "model": MODEL, "base_url": server.base_url}
        return await _asked(remote, server, schemas)


async def _asked(model: object, server: CountedModel | ScriptedServer, schemas: int) -> Counts:
    flow = Flow("structured", models={"m": model})
    for number in range(schemas):
        name, schema = f"n{number}", sample(number).schema
        given: dict[str, Any] = {"max_tokens": 120, "seed": number, "on_failure": "skip"}
        asked = flow.model("m", f"Fill in number {number}", name=name, schema=schema, **given)
        flow.output(**{name: asked})
    events: list[Event] = []
    result = await flow.run(listeners=[events.append])
    repaired = {str(event.node) for event in events if isinstance(event, NodeRepairing)}
    valid = {name for name, value in result.outputs.items() if _fits(name, value)}
    first, later = len(valid - repaired), len(valid & repaired)
    used = result.usage
    return Counts(schemas, first, later, used.requests, used.tokens, server.tokens)


def _fits(name: str, value: object) -> bool:
    """Whether an output fits its schema: judged apart from weft."""
    return Draft202012Validator(sample(int(name[1:])).schema).is_valid(value)


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write shares of answers as bars to `path`. Raises `ImportError` without matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    value = {(row.system, row.metric): row.value for row in rows}
    systems = list(dict.fromkeys(row.system for row in rows))
    figure, axes = plt.subplots(figsize=(7, 2.2), layout="constrained")
    start = [0.0] * len(systems)
    parts = {"valid at first": "valid_first", "after a repair": "valid_after_repair"}
    for (label, metric), color in zip(parts.items(), ("#0b6e4f", "#8fc3a9"), strict=True):
        shares = [100 * value[name, metric] / value[name, "schemas"] for name in systems]
        width = [share - begun for share, begun in zip(shares, start, strict=True)]
        axes.barh(systems, width, left=start, label=label, color=color)
        start = shares
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of schemas")
    axes.invert_yaxis()
    axes.legend(loc="lower left", fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m evals.structured", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK} schemas instead of {SCHEMAS:,}"
    )
    parser.add_argument("--only", default=",".join(SYSTEMS), help="systems, by comma")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path, help="draw the shares of valid answers there")
    given = parser.parse_args()
    rows: list[Row] = []
    for system in given.only.split(","):
        if system not in SYSTEMS:
            parser.error(f"no system {system!r}: there are {', '.join(SYSTEMS)}")
        rows += asyncio.run(measure(system, QUICK if given.quick else SCHEMAS)).rows(system)
    for row in rows:
        print(f"{row.system:12} {row.metric:20} {row.value:10,.0f}")
    if given.json:
        write_results(given.json, rows, environment())
    if given.plot:
        draw(rows, given.plot)


if __name__ == "__main__":
    main()
