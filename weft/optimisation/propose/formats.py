"""Formats of the messages between model nodes (Optima: Chen et al., arXiv 2410.08115), without
training: which nodes send texts to others, and typed formats with token budgets for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from weft.optimisation.candidates import Candidate, KnobOptions, Proposal, SearchState
from weft.optimisation.edits import SetMessageFormat
from weft.optimisation.edits.draft import places
from weft.optimisation.edits.insertions import NOT_ONE_CALL
from weft.optimisation.edits.rename import names_in
from weft.optimisation.propose.context import ProposalContext
from weft.optimisation.propose.structure_rules import (
    StructuralChange,
    fitting_or_baseline,
    is_new,
    known_documents,
)
from weft.workflow import WorkflowDocument
from weft.workflow.document.rewrite import plain_document

_FIELDS: Final = (("result",), ("result", "reason"))


def senders(document: WorkflowDocument) -> list[str]:
    """Addresses of model nodes whose answer is a text that a model node beside them is sent."""
    found = places(plain_document(document))
    sending = []
    for place in found.values():
        if place.kind != "model" or not place.is_named or "schema" in place.raw:
            continue
        readers = (
            other
            for other in found.values()
            if other.kind == "model" and other.holder is place.holder and other.key != place.key
        )
        single = not any(place.raw.get(key) for key in NOT_ONE_CALL)
        if single and any(place.key in names_in(other.raw) for other in readers):
            sending.append(place.address)
    return sending


def message_formats(node: str, budgets: Sequence[int]) -> Iterator[StructuralChange]:
    """The formats of one node's message, with each of `budgets` in tokens."""
    why = "what reads the message needs fewer words than its author writes"
    for budget in budgets:
        yield _change(SetMessageFormat(node=node, format="text", max_tokens=budget), why)
        yield _change(SetMessageFormat(node=node, format="keywords", max_tokens=budget), why)
        for fields in _FIELDS:
            edit = SetMessageFormat(
                node=node, format="fields", fields=list(fields), max_tokens=budget
            )
            yield _change(edit, why)


def _change(edit: SetMessageFormat, why: str) -> StructuralChange:
    what = f"fields {', '.join(edit.fields)}" if edit.fields else edit.format
    label = f"{edit.node} sends {what}, at most {edit.max_tokens} tokens"
    return StructuralChange(edit.node, (edit,), label, why)


class MessageFormats:
    """Proposes message formats for each node whose text is part of another model's prompt.

    `budgets`: tokens of a message. Makes no model call. Which formats are good is for the search:
    with tokens or cost among its objectives it returns the front.
    """

    def __init__(
        self,
        context: ProposalContext,
        knobs: KnobOptions,
        *,
        budgets: Sequence[int] = (32, 128),
        count: int = 8,
    ) -> None:
        del knobs  # those of the state have the options of other proposers, too
        self._context, self._budgets, self._count = context, tuple(budgets), count

    @property
    def calls(self) -> int:
        return 0

    async def propose(self, state: SearchState) -> Proposal:
        """Formats for the best candidate that are no options yet, in turn of the nodes."""
        known = known_documents(self._context, state)
        best = fitting_or_baseline(self._context, state.best, state.baseline)
        nodes = senders(self._context.flow(best).document)
        made = [list(message_formats(node, self._budgets)) for node in nodes]
        found: list[Candidate] = []
        for change in (change for turn in zip(*made, strict=True) for change in turn):
            if len(found) == self._count:
                break
            knob, candidate = change.on(best, state.knobs)
            is_option = dict(candidate.settings)[knob] in state.knobs[knob]
            if not is_option and is_new(self._context, candidate, known):
                found.append(candidate)
        return Proposal(found)
