"""Structural edits by rules, without a model: what could be put around, before or in the place of
each node, cheapest in wall time first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.optimisation.candidates import Candidate, KnobOptions, Proposal, SearchState
from weft.optimisation.edits import (
    Drop,
    Edit,
    Fuse,
    Hoist,
    InsertRevise,
    InsertVerifier,
    Parallelise,
    Split,
    WrapCascade,
    WrapVote,
    document_digest,
)
from weft.optimisation.edits.draft import NodePlace, places
from weft.optimisation.edits.insertions import NOT_ONE_CALL
from weft.optimisation.edits.rename import names_in
from weft.optimisation.options import STRUCTURE, EditOption
from weft.optimisation.propose.context import (
    ProposalContext,
    observation_calls,
    observe_within,
)
from weft.optimisation.propose.slack import slack_of
from weft.workflow import WorkflowDocument
from weft.workflow.document.rewrite import plain_document

Slack = Mapping[str, tuple[float, float]]
"""Seconds and slack in seconds of nodes, by address."""
_VOTES: Final = 3


@dataclass(frozen=True, slots=True)
class StructuralChange:
    """Edits that change the graph, with a label and the hypothesis behind them.

    `rounds`: how many more calls one after the other the edits add at `node`; below 0: fewer.
    """

    node: str
    edits: tuple[Edit, ...]
    label: str
    why: str
    rounds: int = 0

    def wall_s(self, slack: Slack) -> float:
        """By how many seconds the wall time of a run grows, by the nodes' times and slack."""
        seconds, free = slack.get(self.node, (1.0, 0.0))
        return self.rounds * seconds if self.rounds <= 0 else max(0.0, self.rounds * seconds - free)

    def on(self, parent: Candidate, knobs: KnobOptions) -> tuple[str, Candidate]:
        """`parent` with these edits behind those of their knob, and the knob's name."""
        own = f"{self.node}.structure"
        alone = all(edit.node == self.node for edit in self.edits)
        knob = own if alone and own in knobs else STRUCTURE
        before = dict(parent.settings)[knob]
        assert isinstance(before, EditOption), "options of documents are edits"
        edits = before.read()
        label = f"{before.label}, {self.label}" if edits else self.label
        return knob, parent.replace(knob, EditOption.of((*edits, *self.edits), label, self.why))


def structural_changes(document: WorkflowDocument) -> list[StructuralChange]:
    """What the rules would change, in the order of the nodes. Some may not pass `weft check`."""
    found = places(plain_document(document))
    changes: list[StructuralChange] = []
    for place in found.values():
        changes += _of_graph(place, found)
        if place.kind == "model" and isinstance(place.raw.get("prompt"), str):
            changes += _of_model(place, found, list(document.models))
    return changes


def _of_graph(place: NodePlace, found: Mapping[str, NodePlace]) -> Iterator[StructuralChange]:
    node, raw = place.address, place.raw
    if raw.get("after"):
        why = f"`{node}` waits for nodes whose values it does not use"
        yield StructuralChange(node, (Parallelise(node=node),), f"parallelise {node}", why, -1)
    if place.around is not None and place.around.kind in ("map", "loop") and place.is_named:
        why = f"`{node}` computes the same each time"
        yield StructuralChange(node, (Hoist(node=node),), f"hoist {node}", why, -1)
    if place.kind == "map" and place.is_named:
        over = str(raw["map"]).strip("{} ")
        if over in place.holder and "map" in place.holder[over]:
            why = "an item need not wait for all items of the first map"
            yield StructuralChange(
                node, (Fuse(node=node, first=over),), f"fuse {over} and {node}", why, -1
            )
    if place.kind == "model" and place.is_named and "schema" not in raw:
        prefix = node.removesuffix(place.key)
        for name in sorted(names_in(raw) & place.holder.keys() - {place.key}):
            other = found[prefix + name]
            if other.kind == "model" and not _has_other_value(other):
                edit = Drop(node=node, instead=f"{{{{ {name} }}}}")
                why = f"`{node}` may add nothing to `{name}`"
                yield StructuralChange(node, (edit,), f"drop {node} for {name}", why, -1)


def _has_other_value(place: NodePlace) -> bool:
    return bool({"schema", *NOT_ONE_CALL} & place.raw.keys())


