"""Edits that add calls around a node: verifier, revision, vote, cascade.

What used the node uses the result of what was added, which takes over the node's name.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from weft.optimisation.edits.draft import DocumentDraft, NodePlace, RawNode
from weft.optimisation.edits.edit import Edit
from weft.optimisation.edits.rename import names_in
from weft.workflow.document.spec.fields import optional

NOT_ONE_CALL: Final = ("samples", "think", "agent", "conversation", "tools")
"""Keys of model nodes that are not one call with one answer."""
_AROUND: Final = ("when", "after", "fallback", "degrade", "description", "weight", "cache")
"""Keys that stay with the original when its call is made again in another place."""
_MAJORITY: Final = "weft.optimisation.edits.votes:majority"
_AGREEMENT: Final = "weft.optimisation.edits.votes:agreement"
_VERDICT: Final = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "ok": {"type": "boolean"}},
    "required": ["reason", "ok"],
    "additionalProperties": False,
}


class InsertVerifier(Edit):
    """Have a model judge the answer of a model node; one that is refused is asked for once more.

    The verdict is `{reason, ok}`, the reason first; the second call is told the reason
    (Self-Refine, arXiv 2303.17651, with one round).
    """

    edit: Literal["insert_verifier"] = "insert_verifier"
    prompt: str = Field(description="The judge's prompt: a template with `{{ answer }}` in it.")
    model: str | None = optional("The judge: a name under `models`; else the node's own.")

    def change(self, draft: DocumentDraft) -> None:
        place = asked_once(draft, self.node)
        _needs_answer(draft, self)
        if not place.raw.get("prompt"):
            draft.fail("it has no `prompt` to repeat", self.node, "write a prompt")
        name, check = draft.fresh(f"{place.key}_draft"), draft.fresh(f"{place.key}_check")
        judge = {
            "model": self.model or place.raw["model"],
            "prompt": self.prompt,
            "with": {"answer": f"{{{{ {name} }}}}"},
            "schema": _VERDICT,
        }
        why = f"{{{{ {check}.reason }}}}"
        again = _again(place.raw)
        again["prompt"] += f"\n\nAn earlier answer was refused: {why}\nAnswer again, without that."
        decided = {
            "branch": f"{{{{ {check}.ok }}}}",
            "cases": {"true": {"value": f"{{{{ {name} }}}}"}, "false": again},
        }
        draft.wrap(place, name, {check: judge, place.key: decided})


class InsertRevise(Edit):
    """Have a model revise the answer of a model node."""

    edit: Literal["insert_revise"] = "insert_revise"
    prompt: str = Field(description="The prompt: a template with `{{ answer }}` in it.")
    model: str | None = optional("A name under `models`; else the node's own.")

    def change(self, draft: DocumentDraft) -> None:
        place = asked_once(draft, self.node)
        _needs_answer(draft, self)
        name = draft.fresh(f"{place.key}_draft")
        revised = {key: value for key, value in _again(place.raw).items() if key in _OF_ANSWER}
        revised |= {
            "model": self.model or place.raw["model"],
            "prompt": self.prompt,
            "with": {"answer": f"{{{{ {name} }}}}"},
        }
        draft.wrap(place, name, {place.key: revised})


class WrapVote(Edit):
    """Ask a model node several times at once; its value is the most frequent answer.

    Of equally frequent answers the first counts (self-consistency, arXiv 2203.11171).
    """

    edit: Literal["wrap_vote"] = "wrap_vote"
    samples: int = Field(default=5, description="How many answers.", ge=2, le=1000)

    def change(self, draft: DocumentDraft) -> None:
        place = asked_once(draft, self.node)
        name = _sampled(draft, place, self.samples)
        vote = {"reduce": _MAJORITY, "over": f"{{{{ {name} }}}}"}
        draft.wrap(place, name, {place.key: vote})


class WrapCascade(Edit):
    """Ask a cheap model several times, and the dear one only where the answers disagree.

    The node's own model is the cheap one. Self-consistency as the measure of doubt: AutoMix,
    arXiv 2310.12963; FrugalGPT, arXiv 2305.05176.
    """

    edit: Literal["wrap_cascade"] = "wrap_cascade"
    model: str = Field(description="The dear model: a name under `models`.", min_length=1)
    samples: int = Field(default=3, description="Answers of the cheap model.", ge=2, le=1000)
    agreement: float = Field(
        default=0.6, description="The share of equal answers that is enough.", gt=0, le=1
    )

    def change(self, draft: DocumentDraft) -> None:
        place = asked_once(draft, self.node)
        dear = {**_again(place.raw), "model": self.model}
        name = _sampled(draft, place, self.samples)
        vote = draft.fresh(f"{place.key}_vote")
        counted = {"call": _AGREEMENT, "with": {"values": f"{{{{ {name} }}}}"}}
        decided = {
            "branch": f"{{{{ {vote}.share >= {self.agreement} }}}}",
            "cases": {"true": {"value": f"{{{{ {vote}.value }}}}"}, "false": dear},
        }
        draft.wrap(place, name, {vote: counted, place.key: decided})


_OF_ANSWER: Final = frozenset(
    ("model", "system", "schema", "max_tokens", "temperature", "top_p", "top_k", "stop", "decode")
) | {"retry", "timeout", "budget", "default", "on_failure", "repair", "seed"}
"""Keys of a call that a revision of its answer has as well."""


def asked_once(draft: DocumentDraft, address: str) -> NodePlace:
    """A model node that makes one call, with a name. Raises: `EditError`."""
    place = draft.place(address, "model")
    for key in NOT_ONE_CALL:
        if place.raw.get(key):
            draft.fail(f"it has `{key}`", address, "such a node is not one call with one answer")
    draft.check_not_replacement(place)
    return draft.named(place, "answer")


def _needs_answer(draft: DocumentDraft, edit: InsertVerifier | InsertRevise) -> None:
    if "answer" not in names_in(edit.prompt):
        draft.fail("its prompt does not use the answer", edit.node, "write {{ answer }} in it")


def _sampled(draft: DocumentDraft, place: NodePlace, samples: int) -> str:
    """Make the node ask for `samples` answers, and return its new name. Raises: `EditError`."""
    raw: dict[str, Any] = place.raw
    if raw.get("temperature") == 0:
        hint = "`set_decoder` with a temperature first"
        draft.fail("at temperature 0 all its answers are equal", place.address, hint)
    raw["samples"] = samples
    if "default" in raw:
        raw["default"] = [raw["default"]]  # it stands for all answers
    return draft.fresh(f"{place.key}_samples")


def _again(raw: RawNode) -> RawNode:
    """The same call once more, as the body of a case."""
    return {key: value for key, value in raw.items() if key not in _AROUND}
