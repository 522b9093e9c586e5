"""Spaces of candidates: the knobs of a document with their options, and all combinations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import Any, Final, Literal

from weft.optimisation.edits import (
    Choose,
    Drop,
    Edit,
    Patch,
    SetDecoder,
    SetModel,
    SetPrompt,
    SetSamples,
    SetSchemaOrder,
    SetWidth,
    WrapVote,
    document_digest,
)
from weft.optimisation.edits.draft import DocumentDraft, NodePlace, kind_of, places
from weft.optimisation.edits.error import EditError
from weft.optimisation.edits.patch import AnyFlow
from weft.workflow import WorkflowDocument
from weft.workflow.document.rewrite import plain_document
from weft.workflow.document.spec.nodes import BaseNode
from weft.workflow.document.spec.optimise import NodeKnobs

KnobKind = Literal[
    "choice",
    "prompt",
    "model",
    "decode",
    "temperature",
    "schema_order",
    "width",
    "samples",
    "optional",
]
AS_WRITTEN: Final = "as written"
"""The choice that a node without `choices` has."""
_MOST_FIELDS: Final = 4
"""All orders of more fields than these would be more than 24."""


@dataclass(frozen=True, slots=True)
class KnobOption:
    """One value of a knob, and the edit that sets it; None: the document as it is."""

    value: Any
    edit: Edit | None = None


@dataclass(frozen=True, slots=True)
class Knob:
    """One thing that may change in one node. The first option leaves the document as it is."""

    node: str
    kind: KnobKind
    options: tuple[KnobOption, ...]

    @property
    def name(self) -> str:
        """`solve.model`."""
        return f"{self.node}.{self.kind}"


@dataclass(frozen=True, slots=True)
class SpaceCandidate:
    """One combination of options, by the knobs' names, as a patch and as the patched flow."""

    choice: Mapping[str, Any]
    patch: Patch
    flow: AnyFlow
    digest: str


@dataclass(frozen=True, slots=True)
class Space:
    """All combinations of the options of `knobs`.

    `open`: addresses of nodes with what proposers may write there, `prompt` or `demonstrations`.
    """

    knobs: tuple[Knob, ...]
    open: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        """The number of combinations."""
        return prod(len(knob.options) for knob in self.knobs)

    def candidates(
        self, flow: AnyFlow, refused: Callable[[EditError], None] | None = None
    ) -> Iterator[SpaceCandidate]:
        """Every combination, the flow as it is first; equal documents once.

        `refused` receives the error of each combination that does not pass `weft check`; without it
        the error is raised. Edits that combinations have in common are applied once.

        Raises: `EditError`.
        """
        seen: set[str] = set()
        for choice, patch, patched in self._combined(flow, 0, {}, Patch(), refused):
            digest = document_digest(patched.document)
            if digest not in seen:
                seen.add(digest)
                yield SpaceCandidate(choice, patch, patched, digest)

    def _combined(
        self,
        flow: AnyFlow,
        depth: int,
        choice: Mapping[str, Any],
        patch: Patch,
        refused: Callable[[EditError], None] | None,
    ) -> Iterator[tuple[Mapping[str, Any], Patch, AnyFlow]]:
        if depth == len(self.knobs):
            yield choice, patch, flow
            return
        knob = self.knobs[depth]
        for option in knob.options:
            edits = () if option.edit is None else (option.edit,)
            try:
                patched = Patch(edits).apply(flow) if edits else flow
            except EditError as error:
                if refused is None:
                    raise
                refused(error)
                continue
            chosen = {**choice, knob.name: option.value}
            yield from self._combined(patched, depth + 1, chosen, patch.then(*edits), refused)


def declared_space(document: WorkflowDocument) -> Space:
    """The space that the document declares: `optimise: {knobs: ...}`. Raises: `EditError`."""
    declared = {} if document.optimise is None else document.optimise.knobs
    draft = DocumentDraft(document, "knobs")
    knobs: list[Knob] = []
    open_: list[tuple[str, str]] = []
    for node, spec in declared.items():
        knobs += _knobs(draft.place(node), spec)
        open_ += [(node, "prompt")] if spec.prompt is True else []
        open_ += [(node, "demonstrations")] if spec.demonstrations is not None else []
    return Space(_ordered(knobs), tuple(open_))


