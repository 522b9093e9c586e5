"""`python -m evals.structured [--quick] [--only SYSTEM,...] [--json FILE]`.

Structured output over 500 generated schemas: how many answers fit at the first try and after a
repair, how many requests that takes, and whether weft counts the tokens that the fake served:
`fences` wraps its JSON in a fence and prose, `wrong_field` breaks one field until it is told the
error, `local` is the embedded model. Counts only, no times.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evals.engine.rows import Row
from evals.results import environment, write_results
from weft import Flow
from weft.core.ports import ModelEvent, ModelRequest
from weft.core.values import Completion
from weft.events import Event, NodeRepairing
from weft.testing import FakeModel

SCHEMAS: Final = 500
QUICK_LOCAL: Final = 40
SYSTEMS: Final = ("fences", "wrong_field", "local")
CASE: Final = "schemas"
_NAMES: Final = ("name", "city", "score", "tags", "ok", "owner", "count", "note")


@dataclass(frozen=True, slots=True)
class Sample:
    """A schema, a value that fits it, and one that differs in one field."""

    schema: dict[str, Any]
    right: Any
    wrong: Any


def sample(number: int) -> Sample:
    """The sample of `number`, the same in every run."""
    source = random.Random(number)
    properties: dict[str, Any] = {}
    right: dict[str, Any] = {}
    for name in source.sample(_NAMES, source.randint(1, 5)):
        properties[name], right[name] = _field(source)
    broken = source.choice(list(right))
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return Sample(schema, right, {**right, broken: None})


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


class CountingModel(FakeModel):
    """A fake that adds up the tokens that it serves."""

    served = 0

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        async for event in super().generate(request):
            if isinstance(event, Completion):
                self.served += event.usage.tokens
            yield event


def fake(system: str, each: Sample) -> CountingModel:
    """A model that answers `each` in the way of `system`."""

    def reply(request: ModelRequest) -> str:
        if system == "fences":
            return f"Sure, here it is:\n\n```json\n{json.dumps(each.right)}\n```\nAnything else?"
        is_repair = any(message.role == "assistant" for message in request.messages)
        return json.dumps(each.right if is_repair else each.wrong)

    return CountingModel(reply)


@dataclass(slots=True)
class Counts:
    """Counts of one system. `spent_tokens`: what the fake served; of local the run's own."""

    schemas: int = 0
    first: int = 0
    repaired: int = 0
    requests: int = 0
    tokens: int = 0
    spent_tokens: int = 0

    def rows(self, system: str) -> list[Row]:
        """The counts as rows."""
        counts = {
            "schemas": self.schemas,
            "valid_first": self.first,
            "valid_after_repair": self.first + self.repaired,
            "requests": self.requests,
            "run_tokens": self.tokens,
            "served_tokens": self.spent_tokens,
        }
        return [Row(CASE, system, name, float(value), "count") for name, value in counts.items()]


async def measure(system: str, schemas: int) -> Counts:
    """Ask for every schema once."""
    counts = Counts()
    for number in range(schemas):
        each = sample(number)
        model: Any = "local:smollm2-135m-instruct" if system == "local" else fake(system, each)
        flow = Flow("structured", models={"m": model})
        flow.output(r=flow.model("m", "Fill this in.", schema=each.schema, max_tokens=120))
        events: list[Event] = []
        result = await flow.run(listeners=[events.append])
        repairs = sum(isinstance(event, NodeRepairing) for event in events)
        counts.schemas += 1
        counts.first += result.ok and not repairs
        counts.repaired += result.ok and bool(repairs)
        counts.requests += result.usage.requests
        counts.tokens += result.usage.tokens
        counts.spent_tokens += model.served if system != "local" else result.usage.tokens
    return counts


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m evals.structured", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"local: {QUICK_LOCAL} schemas")
    parser.add_argument("--only", default=",".join(SYSTEMS), help="systems, by comma")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows: list[Row] = []
    for system in given.only.split(","):
        if system not in SYSTEMS:
            parser.error(f"no system {system!r}: there are {', '.join(SYSTEMS)}")
        few = given.quick and system == "local"
        rows += asyncio.run(measure(system, QUICK_LOCAL if few else SCHEMAS)).rows(system)
    for row in rows:
        print(f"{row.system:12} {row.metric:20} {row.value:10,.0f}")
    if given.json:
        write_results(given.json, rows, environment())


if __name__ == "__main__":
    main()
