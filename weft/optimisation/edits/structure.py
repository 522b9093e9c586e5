"""Edits of the graph: split, fuse, parallelise, drop, hoist.

`Fuse`, `Parallelise` and `Hoist` claim that no value changes: see `verify_unchanged`.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from weft.optimisation.edits.draft import DocumentDraft, NodePlace, RawLevel, RawNode, places
from weft.optimisation.edits.edit import Edit
from weft.optimisation.edits.rename import names_in, renamed
from weft.workflow.document.spec.fields import Value, optional

_CALL: Final = ("model", "system", "temperature", "top_p", "top_k", "max_tokens", "decode", "seed")
_PLAIN_MAP: Final = frozenset(("map", "as", "do", "width", "mode", "description", "weight"))


class Split(Edit):
    """Make two calls of one: a new node before a model node does a part of its task."""

    edit: Literal["split"] = "split"
    name: str = Field(description="The name of the new node.", min_length=1)
    prompt: str = Field(description="The new node's prompt: a template.", min_length=1)
    rest: str = Field(description="The node's own prompt from now on; uses `{{ NAME }}`.")
    model: str | None = optional("The new node's model; else that of the node.")

    def change(self, draft: DocumentDraft) -> None:
        place = draft.place(self.node, "model")
        for key in ("think", "agent", "conversation"):
            if key in place.raw:
                draft.fail(f"it has `{key}`", self.node, "split a node that makes one call")
        if draft.fresh(self.name) != self.name:
            draft.fail(f"`{self.name}` is taken", self.node, "give the new node another name")
        if self.name not in names_in(self.rest):
            draft.fail("its prompt does not use the new node", self.node, f"{{{{ {self.name} }}}}")
        place = draft.named(place, "answer")
        part: RawNode = {key: place.raw[key] for key in _CALL if key in place.raw}
        part["prompt"] = self.prompt
        if self.model is not None:
            part["model"] = self.model
        for key in ("with", "when", "after"):
            if key in place.raw:
                part[key] = place.raw[key]
        _keep_arguments(part, [self.prompt])
        said = [place.raw[key] for key in ("system", "messages") if key in place.raw]
        _keep_arguments(place.raw, [self.rest, *said])
        place.raw["prompt"] = self.rest
        _insert_before(place, self.name, part)


def _keep_arguments(raw: RawNode, texts: list[Any]) -> None:
    """Leave out those of `with` that `texts` do not use."""
    used = names_in(texts)
    raw["with"] = {name: value for name, value in raw.get("with", {}).items() if name in used}
    if not raw["with"]:
        del raw["with"]


class Fuse(Edit):
    """Make one map of two, of which the second (`node`) takes the first one's results.

    An item then goes through both bodies by itself (map fusion: Wadler's deforestation, 1990).
    """

    edit: Literal["fuse"] = "fuse"
    first: str = Field(description="The name of the first map, beside the second.", min_length=1)

    def change(self, draft: DocumentDraft) -> None:
        place = draft.place(self.node, "map")
        first = place.holder.get(self.first) if place.is_named else None
        if first is None or "map" not in first:
            draft.fail(f"there is no map `{self.first}` beside it", self.node, "name such a map")
        second = place.raw
        for raw in (first, second):
            self._check_plain(draft, raw)
        over = second["map"]
        runs_over = over.strip("{} ") if isinstance(over, str) else ""
        if runs_over != self.first or "width" in first or "width" in second:
            hint = f'write `map: "{{{{ {self.first} }}}}"`, and give neither of them a `width`'
            draft.fail(f"it does not run for each result of `{self.first}`", self.node, hint)
        self._check_only_user(draft, place)
        item = second.get("as", "item")
        if any(item in each for each in _arguments(second["do"])):
            draft.fail(f"`{item}` has two meanings in its body", self.node, "rename an argument")
        nodes, result = self._body(draft, first, renamed(second["do"], item, self.first))
        fused = {**second, "map": first["map"], "do": {"nodes": nodes, "result": result}}
        fused.pop("as", None)
        place.holder[place.key] = fused | ({"as": first["as"]} if "as" in first else {})
        del place.holder[self.first]

    def _check_plain(self, draft: DocumentDraft, raw: RawNode) -> None:
        more = sorted(raw.keys() - _PLAIN_MAP)
        if more or raw.get("mode", "all") != "all":
            what = f"`{more[0]}`" if more else "a mode other than `all`"
            draft.fail(f"one of the maps has {what}", self.node, "only plain maps can be fused")

    def _check_only_user(self, draft: DocumentDraft, place: NodePlace) -> None:
        everything = [draft.raw["outputs"], [_without(draft.raw["nodes"], place)]]
        if self.first in names_in(everything) or self.first in names_in(place.raw["do"]):
            draft.fail(f"`{self.first}` is used elsewhere, too", self.node, "it has to stay")

    def _body(
        self, draft: DocumentDraft, first: RawNode, then: dict[str, Any]
    ) -> tuple[RawLevel, Any]:
        """The nodes of both bodies and their result; the first result is called like its map."""
        nodes: RawLevel = {}
        if "nodes" in first["do"]:
            nodes |= first["do"]["nodes"]
            nodes[self.first] = {"value": first["do"]["result"]}
        else:
            nodes[self.first] = first["do"]
        if "nodes" not in then:
            name = draft.fresh("mapped")
            return {**nodes, name: then}, f"{{{{ {name} }}}}"
        if taken := nodes.keys() & then["nodes"].keys():
            hint = "rename one of them"
            draft.fail(f"both bodies have a node `{min(taken)}`", self.node, hint)
        return {**nodes, **then["nodes"]}, then["result"]


def _without(value: Any, place: NodePlace) -> Any:
    """`value` without the list over which the map at `place` runs."""
    if value is place.raw:
        return {key: item for key, item in value.items() if key != "map"}
    if isinstance(value, dict):
        return {key: _without(item, place) for key, item in value.items()}
    return [_without(item, place) for item in value] if isinstance(value, list) else value


def _arguments(value: Any) -> list[dict[str, Any]]:
    """All `with` mappings in `value`."""
    if isinstance(value, list):
        return [found for item in value for found in _arguments(item)]
    if not isinstance(value, dict):
        return []
    own = [value["with"]] if isinstance(value.get("with"), dict) else []
    return own + [found for item in value.values() for found in _arguments(item)]


class Parallelise(Edit):
    """Have a node no longer wait for others whose values it does not use: a false edge."""

    edit: Literal["parallelise"] = "parallelise"
    after: list[str] | None = optional("Names in the node's `after`; else all of them.")

    def change(self, draft: DocumentDraft) -> None:
        raw = draft.place(self.node).raw
        waits: list[str] = raw.get("after", [])
        unknown = [name for name in self.after or () if name not in waits]
        if not waits or unknown:
            what = f"it does not wait for `{unknown[0]}`" if unknown else "it waits for no node"
            draft.fail(what, self.node, "its `after` has what it waits for without using it")
        left = [name for name in waits if self.after is not None and name not in self.after]
        raw.pop("after")
        if left:
            raw["after"] = left


class Drop(Edit):
    """Leave a node out. What used it takes `instead`; without that, nothing may use it."""

    edit: Literal["drop"] = "drop"
    instead: Value = optional("A value with templates, such as `{{ draft }}`.")

    def change(self, draft: DocumentDraft) -> None:
        place = draft.place(self.node)
        draft.check_not_replacement(place)
        if "instead" in self.model_fields_set:
            value: RawNode = {"value": self.instead}
            value |= {key: place.raw[key] for key in ("when", "after") if key in place.raw}
            place.holder[place.key] = value
            return
        if not place.is_named:
            draft.fail("a body needs its only node", self.node, "give a value `instead`")
        gone = place.holder.pop(place.key)
        for other in places(draft.raw).values() if place.holder else ():
            _wait_for(other.raw, place.key, gone.get("after", []))
        if place.key in names_in([draft.raw["nodes"], draft.raw["outputs"]]):
            draft.fail("its value is used", self.node, "give a value `instead`")


def _wait_for(raw: RawNode, name: str, others: list[str]) -> None:
    """Replace `name` in the `after` of a node by `others`."""
    if name in raw.get("after", ()):
        left = [each for each in raw["after"] if each != name]
        raw["after"] = [*left, *(each for each in others if each not in left)]
        if not raw["after"]:
            del raw["after"]


class Hoist(Edit):
    """Move a node out of a map or loop, where it computes the same each time."""

    edit: Literal["hoist"] = "hoist"

    def change(self, draft: DocumentDraft) -> None:
        place = draft.place(self.node)
        around = place.around
        if around is None or around.kind not in ("map", "loop"):
            draft.fail("it is in no map or loop", self.node, "name a node in the body of one")
        if not place.is_named or len(place.holder) == 1:
            draft.fail("its body has no other node", self.node, "such a map computes one value")
        self._check_same(draft, place, around)
        around = draft.named(around, "mapped")
        raw = place.holder.pop(place.key)
        if "when" in around.raw:
            raw["when"] = around.raw["when"]
        _insert_before(around, place.key, raw)

    def _check_same(self, draft: DocumentDraft, place: NodePlace, around: NodePlace) -> None:
        draft.check_not_replacement(place)
        if around.raw.get("mode", "all") != "all":
            draft.fail("the map tolerates failures", self.node, "its items would fail together")
        if "when" in place.raw and "when" in around.raw:
            draft.fail("it has a condition inside of another", self.node, "leave one out")
        default = "item" if around.kind == "map" else "value"
        bound = {around.raw.get("as", default), "index", "iteration"}
        inner = names_in(place.raw) & (bound | place.holder.keys()) - {place.key}
        if inner:
            hint = "only what does not depend on the item or on other nodes of the body can move"
            draft.fail(f"it uses `{min(inner)}`", self.node, hint)
        if place.kind == "break":
            draft.fail("a break belongs to its loop", self.node, "name another node")
        same = [p for p in places(draft.raw).values() if p.is_named and p.key == place.key]
        if len(same) > 1:
            draft.fail(f"another node is called `{place.key}`", self.node, "rename one of them")


def _insert_before(place: NodePlace, name: str, raw: RawNode) -> None:
    items = list(place.holder.items())
    place.holder.clear()
    for key, step in items:
        if key == place.key:
            place.holder[name] = raw
        place.holder[key] = step
