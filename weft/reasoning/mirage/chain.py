"""One retrieval chain: think, query the graph, read its facts, until there is an answer.

Steps are read as JSON or as labelled lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from weft.core.values import JsonSchema, Message
from weft.reasoning.chat.thread import ChatThread
from weft.reasoning.mirage.graph import KnowledgeGraph
from weft.reasoning.mirage.prompts import LAST, UNREADABLE, ChainFinding, chain_messages, facts_text
from weft.reasoning.parsing import object_with, read_labels
from weft.reasoning.question import Question

_TEXT: Final = {"type": "string", "maxLength": 200}
_ANSWER: Final = {"type": "string", "minLength": 1, "maxLength": 400}
_ACTIONS: Final = ("look up", "connect", "answer")
_BETWEEN: Final = re.compile(r"\||->|\u2192|\band\b(?=[^|]*$)")
_LINE_CHARS: Final = 400
_QUOTED: Final = " \t\n\"'`*<>[]()."
_NAME_CHARS: Final = 120

STEP_SCHEMA: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "thought": _TEXT,
        "action": {"type": "string", "enum": list(_ACTIONS)},
        "entity": _TEXT,
        "other": _TEXT,
        "answer": {"type": "string", "maxLength": 400},
    },
    "required": ["thought", "action", "entity", "other", "answer"],
    "additionalProperties": False,
}
"""The schema of a step. `other` is a relation to look for, or a second entity."""

LAST_SCHEMA: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "thought": _TEXT,
        "action": {"type": "string", "enum": ["answer"]},
        "answer": _ANSWER,
    },
    "required": ["thought", "action", "answer"],
    "additionalProperties": False,
}
"""The schema of a chain's last step."""


@dataclass(frozen=True, slots=True)
class RetrievalStep:
    """One step of a chain. `answer` is set for "answer", else `entity` and perhaps `other`."""

    action: Literal["look up", "connect", "answer"]
    entity: str = ""
    other: str = ""
    answer: str = ""
    thought: str = ""


def read_step(text: str) -> RetrievalStep | None:
    """The first step in `text`, or None.

    A query counts before an answer after it, which was written before the query's result.
    """
    written = object_with(("action",), text)
    if written is not None:
        return _from_json({key: str(value or "") for key, value in written.items()})
    found = read_labels(text, ("Thought", "Look up", "Connect", "Answer"))
    thought = found.get("Thought", [""])[0]
    for label, action in (("Look up", "look up"), ("Connect", "connect")):
        for names in found.get(label, []):
            line = names.partition("\n")[0][:_LINE_CHARS]
            entity, _, other = _BETWEEN.sub("|", line, count=1).partition("|")
            if action == "look up":
                entity, _, other = line.partition("|")
            if _name(entity):
                return _call(action, entity, other, thought)
    if found.get("Answer", [""])[0]:
        return RetrievalStep("answer", answer=found["Answer"][0], thought=thought)
    return None


def _from_json(written: dict[str, str]) -> RetrievalStep | None:
    thought, action = written.get("thought", ""), written["action"].casefold().replace("_", " ")
    entity, other = written.get("entity", ""), written.get("other", "")
    if action in ("look up", "connect") and _name(entity):
        return _call(action, entity, other, thought)
    answer = written.get("answer", "").strip()
    return RetrievalStep("answer", answer=answer, thought=thought) if answer else None


def _call(action: str, entity: str, other: str, thought: str) -> RetrievalStep:
    connects = action == "connect" and _name(other)
    return RetrievalStep(
        "connect" if connects else "look up", _name(entity), _name(other), thought=thought
    )


def _name(text: str) -> str:
    return " ".join(text.strip(_QUOTED).split())[:_NAME_CHARS]


MOST_NAMED: Final = 12
"""The most entities that a prompt lists because the question names them."""

_MARK: Final = re.compile(r"\bT(\d{1,9})\b")
_MISSING: Final = "The graph has nothing of that name."


@dataclass(frozen=True, slots=True)
class ChainLimits:
    """The limits of a chain: `steps` of at most `step_tokens`, paths of at most `hops` facts.

    A look-up returns at most `facts`. `keep` tokens of the budget are reserved for others.
    """

    steps: int
    step_tokens: int
    hops: int
    facts: int
    keep: int


class RetrievalChain:
    """The chain of queries that answers `part` of `question` from `graph`."""

    def __init__(
        self, graph: KnowledgeGraph, question: Question, part: str, limits: ChainLimits
    ) -> None:
        self._graph = graph
        self._question = question
        self._part = part
        self._limits = limits
        self._retrieved: dict[int, None] = {}

    async def run(self, thread: ChatThread) -> ChainFinding:
        """The chain's finding: its answer, which may be empty, and the facts it retrieved."""
        limits = self._limits
        named = self._graph.named_in(self._part, MOST_NAMED)
        messages = list(chain_messages(self._question, self._part, named, json=thread.constrains))
        answer, number = "", 0
        for number in range(1, limits.steps + 1):
            last = number == limits.steps
            if last:
                messages[-1] = Message("user", f"{messages[-1].content}\n\n{LAST}")
            reply = await thread.ask(
                f"step{number}",
                messages,
                purpose="step",
                max_tokens=limits.step_tokens,
                keep=limits.keep,
                schema=LAST_SCHEMA if last else STEP_SCHEMA,
            )
            if not reply.ok:
                break
            step = read_step(reply.text)
            if step is not None and step.action == "answer":
                answer = step.answer
                break
            if step is None and last:
                answer = reply.text
            message = UNREADABLE if step is None else self._facts_message(step)
            messages += [Message("assistant", reply.text), Message("user", message)]
        thread.returns(answer)
        return ChainFinding(self._part, answer, self._cited(answer), tuple(self._retrieved), number)

    def _facts_message(self, step: RetrievalStep) -> str:
        limits, graph = self._limits, self._graph
        entity = graph.find(step.entity)
        if entity is None:
            return _MISSING
        if step.action == "connect":
            other = graph.find(step.other)
            if other is None:
                return _MISSING
            numbers = graph.between(entity, other, hops=limits.hops, most=limits.facts)
        else:
            numbers = graph.around(entity, step.other, limits.facts)
        self._retrieved.update(dict.fromkeys(numbers))
        return facts_text({number: graph.triple(number) for number in numbers})

    def _cited(self, answer: str) -> tuple[int, ...]:
        """The facts that `answer` names and the chain retrieved."""
        named = dict.fromkeys(int(number) - 1 for number in _MARK.findall(answer))
        return tuple(number for number in named if number in self._retrieved)


def facts_of(findings: Sequence[ChainFinding], most: int) -> list[int]:
    """The facts of `findings`: cited ones first, then the other retrieved ones."""
    cited = [number for finding in findings for number in finding.cited]
    retrieved = [number for finding in findings for number in finding.retrieved]
    return list(dict.fromkeys([*cited, *retrieved]))[:most]
