"""Scripted models that write and repair from a gold document, and err at a stated rate.

They answer the prompts of `weft.workflow.author`. Errors are drawn by seed, part and attempt, so
the same seed errs at the same places. They measure the machinery around a model, not a model.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from weft.core.ports import ModelRequest
from weft.testing import FakeModel
from weft.workflow.author.fields import OUTPUTS, at, node_paths, own_fields
from weft.workflow.author.skeleton import WorkflowSkeleton

_MEND: Final = re.compile(r"Repair the part `([^`]+)` of a workflow")
_WRITE: Final = re.compile(r"Write the node `([^`]+)` \(")
_NOW: Final = "The part is now:\n"


@dataclass(slots=True)
class GoldAuthor:
    """Answers from the document `gold` in plain data; wrong ones at `rate`.

    `intention`, `bullets` and `skeleton` are the answers of the first layers; a model that only
    repairs has none.
    """

    gold: Mapping[str, Any]
    rate: float = 0.0
    seed: int = 0
    bullets: list[str] = field(default_factory=list)
    skeleton: WorkflowSkeleton | None = None
    calls: int = 0
    _tries: Counter[str] = field(default_factory=Counter)

    def model(self) -> FakeModel:
        """The author as a model client."""
        return FakeModel(self._reply)

    def _reply(self, request: ModelRequest) -> dict[str, Any]:
        self.calls += 1
        prompt = str(request.messages[0].content)
        if found := _MEND.search(prompt):
            return self._repaired(found[1], prompt)
        if found := _WRITE.search(prompt):
            return self._written(found[1])
        if prompt.startswith("Write the steps"):
            return {"bullets": self.bullets or ["Do it"]}
        return self._drawn()

    def _errs(self, part: str) -> bool:
        self._tries[part] += 1
        return random.Random(f"{self.seed} {part} {self._tries[part]}").random() < self.rate

    def _repaired(self, part: str, prompt: str) -> dict[str, Any]:
        """What differs from the gold document, in the part that is asked for."""
        if self._errs(f"repair {part}"):
            return {}
        now: dict[str, Any] = json.loads(prompt.partition(_NOW)[2].partition("\n")[0])
        if part == OUTPUTS:
            return {key: self.gold["outputs"][key] for key in now}
        gold = self._fields(part)
        answer = {key: value for key, value in gold.items() if now.get(key) != value}
        extra = [key for key in now if key not in gold]
        return {**answer, **({"remove": extra} if extra else {})}

    def _fields(self, part: str) -> dict[str, Any]:
        path = next(path for path, address in node_paths(self.gold) if address == part)
        return own_fields(at(self.gold, path))

    def _written(self, node: str) -> dict[str, Any]:
        """The fields of a node, by its id alone."""
        path = next(path for path, _ in node_paths(self.gold) if path[-1] == node)
        given = own_fields(at(self.gold, path))
        fields = {key: value for key, value in given.items() if key in _WRITTEN[_kind(given)]}
        if not self._errs(f"write {node}"):
            return fields
        return spoilt_fields(fields, random.Random(f"{self.seed} spoil {node}"))

    def _drawn(self) -> dict[str, Any]:
        assert self.skeleton is not None
        nodes = []
        for node in self.skeleton.nodes:
            needs = list(node.needs)
            if needs and self._errs(f"draw {node.id}"):
                needs.pop()
            own = {"tool": node.tool, "item": node.item, "cases": list(node.cases)}
            own = {key: value for key, value in own.items() if value}
            if node.kind == "model":
                own["answer"] = node.answer
            nodes.append(
                {"id": node.id, "kind": node.kind, **own, "inside": node.inside, "needs": needs}
            )
        outputs = [{"output": name, "node": node} for name, node in self.skeleton.outputs.items()]
        return {"nodes": nodes, "outputs": outputs}


_WRITTEN: Final[Mapping[str, tuple[str, ...]]] = {
    "tool": ("with", "when", "after"),
    "model": ("prompt", "when", "after"),
    "map": ("map", "when", "after"),
    "branch": ("branch", "when", "after"),
    "loop": ("start", "until", "max", "when", "after"),
    "value": ("value", "when", "after"),
    "ask": ("ask", "schema", "when", "after"),
}


def _kind(fields: Mapping[str, Any]) -> str:
    """The kind of own fields; those of a loop lack the key of its kind."""
    kinds = ("tool", "model", "map", "branch", "ask")
    found = next((kind for kind in kinds if kind in fields), "")
    return found or ("loop" if "until" in fields else "value")


def spoilt_fields(fields: Mapping[str, Any], draw: random.Random) -> dict[str, Any]:
    """Fields with one broken or misspelt expression, or without one argument."""
    new: dict[str, Any] = json.loads(json.dumps(fields))
    if new.get("with") and draw.random() < 0.3:
        del new["with"][draw.choice(sorted(new["with"]))]
        return new
    places = [place for place in _texts(new) if "{{" in place[0][place[1]]]
    if not places:
        return {**new, "when": "{{ nobody }}"}
    owner, key = draw.choice(places)
    broken = draw.random() < 0.5
    owner[key] = (
        owner[key].replace("}}", "", 1) if broken else owner[key].replace("{{ ", "{{ un", 1)
    )
    return new


def _texts(value: Any) -> list[tuple[Any, Any]]:
    """All texts inside a value, each as its owner and key."""
    found = []
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in pairs:
        if isinstance(item, str):
            found.append((value, key))
        elif isinstance(item, dict | list):
            found += _texts(item)
    return found
