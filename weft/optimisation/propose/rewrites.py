"""Prompts that a model has written: data, whose references are exactly those of the old prompt."""

from __future__ import annotations

import re
from typing import Any, Final

from weft.optimisation.candidates import Candidate
from weft.optimisation.edits import SetPrompt
from weft.optimisation.edits.draft import places
from weft.optimisation.options import EditOption, baseline_of
from weft.optimisation.propose.context import ProposalContext
from weft.workflow.document.rewrite import plain_document

PROMPT: Final = ".prompt"
ANSWER_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"why": {"type": "string"}, "prompt": {"type": "string"}},
    "required": ["why", "prompt"],
    "additionalProperties": False,
}
"""Of the answer to a question for a prompt."""
"""What the names of the knobs end with whose options are prompts."""

_REFERENCE: Final = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_MOST_TEXT: Final = 8_000


def references(prompt: str) -> list[str]:
    """The `{{ ... }}` of a prompt as they are written, in order."""
    return _REFERENCE.findall(prompt)


def bare(prompt: str) -> str:
    """Only the references of a prompt, one on each line: a program that says nothing."""
    return "\n".join(references(prompt))


def prompt_of(context: ProposalContext, candidate: Candidate, node: str) -> str | None:
    """The prompt that a candidate gives to a node, whatever its other edits put around the node.

    None where the node has none, or where the prompt fits only together with other edits.
    """
    settings = dict(candidate.settings)
    alone = baseline_of(settings)  # type: ignore[arg-type]
    knob = node + PROMPT
    if knob in settings:
        alone = alone.replace(knob, settings[knob])
    if not context.allowed(alone):
        return None
    place = places(plain_document(context.flow(alone).document)).get(node)
    prompt = None if place is None else place.raw.get("prompt")
    return prompt if isinstance(prompt, str) else None


def rewritten(node: str, old: str, text: object, label: str, why: str) -> EditOption | None:
    """The option that gives `node` the prompt `text`; None where it is no prompt for it.

    Every reference of `old` has to be in it as it was, and no other one: what a model writes must
    not choose what is computed.
    """
    if not isinstance(text, str) or not text.strip() or len(text) > _MOST_TEXT:
        return None
    rest = _REFERENCE.sub("", text)
    if set(references(text)) != set(references(old)) or re.search(r"\{[{%#]|[}%#]\}", rest):
        return None
    if text.strip() == old.strip():
        return None
    return EditOption.of([SetPrompt(node=node, prompt=text.strip())], label, why)