def _of_model(
    place: NodePlace, found: Mapping[str, NodePlace], models: list[str]
) -> Iterator[StructuralChange]:
    node, raw = place.address, place.raw
    if any(raw.get(key) for key in NOT_ONE_CALL):
        return
    if raw.get("temperature") != 0:
        vote = WrapVote(node=node, samples=_VOTES)
        why = "a majority outvotes errors of single answers, side by side"
        yield StructuralChange(node, (vote,), f"vote of {_VOTES} at {node}", why)
        for model in models:
            if model != raw["model"]:
                cascade = WrapCascade(node=node, model=model)
                why = f"`{model}` is needed only where cheap answers disagree"
                label = f"cascade to {model} at {node}"
                yield StructuralChange(node, (cascade,), label, why, 1)
    task = _task(raw)
    verifier = InsertVerifier(
        node=node,
        prompt=f"{task}Answer:\n{{{{ answer }}}}\n\nIs the answer right and complete? Give the "
        "reason first.",
    )
    why = "a judge sees errors that the answer's author made, and one more try mends them"
    yield StructuralChange(node, (verifier,), f"verify {node}", why, 2)
    revise = InsertRevise(
        node=node,
        prompt=f"{task}Draft:\n{{{{ answer }}}}\n\nCorrect its errors. Write only the answer.",
    )
    why = "a second look corrects errors of the draft"
    yield StructuralChange(node, (revise,), f"revise {node}", why, 1)
    yield _split(place, found)


def _task(raw: Mapping[str, Any]) -> str:
    """The node's prompt for another call, which has not the node's own arguments."""
    if raw.get("with") or "answer" in names_in(raw["prompt"]):
        return ""
    return f"Task:\n{raw['prompt']}\n\n"


def _split(place: NodePlace, found: Mapping[str, NodePlace]) -> StructuralChange:
    node, prompt = place.address, place.raw["prompt"]
    names = {known.rpartition("/")[2] for known in found} | names_in(
        [other.raw for other in found.values()]
    )
    name = next(n for n in ("plan", *(f"plan_{at}" for at in range(2, 999))) if n not in names)
    split = Split(
        node=node,
        name=name,
        prompt=f"{prompt}\n\nDo not answer yet. List the steps that lead to the answer.",
        rest=f"{prompt}\n\nFollow these steps:\n{{{{ {name} }}}}",
    )
    return StructuralChange(
        node, (split,), f"plan before {node}", "a plan makes one task of two", 1
    )


class StructureRules:
    """Proposes structural edits by rules: verify, revise, vote, cascade, split, drop, fuse,
    parallelise, hoist. Needs no proposer model.

    Those that move the wall time least come first, by the slack of the nodes in recorded runs, so
    that quality is bought off the critical path (LAMaS, arXiv 2601.10560, charges only the critical
    path, too). `count`: candidates of one proposal. `cases`: training cases that are run for the
    times, with at most `most_calls` model calls.
    """

    def __init__(
        self,
        context: ProposalContext,
        knobs: KnobOptions,
        *,
        count: int = 4,
        cases: int = 2,
        most_calls: int | None = None,
    ) -> None:
        self._context, self._count, self._cases = context, count, cases
        self._most_calls = observation_calls(context, knobs, most_calls, 16)
        self.refused = 0
        """Changes so far that did not pass the check, or gave a known document."""

    @property
    def calls(self) -> int:
        return self._most_calls

    async def propose(self, state: SearchState) -> Proposal:
        """The cheapest changes of the best candidate that are no options yet."""
        before = self._context.calls
        best = fitting_or_baseline(self._context, state.best, state.baseline)
        cases = self._context.train[: self._cases]
        slack = slack_of(await observe_within(self._context, best, cases, self._most_calls))
        found = self.changes(state, best, slack)
        return Proposal(found[: self._count], self._context.calls - before)

    def changes(self, state: SearchState, parent: Candidate, slack: Slack) -> list[Candidate]:
        """All changes of `parent` by the rules that pass the check, in the order of wall time."""
        changes = structural_changes(self._context.flow(parent).document)
        known = known_documents(self._context, state)
        found = []
        for change in sorted(changes, key=lambda each: each.wall_s(slack)):
            knob, candidate = change.on(parent, state.knobs)
            if dict(candidate.settings)[knob] in state.knobs[knob]:
                continue
            if is_new(self._context, candidate, known):
                found.append(candidate)
            else:
                self.refused += 1
        return found


def known_documents(context: ProposalContext, state: SearchState) -> set[str]:
    """Digests of the documents that were measured."""
    measured = {each for block in state.blocks for each in block} | {state.baseline, state.best}
    fitting = (each for each in measured if context.allowed(each))
    return {document_digest(context.flow(each).document) for each in fitting}


def fitting_or_baseline(context: ProposalContext, parent: Candidate, base: Candidate) -> Candidate:
    """`parent`, or `base` where its edits do not fit together: others combined them."""
    return parent if context.allowed(parent) else base


def is_new(context: ProposalContext, candidate: Candidate, known: set[str]) -> bool:
    """Whether it passes the check and gives a document not in `known`, to which it is added."""
    if not context.allowed(candidate):
        return False
    digest = document_digest(context.flow(candidate).document)
    new = digest not in known
    known.add(digest)
    return new
