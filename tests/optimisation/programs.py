"""Random workflows of model calls that run, random edits of them, and a model that is a function of
what it is asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from random import Random
from typing import Any

import weft
from weft.core.ports import ModelRequest
from weft.optimisation.edits import EDITS, addresses
from weft.optimisation.edits.draft import places
from weft.testing import FakeModel
from weft.workflow.document.rewrite import plain_document

_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}, "why": {"type": "string"}},
    "required": ["answer", "why"],
}


def function_model(classes: int = 0, name: str = "fake") -> FakeModel:
    """A model whose answer is a digest of its name and the request; with `classes`, one of so many
    answers.
    """

    def answer(request: ModelRequest) -> Any:
        asked = [name, *(message.content for message in request.messages)]
        sampling = request.sampling
        asked += [json.dumps(request.schema), str((sampling.seed, sampling.temperature))]
        number = int.from_bytes(sha256(json.dumps(asked).encode()).digest()[:6])
        number = number % classes if classes else number
        schema = request.schema
        return f"w{number}" if schema is None else _fitting(dict(schema), number)

    return FakeModel(answer, model=name)


def _fitting(schema: Mapping[str, Any], number: int) -> dict[str, Any]:
    kinds = {name: part["type"] for name, part in schema["properties"].items()}
    return {
        name: bool(number % 2) if kind == "boolean" else f"{name}{number}"
        for name, kind in kinds.items()
    }


class ProgramWriter:
    """Writes random workflows: `nodes` at the top, each using some of those before it."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._count = 0
        self._maps: list[str] = []

    def flow(self, nodes: int, *, calls_only: bool = False) -> weft.Flow:
        """A workflow with the input `x`; with `calls_only` every node is one model call."""
        steps: dict[str, Any] = {}
        self._maps.clear()
        for number in range(nodes):
            seen = ["x", *steps]
            kind = "call" if calls_only else self._random.choice(_KINDS)
            steps[f"n{number}"] = getattr(self, f"_{kind}")(seen, list(steps))
            if kind in ("map", "chain"):
                self._maps.append(f"n{number}")
        used = {name for step in steps.values() for name in steps if f"{{{{ {name} " in str(step)}
        last = [name for name in steps if name not in used] or list(steps)[-1:]
        document = {
            "name": "random",
            "inputs": {"x": "string"},
            "models": {"small": "local:tiny", "big": "local:tiny"},
            "nodes": steps,
            "outputs": {name: f"{{{{ {name} }}}}" for name in last},
        }
        return weft.loads(json.dumps(document))

    def _name(self) -> str:
        self._count += 1
        return f"i{self._count}"

    def _prompt(self, seen: list[str]) -> str:
        used = self._random.sample(seen, min(len(seen), self._random.choice((1, 1, 2, 3))))
        text = self._random.choice(("Read", "Sum up", "Judge", "Translate"))
        return f"{text} " + " ".join(f"{{{{ {name} | string }}}}" for name in used)

    def _call(self, seen: list[str], beside: list[str]) -> dict[str, Any]:
        step: dict[str, Any] = {"model": "small", "prompt": self._prompt(seen)}
        if beside and self._random.random() < 0.2:
            step["after"] = [self._random.choice(beside)]
        if self._random.random() < 0.15:
            step["temperature"] = self._random.choice((0, 0.7))
        return step

    def _typed(self, seen: list[str], beside: list[str]) -> dict[str, Any]:
        return {**self._call(seen, beside), "schema": _SCHEMA}

    def _sampled(self, seen: list[str], beside: list[str]) -> dict[str, Any]:
        return {**self._call(seen, beside), "samples": self._random.randint(1, 3)}

    def _value(self, seen: list[str], _: list[str]) -> dict[str, Any]:
        return {"value": [self._prompt(seen), self._random.randint(0, 9)]}

    def _map(self, seen: list[str], beside: list[str]) -> dict[str, Any]:
        item = self._name()
        lists = [name for name in beside if self._random.random() < 0.5]
        over = f"{{{{ [{lists[0]}, x] }}}}" if lists else ["a", "b", "{{ x }}"]
        return {"map": over, "as": item, "do": self._body([*seen, item])}

    def _chain(self, seen: list[str], beside: list[str]) -> dict[str, Any]:
        """A map over the results of another map, if there is one."""
        if not self._maps:
            return self._map(seen, beside)
        item, outer = self._name(), [name for name in seen if name not in self._maps]
        return {
            "map": f"{{{{ {self._maps[-1]} }}}}",
            "as": item,
            "do": self._random.choice((self._call, self._block))([*outer, item], []),
        }

    def _block(self, seen: list[str], _: list[str]) -> dict[str, Any]:
        return self._body(seen)

    def _loop(self, seen: list[str], _: list[str]) -> dict[str, Any]:
        item = self._name()
        return {
            "loop": self._body([*seen, item]),
            "as": item,
            "start": "begin",
            "until": "{{ iteration == 2 }}",
            "max": 3,
        }

    def _branch(self, seen: list[str], _: list[str]) -> dict[str, Any]:
        cases = {"true": self._body(seen), "default": self._body(seen)}
        return {"branch": f"{{{{ {seen[-1]} | string | length > 4 }}}}", "cases": cases}

    def _body(self, seen: list[str]) -> dict[str, Any]:
        if self._random.random() < 0.4:
            return self._call(seen, [])
        first, second = self._name(), self._name()
        outer = [name for name in seen if name[0] != "i"]
        nodes = {first: self._call(outer, []), second: self._call([*seen, first], [])}
        return {"nodes": nodes, "result": f"{{{{ {second} }}}}"}


