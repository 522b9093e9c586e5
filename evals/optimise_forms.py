"""`python -m evals.optimise_forms [--quick] [--only A,B] [--json FILE]`.

Studies by `weft.optimise` on answers with a schema, written by the embedded model. `forms`: orders
in one sentence or two, which are generated, so that every field has an exact value; the score is
the share of fields that are right. `bfcl_simple`: real requests for one function (Berkeley
Function Calling Leaderboard v4, simple), each answer held to the parameters of its function; the
score is 1 where BFCL's own check of the call accepts it. These data are read in place: without
them the section is skipped.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Final

import weft
from evals.engine.rows import Row
from evals.optimise_reviews import study_rows
from evals.planning.effort import Skipped
from evals.planning.quality.ast_match import call_error
from evals.planning.quality.bfcl import Item, items
from evals.results import environment, title, write_results
from evals.sectioned import arguments
from weft.core.ports import Capabilities, ModelClient, ModelEvent, ModelRequest
from weft.core.values import JsonSchema
from weft.serving.local import LocalModel

LOCAL: Final = "smollm2-135m-instruct"
FORMS: Final = 600
SHARES: Final = (10, 40, 50)
"""Of cases for proposers, for the search and for the gate: no proposer is used here."""
_ITEMS: Final = ("lamp", "chair", "mug", "rug", "shelf", "clock", "desk", "vase", "kettle", "tray")
_COLOURS: Final = ("red", "blue", "green", "black", "white", "yellow")
_CITIES: Final = ("Lyon", "Oslo", "Porto", "Ghent", "Turin", "Graz", "Leeds", "Bern", "Malaga")
_FIRST: Final = ("Anna", "Ben", "Carla", "David", "Eva", "Felix", "Grace", "Hugo", "Ida", "Jonas")
_LAST: Final = ("Keller", "Moreau", "Silva", "Novak", "Berg", "Rossi", "Walsh", "Lind", "Costa")
_SENTENCES: Final = (
    "Please send {quantity} {colour} {item}s to {customer} in {city}.",
    "{customer} from {city} orders {quantity} {item}s. They should be {colour}.",
    "Hello, this is {customer}. I need {quantity} {item}s in {colour}, delivered to {city}.",
    "To {city}: {quantity} times the {colour} {item}, for {customer}.",
    "In {colour}, please: {quantity} {item}s. My name is {customer} and I live in {city}.",
    "A customer in {city} has called and wants {quantity} {colour} {item}s; it was {customer}.",
)
_ORDER: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "quantity": {"type": "integer", "minimum": 1, "maximum": 99},
        "colour": {"enum": list(_COLOURS)},
        "item": {"type": "string", "maxLength": 20},
        "city": {"type": "string", "maxLength": 20},
        "customer": {"type": "string", "maxLength": 30},
    },
    "required": ["quantity", "colour", "item", "city", "customer"],
    "additionalProperties": False,
}
_EXAMPLE: Final = (
    "Fill in the order.\n\n"
    "Text: Sam Otto would like 12 grey benches sent to Riga.\n"
    'Order: {"quantity": 12, "colour": "grey", "item": "bench", "city": "Riga", '
    '"customer": "Sam Otto"}\n\nText: {{ text }}\nOrder:'
)
_INSTRUCTION: Final = (
    "Write the arguments of this function as JSON.\n{{ function }}\n\n"
    "Request: {{ question }}\nArguments:"
)
_EXAMPLE_CALL: Final = (
    "Request: Add 3 and 4.\n"
    'Arguments of add(a: integer, b: integer): {"a": 3, "b": 4}\n\n'
    "Request: {{ question }}\nArguments of {{ signature }}:"
)


@dataclass(frozen=True, slots=True)
class Task:
    """What a study is made of: a workflow's document, cases, the metric, and its model."""

    document: Mapping[str, Any]
    cases: Sequence[Mapping[str, Any]]
    metric: Callable[..., weft.Score]
    model: Callable[[], ModelClient]
    calls: int


def order(number: int) -> dict[str, Any]:
    """The case of this number: a text, and the order that it states."""
    random = Random(number)
    stated = {
        "quantity": random.randint(2, 60),
        "colour": random.choice(_COLOURS),
        "item": random.choice(_ITEMS),
        "city": random.choice(_CITIES),
        "customer": f"{random.choice(_FIRST)} {random.choice(_LAST)}",
    }
    sentence = _SENTENCES[number % len(_SENTENCES)]
    return {"id": str(number), "text": sentence.format(**stated), "expected": stated}


def fields_right(case: weft.Case, outputs: Mapping[str, Any]) -> weft.Score:
    """The share of fields with the stated value: texts without case, an item also in the plural."""
    found, parts = outputs["order"], {}
    for name, value in case.expected.items():
        parts[name] = float(_same(found.get(name), value))
    return weft.Score(sum(parts.values()) / len(parts), parts=parts)


def _same(found: Any, value: Any) -> bool:
    if isinstance(value, str) and isinstance(found, str):
        return found.strip().casefold().removesuffix("s") == value.casefold().removesuffix("s")
    return type(found) is type(value) and bool(found == value)


