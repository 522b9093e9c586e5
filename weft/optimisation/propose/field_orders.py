"""Another order of the fields of a node's answer, by the node's own knob."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

from weft.optimisation.candidates import Candidate, Option
from weft.optimisation.edits import SetSchemaOrder
from weft.optimisation.edits.draft import places
from weft.optimisation.options import AS_IT_IS, EditOption
from weft.optimisation.propose.context import ProposalContext
from weft.workflow.document.rewrite import plain_document


def fields_of(context: ProposalContext, candidate: Candidate, node: str) -> list[str]:
    """The names of the fields of a node's answer, in order. Raises: `EditError`."""
    place = places(plain_document(context.flow(candidate).document)).get(node)
    schema = None if place is None else place.raw.get("schema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return list(properties) if isinstance(properties, dict) else []


def reordered(
    context: ProposalContext,
    parent: Candidate,
    knob: str,
    options: Sequence[Option],
    why: str,
    known: Collection[Candidate],
    random: Random,
) -> Candidate | None:
    """`parent` with its first field last, where `knob` has that order; else with another of its
    orders; None where none fits, or all are `known`. The option has the label `field_order`.
    """
    node = knob.rpartition(".")[0]
    own = dict(parent.settings)[knob]
    names = fields_of(context, parent, node)
    wanted = [*names[1:], *names[:1]]
    plain = fields_of(context, parent.replace(knob, AS_IT_IS), node)
    edit = AS_IT_IS if wanted == plain else _order(node, wanted)
    others = [each for each in options if isinstance(each, EditOption) and each != own]
    random.shuffle(others)
    for option in sorted(others, key=lambda each: each != edit):
        made = EditOption(option.edits, f"field_order: other fields first at {node}", why)
        child = parent.replace(knob, made)
        if child not in known and context.allowed(child):
            return child
    return None


def _order(node: str, names: Sequence[str]) -> EditOption | None:
    return EditOption.of([SetSchemaOrder(node=node, order=list(names))], "") if names else None