_KINDS = ("call", "call", "call", "typed", "sampled", "value", "map", "chain", "loop", "branch")


def random_edit(random: Random, flow: weft.Flow) -> dict[str, Any]:
    """An edit as a model might write it: often one that fits, sometimes not."""
    raw = places(plain_document(flow.document))
    name = random.choice(list(EDITS))
    node = random.choice([*addresses(flow.document), "nowhere"])
    names = [*raw, "x", "answer"]
    pairs = {
        node: str(place.raw["map"]).strip("{} ")
        for node, place in raw.items()
        if "map" in place.raw
    }
    if name == "fuse" and pairs:
        node = random.choice(list(pairs))
    some = random.choice(names).rpartition("/")[2]
    texts = (f"Now {{{{ {some} | string }}}}", "Now", "{{ answer }} again?", "{{ x }} {{ broken")
    fields: dict[str, dict[str, Any]] = {
        "set_prompt": {"prompt": random.choice(texts)},
        "set_demonstrations": {"demonstrations": [{"user": "u {{", "assistant": "a"}]},
        "set_model": {"model": random.choice(("small", "big", "huge"))},
        "set_decoder": {"temperature": random.choice((0, 0.5, None))},
        "set_samples": {"samples": random.randint(1, 4)},
        "set_width": {"width": random.choice((1, 2, None))},
        "set_schema_order": {"order": random.choice((["why"], ["answer"], ["no"]))},
        "set_message_format": random.choice(
            (
                {"format": "text", "max_tokens": 20},
                {"format": "keywords"},
                {"format": "fields", "fields": ["facts", "why"], "max_tokens": 99},
                {"format": "fields"},
            )
        ),
        "insert_verifier": {"prompt": random.choice(texts)},
        "insert_revise": {"prompt": random.choice(texts), "model": "big"},
        "wrap_vote": {"samples": random.randint(2, 4)},
        "wrap_cascade": {"model": "big", "samples": 2},
        "split": {"name": "part", "prompt": random.choice(texts), "rest": "{{ part }} {{ x }}"},
        "fuse": {"first": pairs.get(node, "x")},
        "parallelise": {},
        "drop": random.choice(({}, {"instead": random.choice(texts)})),
        "hoist": {},
        "choose": {
            "choice": "other",
            "do": random.choice(
                (
                    {"model": "big", "prompt": random.choice(texts)},
                    {"value": random.choice(texts)},
                    {"map": ["a", "b"], "as": "each", "do": {"value": "{{ each }}"}},
                    {"model": 3},
                )
            ),
        },
    }
    return {"edit": name, "node": node, **fields[name]}