def forms(*, quick: bool) -> Task:
    """Generated orders."""
    node: dict[str, Any] = {
        "model": "small",
        "prompt": "{{ text }}",
        "temperature": 0,
        "max_tokens": 90,
        "schema": _ORDER,
    }
    natural = ["customer", "city", "item", "quantity", "colour"]
    knobs = {
        "schema_order": [natural, ["item", "quantity", "colour", "customer", "city"]],
        "temperature": [0.7],
        "prompt": ["Fill in the order.\n\n{{ text }}", _EXAMPLE],
    }
    if not quick:
        knobs["samples"] = [3]
    document = _document("order", {"text": "string"}, node, knobs)
    cases = [order(number) for number in range(FORMS // 2 if quick else FORMS)]
    return Task(document, cases, fields_right, lambda: LocalModel(LOCAL), 1_200 if quick else 3_000)


class HeldModel:
    """Implements `ModelClient`: holds each answer of `inner` to the schema of its question."""

    def __init__(self, inner: ModelClient, schemas: Mapping[str, JsonSchema]) -> None:
        self._inner = inner
        self._schemas = schemas

    @property
    def model(self) -> str:
        return self._inner.model

    async def capabilities(self) -> Capabilities:
        return await self._inner.capabilities()

    def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        asked = request.messages[-1].content
        held = max((each for each in self._schemas if each in asked), key=len)
        return self._inner.generate(replace(request, schema=self._schemas[held]))

    async def aclose(self) -> None:
        await self._inner.aclose()


def bfcl_simple(*, quick: bool) -> Task:
    """BFCL's requests for one function. Raises: `Skipped`."""
    every = items("simple_python")
    by_id = {item.id: item for item in every}
    schemas = {item.question: item.tools[0].parameters for item in every}
    node = {
        "model": "small",
        "prompt": "{{ function }}\n\n{{ question }}",
        "temperature": 0,
        "max_tokens": 100,
    }
    knobs: dict[str, Any] = {
        "temperature": [0.7],
        "prompt": [
            "{{ question }}",
            _INSTRUCTION,
            _EXAMPLE_CALL,
        ],
    }
    inputs = {"function": "string", "signature": "string", "question": "string"}
    document = _document("call", inputs, node, knobs)

    def accepted(case: weft.Case, outputs: Mapping[str, Any]) -> weft.Score:
        error = bfcl_error(by_id[case.id], outputs["call"])
        return weft.Score(float(not error), feedback=error)

    cases = [
        {
            "id": item.id,
            "question": item.question,
            "function": json.dumps(item.functions[0]),
            "signature": signature(item),
        }
        for item in every
    ]
    calls = 1_200 if quick else 2_500
    return Task(document, cases, accepted, lambda: HeldModel(LocalModel(LOCAL), schemas), calls)


def bfcl_error(item: Item, text: str) -> str:
    """What BFCL's check says against these arguments, in a word; "" where they are right."""
    try:
        arguments_found = json.loads(text)
    except ValueError:
        return "no_json"
    function = item.functions[0]
    name = function["name"]
    call = (name, arguments_found)
    return call_error(call, name, item.gold[0][name], function["parameters"])


def signature(item: Item) -> str:
    """The function with the types of its parameters, on one line."""
    parameters = item.functions[0]["parameters"]["properties"]
    typed = ", ".join(f"{name}: {each['type']}" for name, each in parameters.items())
    return f"{item.functions[0]['name']}({typed})"


SECTIONS: Final[Mapping[str, Callable[..., Task]]] = {"forms": forms, "bfcl_simple": bfcl_simple}


def _document(
    name: str, inputs: Mapping[str, str], node: Mapping[str, Any], knobs: Mapping[str, Any]
) -> dict[str, Any]:
    """A workflow of one model node, with its knobs."""
    return {
        "name": name,
        "inputs": inputs,
        "models": {"small": f"local:{LOCAL}"},
        "nodes": {name: node},
        "outputs": {name: f"{{{{ {name} }}}}"},
        "optimise": {"knobs": {name: knobs}},
    }


def study(task: Task, model: ModelClient, *, seed: int = 0) -> weft.StudyResult:
    """One study of a task, which is not kept."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "workflow.json")
        file.write_text(json.dumps(task.document), encoding="utf-8")
        return weft.optimise_sync(
            weft.load(file),
            task.cases,
            task.metric,
            shares=SHARES,
            budget=task.calls,
            seed=seed,
            models={"small": model},
            journal=Path(folder, "study.db"),
        )


def section(name: str, *, quick: bool) -> Iterator[Row]:
    """The rows of a section; why, where its data are not at hand."""
    try:
        task = SECTIONS[name](quick=quick)
    except Skipped as reason:
        print(f"{name} is skipped: {reason}", file=sys.stderr, flush=True)
        yield Row(name, "", f"skipped: {reason}", None, "")
        return
    found = study(task, task.model())
    print(f"{name}: {found.verdict}, {found.verdict.why}")
    for member in found.front:
        print(member.figure("quality"), [edit.label for edit in member.edits])
    yield from study_rows(name, found)


def main() -> None:
    """Run the studies, print and write what they found."""
    asked = arguments("optimise_forms", __doc__ or "", list(SECTIONS))
    about = environment()
    print(title(about))
    rows: list[Row] = []
    for name in asked.only:
        for row in section(name, quick=asked.quick):
            rows.append(row)
            if row.value is not None:
                print(f"{row.case:12} {row.system:9} {row.metric:24} {row.value:10.4f} {row.unit}")
    if asked.json is not None:
        write_results(asked.json, rows, about)


if __name__ == "__main__":
    main()
