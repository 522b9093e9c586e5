"""Playbooks of lessons after prompts, kept by a reflector and a curator (ACE: Zhang et al.,
arXiv 2510.04618).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from weft.core.errors import ModelError
from weft.optimisation.candidates import Candidate, KnobOptions, Option, Proposal, SearchState
from weft.optimisation.edits import SetPrompt
from weft.optimisation.options import EditOption
from weft.optimisation.propose.context import (
    ObservedRun,
    ProposalContext,
    observation_calls,
    observe_within,
)
from weft.optimisation.propose.lessons import (
    CURATION,
    REFLECTION,
    curation_question,
    read_curation,
    read_lessons,
    read_tags,
    reflection_question,
)
from weft.optimisation.propose.minibatch import minibatch
from weft.optimisation.propose.playbook import Playbook
from weft.optimisation.propose.rewrites import PROMPT, prompt_of
from weft.optimisation.propose.structure_rules import (
    fitting_or_baseline,
    is_new,
    known_documents,
)

_MOST_WHY: Final = 300


@dataclass(frozen=True, slots=True)
class PlaybookPrompt:
    """A prompt with a playbook after it: `option` and `prompt` are those without the playbook."""

    option: Option
    prompt: str
    book: Playbook


class PlaybookCurator:
    """Prompts with lessons after them, which grow by small operations from what runs teach.

    The best candidate runs on the next `cases` training cases. Where one of them has a score below
    `threshold`, a reflector is asked for lessons, and whether the lessons that the prompt has were
    helpful or harmful, which moves their counters; then a curator for operations on the playbook of
    that node, which code merges. The nodes take turns. A playbook belongs to the prompt that shows
    it, so that one that did not help is left with its candidate. At most `limit` lessons; what does
    not fit is dropped and counted (`refused`). Two questions at each proposal, and at most
    `most_calls` model calls for the runs: 48, or what one case may take.
    """

    def __init__(
        self,
        context: ProposalContext,
        knobs: KnobOptions,
        *,
        cases: int = 4,
        limit: int = 20,
        threshold: float = 1.0,
        most_calls: int | None = None,
    ) -> None:
        self._context, self._cases, self._threshold = context, cases, threshold
        self._empty = Playbook(limit=limit)
        self._most_calls = observation_calls(context, knobs, most_calls, 48)
        self._nodes = [name.removesuffix(PROMPT) for name in knobs if name.endswith(PROMPT)]
        self._known: dict[tuple[str, Option], PlaybookPrompt] = {}
        self.refused = 0
        """Operations so far that did not fit, and playbooks that gave no new candidate."""

    @property
    def calls(self) -> int:
        """The most model calls of one proposal: each answer may be asked for twice."""
        return self._most_calls + 4 if self._nodes else 0

    def playbook(self, node: str, candidate: Candidate) -> Playbook:
        """The playbook that a candidate shows to a node, with the counters as they are now."""
        found = self._known.get((node, dict(candidate.settings).get(node + PROMPT)))
        return self._empty if found is None else found.book

    async def propose(self, state: SearchState) -> Proposal:
        """The best candidate with another playbook at one node; none where all runs are good."""
        if not self._nodes:
            return Proposal([])
        before, number = self._context.calls, len(state.blocks)
        parent = fitting_or_baseline(self._context, state.best, state.baseline)
        node = self._nodes[number % len(self._nodes)]
        shown = self._shown(parent, node)
        cases = minibatch(self._context.train, self._context.seed, number, self._cases)
        runs = await observe_within(self._context, parent, cases, self._most_calls)
        scored = [run for run in runs if run.score is not None]
        found: list[Candidate] = []
        if shown is not None and any((run.score or 0.0) < self._threshold for run in scored):
            book = await self._next_book(parent, node, shown, scored, number)
            child = self._with(parent, node, replace(shown, book=book))
            found = [child] if child != parent and self._is_new(state, child) else []
        return Proposal(found, self._context.calls - before)

    def _shown(self, parent: Candidate, node: str) -> PlaybookPrompt | None:
        """What the parent shows to the node; None where the node has no prompt."""
        option = dict(parent.settings)[node + PROMPT]
        if (node, option) in self._known:
            return self._known[node, option]
        prompt = prompt_of(self._context, parent, node)
        return None if prompt is None else PlaybookPrompt(option, prompt, self._empty)

    async def _next_book(
        self,
        parent: Candidate,
        node: str,
        shown: PlaybookPrompt,
        runs: Sequence[ObservedRun],
        number: int,
    ) -> Playbook:
        """The playbook after the reflector's tags, which the parent keeps, and the operations."""
        question = reflection_question(node, shown.prompt, shown.book, runs)
        answer = await self._answer(question, REFLECTION, number)
        lessons, tags = read_lessons(answer), read_tags(answer, shown.book)
        tagged = shown.book.merge(tags)
        if tags:
            self._known[node, dict(parent.settings)[node + PROMPT]] = replace(shown, book=tagged)
        if not lessons and not any(tag.harmful for tag in tags):
            return tagged
        question = curation_question(node, shown.prompt, tagged, lessons)
        operations, dropped = read_curation(await self._answer(question, CURATION, number))
        self.refused += dropped
        return tagged.merge(operations)

    async def _answer(self, prompt: str, schema: Mapping[str, Any], number: int) -> object:
        try:
            return await self._context.ask(prompt, schema=schema, attempt=number)
        except ModelError:
            return None

    def _with(self, parent: Candidate, node: str, made: PlaybookPrompt) -> Candidate:
        """The parent with this playbook at the node."""
        if not made.book.bullets:
            return parent.replace(node + PROMPT, made.option)
        old = {bullet.id for bullet in self.playbook(node, parent).bullets}
        new = [bullet.text for bullet in made.book.bullets if bullet.id not in old]
        edit = SetPrompt(node=node, prompt=made.book.render(made.prompt))
        label = f"playbook of {len(made.book.bullets)} at {node}"
        why = " ".join(new)[:_MOST_WHY] or "the lessons that are left, or better said"
        option = EditOption.of([edit], label, why)
        self._known.setdefault((node, option), made)
        return parent.replace(node + PROMPT, option)

    def _is_new(self, state: SearchState, child: Candidate) -> bool:
        new = is_new(self._context, child, known_documents(self._context, state))
        self.refused += not new
        return new
