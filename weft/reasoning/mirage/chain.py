"""One retrieval chain: think, ask the graph, read its facts, until there is an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weft.core.values import Message
from weft.reasoning.mirage.graph import KnowledgeGraph
from weft.reasoning.mirage.prompts import LAST, UNREADABLE, Finding, chain_messages, told
from weft.reasoning.mirage.query import LAST_SCHEMA, STEP_SCHEMA, Step, read_step
from weft.reasoning.question import Question
from weft.reasoning.thread.asking import Asking

MOST_NAMED: Final = 12
"""Entities that a prompt lists because the question names them."""

_MARK: Final = re.compile(r"\bT(\d{1,9})\b")
_MISSING: Final = "The graph has nothing of that name."


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a chain may go: `steps` of at most `step_tokens`, ways of `hops` facts.

    A look-up tells `facts` at most. `keep` tokens are left for others.
    """

    steps: int
    step_tokens: int
    hops: int
    facts: int
    keep: int


class Chain:
    """The chain that answers `part` of `question` from `graph`."""

    def __init__(
        self, graph: KnowledgeGraph, question: Question, part: str, limits: Limits
    ) -> None:
        self._graph = graph
        self._question = question
        self._part = part
        self._limits = limits
        self._told: dict[int, None] = {}

    async def run(self, thread: Asking) -> Finding:
        """What it comes to. A chain that never answers has no answer, but the facts it was told."""
        limits = self._limits
        named = self._graph.named_in(self._part, MOST_NAMED)
        messages = list(chain_messages(self._question, self._part, named, json=thread.constrains))
        answer, number = "", 0
        for number in range(1, limits.steps + 1):
            last = number == limits.steps
            if last:
                messages[-1] = Message("user", f"{messages[-1].content}\n\n{LAST}")
            said = await thread.ask(
                f"step{number}",
                messages,
                max_tokens=limits.step_tokens,
                keep=limits.keep,
                schema=LAST_SCHEMA if last else STEP_SCHEMA,
            )
            if not said.ok:
                break
            step = read_step(said.text)
            if step is not None and step.action == "answer":
                answer = step.answer
                break
            if step is None and last:
                answer = said.text
            reply = UNREADABLE if step is None else self._reply(step)
            messages += [Message("assistant", said.text), Message("user", reply)]
        thread.returns(answer)
        return Finding(self._part, answer, self._cited(answer), tuple(self._told), number)

    def _reply(self, step: Step) -> str:
        """What the graph says to `step`."""
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
        self._told.update(dict.fromkeys(numbers))
        return told({number: graph.triple(number) for number in numbers})

    def _cited(self, answer: str) -> tuple[int, ...]:
        """The facts that `answer` names, those that it was not told left out."""
        named = dict.fromkeys(int(number) - 1 for number in _MARK.findall(answer))
        return tuple(number for number in named if number in self._told)


def facts_of(findings: Sequence[Finding], most: int) -> list[int]:
    """The facts that `findings` rest on: those they cite first, and then those they were told."""
    cited = [number for finding in findings for number in finding.cited]
    seen = [number for finding in findings for number in finding.told]
    return list(dict.fromkeys([*cited, *seen]))[:most]