def discovered_space(document: WorkflowDocument) -> Space:
    """The knobs whose options the document itself names, and what proposers may write.

    For each model node: the document's other models, and the orders of its answer's fields.
    """
    models = list(document.models)
    knobs: list[Knob] = []
    open_: list[tuple[str, str]] = []
    for place in places(plain_document(document)).values():
        if place.kind != "model":
            continue
        fields: dict[str, Any] = {"schema_order": True} if _fields(place) else {}
        others = [name for name in models if name != place.raw["model"]]
        fields |= {"model": others} if others else {}
        knobs += _knobs(place, NodeKnobs.model_validate(fields))
        open_ += [(place.address, "prompt"), (place.address, "demonstrations")]
    return Space(_ordered(knobs), tuple(open_))


def _ordered(knobs: Iterable[Knob]) -> tuple[Knob, ...]:
    """Settings of a node come before what puts other nodes around it, or drops it."""
    late = {"samples": 1, "optional": 2}
    return tuple(sorted(knobs, key=lambda knob: late.get(knob.kind, 0)))


def _knobs(place: NodePlace, spec: NodeKnobs) -> Iterator[Knob]:
    """The knobs of one node that have at least two options."""
    raw, node = place.raw, place.address
    makers: list[tuple[KnobKind, Any, list[tuple[Any, Edit]]]] = [
        ("choice", own_choice(spec), _choices(node, spec)),
        ("prompt", raw.get("prompt"), _prompts(node, spec)),
        ("model", raw.get("model"), [(m, SetModel(node=node, model=m)) for m in spec.model or ()]),
        (
            "decode",
            raw.get("decode"),
            [(d, SetDecoder(node=node, decode=d)) for d in spec.decode or ()],
        ),
        (
            "temperature",
            raw.get("temperature"),
            [(t, SetDecoder(node=node, temperature=t)) for t in spec.temperature or ()],
        ),
        ("schema_order", _fields(place), _orders(place, spec)),
        ("width", _width(place), [(w, SetWidth(node=node, width=w)) for w in spec.width or ()]),
        ("samples", raw.get("samples", 1), _samples(place, spec)),
        ("optional", True, _dropped(node, spec)),
    ]
    for kind, now, others in makers:
        options = [
            KnobOption(now),
            *(KnobOption(value, edit) for value, edit in others if value != now),
        ]
        if len(options) > 1:
            yield Knob(node, kind, tuple(options))


def own_choice(spec: NodeKnobs) -> str:
    """What the node as it is is called among its `choices`."""
    choices = spec.choices or {}
    return next((name for name, each in choices.items() if each.do is None), AS_WRITTEN)


def _choices(node: str, spec: NodeKnobs) -> list[tuple[Any, Edit]]:
    return [
        (name, Choose(node=node, choice=name, do=plain_node(each.do)))
        for name, each in (spec.choices or {}).items()
        if each.do is not None
    ]


def plain_node(step: BaseNode) -> dict[str, Any]:
    """A node as plain data with the keys of a file."""
    return step.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _prompts(node: str, spec: NodeKnobs) -> list[tuple[Any, Edit]]:
    texts = spec.prompt if isinstance(spec.prompt, list) else []
    return [(text, SetPrompt(node=node, prompt=text)) for text in texts]


def _samples(place: NodePlace, spec: NodeKnobs) -> list[tuple[Any, Edit]]:
    node = place.address
    if "samples" in place.raw:
        return [(n, SetSamples(node=node, samples=n)) for n in spec.samples or ()]
    return [(n, WrapVote(node=node, samples=n)) for n in spec.samples or () if n > 1]


def _dropped(node: str, spec: NodeKnobs) -> list[tuple[Any, Edit]]:
    if spec.optional in (None, False):
        return []
    if spec.optional is True:
        return [(False, Drop(node=node))]
    return [(False, Drop(node=node, instead=spec.optional))]


def _width(place: NodePlace) -> Any:
    think = place.raw.get("think")
    return think.get("width") if isinstance(think, dict) else place.raw.get("width")


def _fields(place: NodePlace) -> list[str]:
    """The names of the fields of a model node's answer, in order; empty without any."""
    schema = place.raw.get("schema") if kind_of(place.raw) == "model" else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return list(properties) if isinstance(properties, dict) else []


def _orders(place: NodePlace, spec: NodeKnobs) -> list[tuple[Any, Edit]]:
    names = _fields(place)
    if isinstance(spec.schema_order, list):
        orders = [[*order, *(n for n in names if n not in order)] for order in spec.schema_order]
    elif spec.schema_order and len(names) <= _MOST_FIELDS:
        orders = [list(order) for order in permutations(names)]
    else:
        orders = []
    return [(order, SetSchemaOrder(node=place.address, order=order)) for order in orders]
