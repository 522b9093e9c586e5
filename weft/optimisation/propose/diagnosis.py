"""Diagnosis of failing runs: labelled hypotheses, as the proposer model names them.

Apart from rewriting, as in VISTA (arXiv 2603.18388). What a model writes is checked, and bounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.optimisation.propose.context import ObservedRun, ProposalContext
from weft.optimisation.propose.prompt_nodes import PromptNode, one_line, runs_text

LABELS: Final[Mapping[str, str]] = {
    "format": "the answer has another form than it should have",
    "field_order": "something is asked for before what it follows from, an answer before its "
    "reasons say",
    "missing_step": "a step that leads to the answer is not asked for",
    "ambiguity": "the task can be understood in another way",
    "missing_knowledge": "a fact or a rule of the task is not given",
    "length": "too much or too little is written",
    "examples": "examples are missing, or mislead",
    "other": "anything else",
}
"""What a hypothesis may say, with its meaning."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What may be wrong at a node, and why somebody thinks so."""

    label: str
    node: str
    reason: str

    @property
    def text(self) -> str:
        """`label: reason`."""
        return f"{self.label}: {self.reason or LABELS[self.label]}"


def read_hypotheses(
    answer: object, nodes: Mapping[str, Any], most: int
) -> tuple[list[Hypothesis], int]:
    """The first `most` hypotheses of a model's answer, each once, and how many were dropped: those
    of an unknown label or node. An answer that has no list counts as one.
    """
    given = answer.get("hypotheses") if isinstance(answer, Mapping) else None
    if not isinstance(given, list):
        return [], 1
    read = [_read(each, nodes) for each in given[:most]]
    found = list(dict.fromkeys(each for each in read if each is not None))
    return found, read.count(None)


def _read(given: object, nodes: Mapping[str, Any]) -> Hypothesis | None:
    if not isinstance(given, Mapping):
        return None
    label, node = given.get("label"), given.get("node")
    known = isinstance(label, str) and label in LABELS
    if not (known and isinstance(node, str) and node in nodes):
        return None
    return Hypothesis(str(label), node, one_line(given.get("reason")))


async def asked_hypotheses(
    context: ProposalContext,
    nodes: Mapping[str, PromptNode],
    runs: Sequence[ObservedRun],
    most: int,
    attempt: int,
) -> tuple[list[Hypothesis], int]:
    """What the proposer model says of failing `runs`, as `read_hypotheses`; at most two calls.

    Raises: `ModelError`.
    """
    question, schema = _question(nodes, runs, most), _schema(nodes, most)
    answer = await context.ask(question, schema=schema, attempt=attempt)
    return read_hypotheses(answer, nodes, most)


def _question(nodes: Mapping[str, PromptNode], runs: Sequence[ObservedRun], most: int) -> str:
    about = next(iter(nodes.values())).about
    wanted = (
        f"Answer with JSON: at most {most} different hypotheses, the likeliest first, each with a "
        'label, the step ("node") at which it goes wrong, and the reason in one sentence.'
    )
    parts = [
        "Some runs of a program went wrong. Say what may be wrong in the prompts of its steps.",
        f"The program: {about[:800]}",
        *(node.text for node in nodes.values()),
        f"Runs that went wrong:\n{runs_text(runs)}",
        "Labels:\n" + "\n".join(f"- {label}: {meaning}" for label, meaning in LABELS.items()),
        wanted,
    ]
    return "\n\n".join(parts)


def _schema(nodes: Mapping[str, PromptNode], most: int) -> dict[str, Any]:
    hypothesis = {
        "type": "object",
        "properties": {
            "reason": {"type": "string"},
            "label": {"enum": list(LABELS)},
            "node": {"enum": list(nodes)},
        },
        "required": ["reason", "label", "node"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "hypotheses": {"type": "array", "items": hypothesis, "minItems": 1, "maxItems": most}
        },
        "required": ["hypotheses"],
        "additionalProperties": False,
    }
