"""Model nodes whose prompts a model may rewrite, and the question that asks for it.

What the runs of a program contain is hostile: it is fenced and bounded, and an answer is data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.optimisation.candidates import Candidate
from weft.optimisation.edits.draft import places
from weft.optimisation.propose.context import ObservedRun, ProposalContext
from weft.optimisation.propose.rewrites import ANSWER_SCHEMA, references
from weft.optimisation.propose.traces import fenced, minimal_subgraph, run_text
from weft.workflow.document.rewrite import plain_document

_MOST_NODES: Final = 8
_MOST_SHOWN: Final = 800
_MOST_PROMPT: Final = 8_000
_MOST_WHY: Final = 300


@dataclass(frozen=True, slots=True)
class PromptNode:
    """A model node of a candidate. `about`: what the program is for; `raw`: the node as data."""

    address: str
    raw: Mapping[str, Any]
    about: str

    @property
    def prompt(self) -> str:
        """Its prompt: a template."""
        return str(self.raw["prompt"])

    @property
    def text(self) -> str:
        """The node for a question: its name, its prompt, and the form of its answer."""
        lines = [f"Step {self.address}. Its prompt now:", fenced(self.prompt, _MOST_PROMPT)]
        if "schema" in self.raw:
            lines += ["Its answer has to fit:", fenced(self.raw["schema"], _MOST_SHOWN)]
        if self.raw.get("messages"):
            lines += ["Examples that it is shown:", fenced(self.raw["messages"], _MOST_SHOWN)]
        return "\n".join(lines)


def prompt_nodes(
    context: ProposalContext, candidate: Candidate, names: Iterable[str]
) -> dict[str, PromptNode]:
    """The nodes of `names` that have a prompt in this candidate, by address.

    Raises: `EditError` where the candidate's edits do not fit together.
    """
    document = context.flow(candidate).document
    found = places(plain_document(document))
    return {
        name: PromptNode(name, found[name].raw, document.description or "no description")
        for name in names
        if name in found and isinstance(found[name].raw.get("prompt"), str)
    }


def runs_text(runs: Sequence[ObservedRun], node: str = "") -> str:
    """The runs for a question: of each the nodes up to `node`, or all of them, the last few."""
    parts = []
    for number, run in enumerate(runs, 1):
        nodes = minimal_subgraph(run.nodes, [node]) if node else run.nodes
        parts.append(f"Case {number}\n{run_text(run, nodes[-_MOST_NODES:], _MOST_SHOWN)}")
    return "\n\n".join(parts)


async def asked_rewrite(
    context: ProposalContext,
    node: PromptNode,
    runs: Sequence[ObservedRun],
    attempt: int,
    hypothesis: str = "",
) -> tuple[object, str]:
    """A prompt for the node as the proposer model wrote it, unchecked, and why; at most two calls.

    `hypothesis`: what the rewrite is to mend; without one, the model has to find out.
    Raises: `ModelError`.
    """
    question = rewrite_question(node, runs, hypothesis)
    answer = await context.ask(question, schema=ANSWER_SCHEMA, attempt=attempt)
    given = answer if isinstance(answer, Mapping) else {}
    return given.get("prompt"), one_line(given.get("why", ""))


def rewrite_question(node: PromptNode, runs: Sequence[ObservedRun], hypothesis: str = "") -> str:
    """Asks for another prompt of one node, in the light of some runs."""
    mend = (
        f"Hypothesis: {hypothesis}\nRewrite the prompt so that this no longer goes wrong. Leave "
        "the rest as it is."
        if hypothesis
        else "Find out from the feedback what goes wrong, and rewrite the prompt so that it no "
        "longer does. Keep what the feedback says of the task, and what works in all cases; do not "
        "copy single cases."
    )
    parts = [
        "Write a better prompt for one step of a program.",
        f"The program: {node.about[:_MOST_SHOWN]}",
        node.text,
        "Runs of the program, as far as this step depends on them:\n"
        + runs_text(runs, node.address),
        mend,
        "Keep these placeholders exactly as they are, and write no others: "
        + (", ".join(dict.fromkeys(references(node.prompt))) or "none"),
        'Answer with JSON: "why" says in one sentence what is better, "prompt" is the prompt.',
    ]
    return "\n\n".join(parts)


def one_line(text: object) -> str:
    """A model's text on one line, short enough for a report; empty where it is no text."""
    return " ".join(text.split())[:_MOST_WHY] if isinstance(text, str) else ""
