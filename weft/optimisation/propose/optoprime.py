"""Suggestions from the graph of one bad run (OptoPrime of Trace: Cheng et al., arXiv
2406.16218).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from weft.core.errors import ModelError
from weft.optimisation.candidates import Candidate, KnobOptions, Proposal, SearchState
from weft.optimisation.options import EditOption
from weft.optimisation.propose.context import (
    ObservedNode,
    ObservedRun,
    ProposalContext,
    observation_calls,
    observe_within,
)
from weft.optimisation.propose.minibatch import minibatch
from weft.optimisation.propose.program_text import program_text
from weft.optimisation.propose.rewrites import PROMPT
from weft.optimisation.propose.structure_rules import (
    fitting_or_baseline,
    is_new,
    known_documents,
)
from weft.optimisation.propose.traces import minimal_subgraph
from weft.optimisation.propose.tree import mean_scores
from weft.optimisation.propose.variables import ProgramVariable, one_line, program_variables
from weft.workflow import WorkflowDocument
from weft.workflow.document.expressions import value_template

_MOST_SUGGESTIONS: Final = 16
_MOST_TRIED: Final = 8
_MOST_WHY: Final = 300
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "answer": {"type": "string"},
        "suggestion": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "variable": {"type": "string"},
                    "value": {"type": ["string", "number", "boolean"]},
                },
                "required": ["variable", "value"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["reasoning", "answer", "suggestion"],
    "additionalProperties": False,
}
_TASK: Final = """\
Change variables of this program so that its outputs get better feedback.

You see one run: the program as far as its outputs depend on it, its variables and what they may be,
the inputs, intermediate values, outputs and the feedback. Change few variables, and none without
a reason. The program runs on other inputs, too: write nothing that is right for these alone.

Answer with JSON: "reasoning" says which node went wrong and why, "answer" what the outputs should
have been like, "suggestion" is a list of {"variable": NAME, "value": NEW VALUE}, empty where
nothing should change."""


class GraphFeedback:
    """Prompts and known options that a model suggests after a look at the worst run of a batch.

    The best candidate runs on the next `cases` training cases. Of the run with the lowest score,
    where that is below `threshold`, the model sees the nodes that the outputs depend on, as a small
    program, with the changes that were tried. Its variables are the prompts and the knobs with
    several options. Values that fit make one candidate together; others, and what was measured
    already, are dropped and counted (`refused`). One question at each proposal, and at most
    `most_calls` model calls for the runs: 48, or what one case may take.
    """

    def __init__(
        self,
        context: ProposalContext,
        knobs: KnobOptions,
        *,
        cases: int = 3,
        threshold: float = 1.0,
        most_calls: int | None = None,
    ) -> None:
        self._context, self._cases, self._threshold = context, cases, threshold
        self._most_calls = observation_calls(context, knobs, most_calls, 48)
        self._has_variables = any(
            name.endswith(PROMPT) or len(options) > 1 for name, options in knobs.items()
        )
        self.refused = 0
        """Values so far that did not fit, and suggestions that gave no new candidate."""

    @property
    def calls(self) -> int:
        """The most model calls of one proposal: an answer may be asked for twice."""
        return self._most_calls + 2 if self._has_variables else 0

    async def propose(self, state: SearchState) -> Proposal:
        """The best candidate as the model would change it; none where all runs are good."""
        if not self._has_variables:
            return Proposal([])
        before = self._context.calls
        parent = fitting_or_baseline(self._context, state.best, state.baseline)
        cases = minibatch(self._context.train, self._context.seed, len(state.blocks), self._cases)
        runs = await observe_within(self._context, parent, cases, self._most_calls)
        worst = worst_run(runs, self._threshold)
        child = None if worst is None else await self._asked(state, parent, worst)
        found = [] if child is None else [child]
        return Proposal(found, self._context.calls - before)

    async def _asked(
        self, state: SearchState, parent: Candidate, run: ObservedRun
    ) -> Candidate | None:
        document = self._context.flow(parent).document
        nodes = output_subgraph(document, run)
        addresses = [node.node for node in nodes]
        variables = program_variables(self._context, state, parent, addresses)
        if not variables:
            return None
        shown = program_text(run, nodes, variables, document.outputs)
        tried = "# Tried already\n" + ("\n".join(_tried(state, parent)) or "nothing")
        try:
            answer = await self._context.ask(
                f"{_TASK}\n\n{shown}\n\n{tried}", schema=_SCHEMA, attempt=len(state.blocks)
            )
        except ModelError:
            return None
        child = self._suggested(answer, parent, variables)
        if child == parent:
            return None
        if is_new(self._context, child, known_documents(self._context, state)):
            return child
        self.refused += 1
        return None

    def _suggested(
        self, answer: object, parent: Candidate, variables: Sequence[ProgramVariable]
    ) -> Candidate:
        """The parent with the values that fit; of two for one variable the first."""
        given = answer if isinstance(answer, Mapping) else {}
        items = given.get("suggestion")
        why = str(given.get("reasoning", ""))[:_MOST_WHY]
        left, child = {each.name: each for each in variables}, parent
        for item in items[:_MOST_SUGGESTIONS] if isinstance(items, list) else ():
            name = item.get("variable") if isinstance(item, Mapping) else None
            variable = left.get(name.strip("`")) if isinstance(name, str) else None
            option = None if variable is None else variable.chosen(item.get("value"), why)
            if variable is None or option is None:
                self.refused += 1
                continue
            del left[variable.name]
            child = child.replace(variable.name, option)
        return child


def worst_run(runs: Sequence[ObservedRun], threshold: float) -> ObservedRun | None:
    """The first run with the lowest score, if that is below `threshold`; unscored ones are none."""
    scored = [(run.score, at, run) for at, run in enumerate(runs) if run.score is not None]
    if not scored:
        return None
    score, _, run = min(scored, key=lambda each: each[:2])
    return run if score < threshold else None


def output_subgraph(document: WorkflowDocument, run: ObservedRun) -> tuple[ObservedNode, ...]:
    """The observed nodes that the document's outputs depend on."""
    names = [name for each in document.outputs.values() for name in value_template(each).names]
    return minimal_subgraph(run.nodes, names)


def _tried(state: SearchState, parent: Candidate) -> list[str]:
    """The best measured candidates, by what they change, with mean scores before and after."""
    scores = mean_scores(state)
    ranked = sorted(scores, key=lambda each: (-scores[each], repr(each)))
    others = [each for each in ranked if each != parent][:_MOST_TRIED]
    base = f"{scores[parent]:.3f}" if parent in scores else "not measured"
    return [
        f"- {'; '.join(_setting(*each) for each in other.edits(parent).items())}: "
        f"{base} -> {scores[other]:.3f}"
        for other in others
    ]


def _setting(knob: str, option: object) -> str:
    """A setting on one line: the text of a prompt, else the label."""
    if not isinstance(option, EditOption):
        return f"{knob}: {option}"
    edits = option.read()
    text = getattr(edits[0], "prompt", None) if knob.endswith(PROMPT) and edits else None
    shown = option.label if text is None else text
    return f"{knob}: {one_line(shown, _MOST_WHY)}"
