"""Instructions that a model writes from a look at data, program and examples (MIPROv2: Opsahl-Ong
et al., arXiv 2406.11695).
"""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

from weft.core.errors import ModelError
from weft.optimisation.candidates import Candidate, KnobOptions, Proposal, SearchState
from weft.optimisation.edits.draft import places
from weft.optimisation.options import EditOption
from weft.optimisation.propose.context import ProposalContext
from weft.optimisation.propose.rewrites import ANSWER_SCHEMA, PROMPT, references, rewritten
from weft.optimisation.propose.structure_rules import fitting_or_baseline
from weft.workflow.document.rewrite import plain_document

_TIPS: Final = (
    "Be direct: say what to do in one sentence.",
    "Say what the input is and what the output has to look like.",
    "Name the mistakes that are easy to make here.",
    "Give the model a role that fits the task.",
    "Ask for the decisive observation before the answer.",
    "Be brief: leave out every word that is not needed.",
)
_MOST_SHOWN: Final = 600
_MOST_WHY: Final = 300


class Instructions:
    """Prompts for model nodes, written by the proposer model; the user's own prompt stays one.

    The model sees the program's description, some training cases (`cases`), examples that the best
    candidate shows, and one tip, another one each time. A text that changes the prompt's references
    is dropped and counted (`refused`). `count` questions at each proposal. Which prompt goes with
    which demonstrations is for the search, or for the proposer `tpe`, to find out.
    """

    def __init__(
        self, context: ProposalContext, knobs: KnobOptions, *, count: int = 2, cases: int = 6
    ) -> None:
        self._context, self._count, self._cases = context, count, cases
        self._nodes = [name.removesuffix(PROMPT) for name in knobs if name.endswith(PROMPT)]
        self.refused = 0
        """Answers so far that were no prompt for their node."""

    @property
    def calls(self) -> int:
        """The most model calls of one proposal: an answer may be asked for twice."""
        return 2 * self._count if self._nodes else 0

    async def propose(self, state: SearchState) -> Proposal:
        """The best candidate with other prompts, of the node with the fewest prompts so far."""
        if not self._nodes:
            return Proposal([])
        before = self._context.calls
        parent = fitting_or_baseline(self._context, state.best, state.baseline)
        node = min(self._nodes, key=lambda each: len(state.knobs[each + PROMPT]))
        found: list[Candidate] = []
        for number in range(self._count):
            tip = _TIPS[(len(state.knobs[node + PROMPT]) + number) % len(_TIPS)]
            option = await self._asked(parent, node, tip, number)
            if option is None or option in state.knobs[node + PROMPT]:
                continue
            child = parent.replace(node + PROMPT, option)
            if self._context.allowed(child):
                found.append(child)
            else:
                self.refused += 1
        return Proposal(list(dict.fromkeys(found)), self._context.calls - before)

    async def _asked(
        self, parent: Candidate, node: str, tip: str, attempt: int
    ) -> EditOption | None:
        flow = self._context.flow(parent)
        place = places(plain_document(flow.document)).get(node)
        prompt = None if place is None else place.raw.get("prompt")
        if place is None or not isinstance(prompt, str):
            return None
        question = self._question(flow.document.description or "", node, place.raw, prompt, tip)
        try:
            answer = await self._context.ask(question, schema=ANSWER_SCHEMA, attempt=attempt)
        except ModelError:
            return None
        given = answer if isinstance(answer, dict) else {}
        why = str(given.get("why", ""))[:_MOST_WHY] or tip
        label = f"another prompt at {node} ({tip.partition(':')[0].rstrip('.').lower()})"
        option = rewritten(node, prompt, given.get("prompt"), label, why)
        self.refused += option is None
        return option

    def _question(self, about: str, node: str, raw: dict[str, Any], prompt: str, tip: str) -> str:
        pool = list(self._context.train)
        Random(f"{self._context.seed}:summary").shuffle(pool)  # noqa: S311 - repeatable
        cases = [
            f"- inputs {_short(dict(case.inputs))} expected {_short(case.expected)}"
            for case in pool[: self._cases]
        ]
        shown = raw.get("messages") or []
        parts = [
            "Write a better prompt for one step of a program.",
            f"The program: {about or 'no description'}",
            f"The step is called {node}. Its prompt now:\n{prompt}",
            _wanted(raw),
            f"Examples that it is shown: {_short(shown)}" if shown else "",
            "Some cases of the whole program:\n" + "\n".join(cases),
            f"Tip: {tip}",
            "Keep these placeholders exactly as they are, and write no others: "
            + (", ".join(dict.fromkeys(references(prompt))) or "none"),
            'Answer with JSON: "why" says in one sentence what is better, "prompt" is the prompt.',
        ]
        return "\n\n".join(part for part in parts if part)


def _wanted(raw: dict[str, Any]) -> str:
    return f"Its answer has to fit {_short(raw['schema'])}" if "schema" in raw else ""


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]} ..."
