"""The edit that puts another implementation in a node's place."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from weft.optimisation.edits.draft import DocumentDraft, RawNode, places
from weft.optimisation.edits.edit import Edit
from weft.optimisation.edits.rename import names_in
from weft.workflow.document.spec.nodes import BaseNode, NodeSpec

_KEPT: Final = (
    *("description", "when", "after", "fallback", "default", "on_failure", "budget", "degrade"),
    "weight",
)
"""Keys that say what surrounds a node; a choice without one has that of the node."""
_HINT: Final = "write it as in a file: {model: NAME, prompt: ...}, {tool: NAME, with: ...}"
_NODE: Final[TypeAdapter[BaseNode]] = TypeAdapter(NodeSpec)
_BOUND: Final = frozenset(("index", "iteration", "value"))


class Choose(Edit):
    """Replace a node by another implementation: tool, model, prompt, included workflow.

    It keeps its name, and uses nothing but what the node uses and the workflow's inputs, so that
    the graph stays; that its value fits what uses it is checked as in `weft check`.
    """

    edit: Literal["choose"] = "choose"
    choice: str = Field(description="What the implementation is called.", min_length=1)
    do: dict[str, JsonValue] = Field(description="The node in its place, as in a file.")

    def change(self, draft: DocumentDraft) -> None:
        place = draft.place(self.node)
        new: RawNode = dict(self.do)
        try:
            step = _NODE.validate_python(new)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            draft.fail(f"`{self.choice}` is no node: {first['msg']}", self.node, _HINT)
        if "break" in (step.kind, place.kind):
            draft.fail("a break belongs to its loop", self.node, "name another node")
        known = names_in(place.raw) | _bound(place.raw) | draft.raw.get("inputs", {}).keys()
        more = sorted(names_in(new) - known - _bound(new))
        if more:
            hint = "a choice uses what the node itself uses, and inputs of the workflow"
            draft.fail(f"`{self.choice}` uses `{more[0]}`", self.node, hint)
        for key in _KEPT:
            if key in place.raw and key not in new:
                new[key] = place.raw[key]
        place.holder[place.key] = new


def _bound(raw: RawNode) -> frozenset[str]:
    """The names that a node defines for its own templates."""
    inside = list(places({"nodes": {"": raw}}).values())
    found = _BOUND | {place.key for place in inside if place.is_named}
    found |= {str(place.raw.get("as", "item")) for place in inside}
    return found | {name for place in inside for name in place.raw.get("with", ())}
