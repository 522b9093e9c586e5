"""A document as plain data while one edit changes it. Checks structure only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from pydantic import ValidationError

from weft.core.suggestion import closest
from weft.optimisation.edits.error import EditError
from weft.workflow.document import WorkflowDocument
from weft.workflow.document.rewrite import plain_document
from weft.workflow.document.spec.defects import first_defect
from weft.workflow.document.spec.fields import free_name
from weft.workflow.document.spec.nodes import KIND_NAMES

RawNode = dict[str, Any]
"""A node as plain data, with the keys of a file."""
RawLevel = dict[str, RawNode]
"""The nodes of a document or of a block, by name."""


@dataclass(frozen=True, slots=True)
class NodePlace:
    """A node of a draft: `holder[key]` is the node.

    `address`: names and, where a body is one node without a name, the key of the body, as in
    `notes/do`. `is_named`: `holder` is a level of nodes, and `key` the node's name there. `around`:
    the map, loop or branch whose body it is in, directly.
    """

    address: str
    holder: dict[str, Any]
    key: str
    is_named: bool
    around: NodePlace | None = None

    @property
    def raw(self) -> RawNode:
        """The node."""
        found: RawNode = self.holder[self.key]
        return found

    @property
    def kind(self) -> str:
        """The kind of the node: `model`, `map`, ..."""
        return kind_of(self.raw)


def kind_of(raw: RawNode) -> str:
    """The kind of a node of plain data."""
    return next(kind for kind in KIND_NAMES if kind in raw)


def places(raw: dict[str, Any]) -> dict[str, NodePlace]:
    """Every node of a document of plain data by its address, outer nodes before inner ones."""
    return {place.address: place for place in _level(raw["nodes"], "", None)}


def _level(nodes: RawLevel, prefix: str, around: NodePlace | None) -> Iterator[NodePlace]:
    for name in nodes:
        yield from _node(NodePlace(prefix + name, nodes, name, True, around))


def _node(place: NodePlace) -> Iterator[NodePlace]:
    yield place
    for holder, key in bodies_of(place.raw):
        inner = f"{place.address}/{key}" if holder is not place.raw else place.address
        if "nodes" in holder[key]:
            yield from _level(holder[key]["nodes"], f"{inner}/", place)
        else:
            yield from _node(NodePlace(f"{place.address}/{key}", holder, key, False, place))


def bodies_of(raw: RawNode) -> list[tuple[dict[str, Any], str]]:
    """The bodies of a node, each as a mapping and its key there."""
    match kind_of(raw):
        case "map":
            return [(raw, "do")]
        case "loop":
            return [(raw, "loop")]
        case "branch":
            return [(raw["cases"], case) for case in raw["cases"]]
        case _:
            return []


class DocumentDraft:
    """Plain data of `document`, which the edit called `edit` may change in place."""

    def __init__(self, document: WorkflowDocument, edit: str) -> None:
        self.raw = plain_document(document)
        self._edit = edit

    def fail(self, message: str, node: str | None, hint: str | None = None) -> NoReturn:
        """Raise the `EditError` of this edit."""
        raise EditError(message, edit=self._edit, node=node, hint=hint)

    def place(self, address: str, *kinds: str) -> NodePlace:
        """The node at `address`, of one of `kinds` if there are any. Raises: `EditError`."""
        found = places(self.raw)
        place = found.get(address)
        if place is None:
            near = closest(address, list(found))
            hint = f"did you mean `{near}`?" if near else f"there are: {', '.join(found)}"
            self.fail(f"there is no node `{address}`", address, hint)
        if kinds and place.kind not in kinds:
            wanted = " or ".join(kinds)
            self.fail(f"it is a {place.kind} node", address, f"name a {wanted} node")
        return place

    def named(self, place: NodePlace, wanted: str) -> NodePlace:
        """`place` with a name: the only node of a body becomes a block that has it as `wanted`."""
        if place.is_named:
            return place
        name = self.fresh(wanted)
        nodes = {name: place.raw}
        place.holder[place.key] = {"nodes": nodes, "result": f"{{{{ {name} }}}}"}
        return NodePlace(f"{place.address}/{name}", nodes, name, True, place.around)

    def fresh(self, wanted: str) -> str:
        """`wanted`, or it with a number: a name that nothing in the document has."""
        return free_name(wanted, self._names())

    def wrap(self, place: NodePlace, name: str, after: RawLevel) -> None:
        """Rename the node at `place` to `name`, and put the nodes of `after` behind it.

        One of them has the old name: what uses the node uses that one now.
        """
        assert place.key in after, "a node takes over the name"
        self.check_not_replacement(place)
        items = list(place.holder.items())
        place.holder.clear()
        for key, raw in items:
            place.holder[name if key == place.key else key] = raw
            if key == place.key:
                place.holder.update(after)

    def check_not_replacement(self, place: NodePlace) -> None:
        """Raises: `EditError` for a node that runs only in the place of another."""
        for name, raw in place.holder.items() if place.is_named else ():
            if place.key in (raw.get("fallback"), raw.get("degrade")):
                hint = f"edit `{name}`, or change its replacement first"
                self.fail(f"it runs only in the place of `{name}`", place.address, hint)

    def document(self) -> WorkflowDocument:
        """The changed document, without knobs of nodes that are gone.

        Raises: `EditError` for a defect of its structure.
        """
        knobs = self.raw.get("optimise", {}).get("knobs", {})
        for address in knobs.keys() - places(self.raw).keys() if knobs else ():
            del knobs[address]
        try:
            return WorkflowDocument.model_validate(self.raw)
        except ValidationError as error:
            defect = first_defect(error, self.raw)
            node = "/".join(map(str, defect.path[1:2])) or None
            self.fail(defect.message, node, defect.hint)

    def _names(self) -> set[str]:
        names = set(self.raw.get("inputs", ()))
        for place in places(self.raw).values():
            raw = place.raw
            names.update(raw.get("with", ()), [raw.get("as", "item")])
            names.update([place.key] if place.is_named else ())
        return names
