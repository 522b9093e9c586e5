"""MIRAGE (arXiv 2508.18260): decomposition, parallel retrieval chains, checks, a proven answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Final

from weft.core.errors import ReasoningError
from weft.core.ports import ModelClient
from weft.reasoning.chat.strategy import ChatStrategy, Think
from weft.reasoning.chat.thread import ChatThread, Job, stop_before
from weft.reasoning.evidence import CitedAnswer, Evidence, check_markers
from weft.reasoning.mirage.chain import MOST_NAMED, ChainLimits, RetrievalChain, facts_of
from weft.reasoning.mirage.graph import KnowledgeGraph, Triple, check_source, graph_of
from weft.reasoning.mirage.prompts import (
    ChainFinding,
    answer_messages,
    decompose_messages,
    mark,
    verify_messages,
)
from weft.reasoning.options import ThinkOptions
from weft.reasoning.parsing import read_points
from weft.reasoning.question import Question
from weft.reasoning.thought import Thought

_LINE: Final = re.compile(
    r"^\W{0,8}chain ?(\d{1,3})\W{0,8}(keep|drop)\b", re.IGNORECASE | re.MULTILINE
)


def believed(findings: Sequence[ChainFinding], verdict: str) -> tuple[int, ...]:
    """The indices of the findings that are kept, from 0, in order.

    The verdict's dropped chains are out, unless no chain with evidence would remain: then all
    chains with evidence stay. Chains without an answer are out, unless no other is left.
    """
    dropped = {int(number) - 1 for number, word in _LINE.findall(verdict) if word.lower() == "drop"}
    answered = [place for place, finding in enumerate(findings) if finding.answer]
    kept = [place for place in answered if place not in dropped]
    if not any(findings[place].cited for place in kept):
        kept = [place for place in answered if findings[place].cited] or kept
    return tuple(kept or answered or range(len(findings)))


_QUESTION_CHARS: Final = 300
_TOKENS_PER_QUESTION: Final = 40
_TOKENS_PER_VERDICT: Final = 32
_FACTS: Final = 40
"""The number of facts that the last prompts list."""


class MirageStrategy(ChatStrategy):
    """Answers from a knowledge graph. Settings: `graph`, a file or a list of triples, in addition
    to those in the question's documents; `chains`, the number of sub-questions at most; `steps` of
    a chain, of at most `step_tokens`; `hops` of a connection; `facts` of a look-up.
    """

    name = "mirage"
    least: ClassVar = {"chains": 1, "steps": 1, "step_tokens": 1, "hops": 1, "facts": 1}
    defaults: ClassVar = {
        "graph": None,
        "chains": 4,
        "steps": 5,
        "step_tokens": 200,
        "hops": 3,
        "facts": 12,
    }

    def __init__(self, model: ModelClient, options: ThinkOptions) -> None:
        super().__init__(model, options)
        self._source = check_source(self.settings["graph"])

    async def prepare(self, question: Question) -> Think:
        graph = graph_of(self._source, question.documents)
        return lambda thread: _MirageRun(self, thread, question, graph).answer()


class _MirageRun:
    """MIRAGE for one question."""

    def __init__(
        self,
        strategy: MirageStrategy,
        thread: ChatThread,
        question: Question,
        graph: KnowledgeGraph,
    ) -> None:
        self._settings = strategy.settings
        self._answer_tokens = strategy.options.answer_tokens
        self._thread = thread
        self._question = question
        self._graph = graph
        self._keep = thread.kept
        self._lost: list[str] = []

    async def answer(self) -> Thought:
        if not len(self._graph):
            self._lost.append("there is no graph: no fact could be retrieved")
        parts = await self._parts()
        findings = await self._run_chains(parts)
        kept = await self._verify(findings)
        return await self._answer(findings, kept)

    async def _parts(self) -> tuple[str, ...]:
        """The sub-questions; the question itself where the model writes none."""
        named = self._graph.named_in(self._question.text, MOST_NAMED)
        most: int = self._settings["chains"]
        if most == 1 or not len(self._graph):
            return (self._question.text,)
        reply = await self._thread.ask(
            "decompose",
            decompose_messages(self._question, most, named),
            purpose="step",
            max_tokens=most * _TOKENS_PER_QUESTION,
            keep=self._keep,
            lead="1.",
            amend=stop_before(f"\n{most + 1}."),
        )
        read = read_points(reply.text, most=most, chars=_QUESTION_CHARS)
        if read.left_out:
            self._lost.append(f"{read.left_out} sub-questions were left out")
        return read.points or (self._question.text,)

    async def _run_chains(self, parts: Sequence[str]) -> list[ChainFinding]:
        """The findings of the chains, in the order of `parts`."""
        spendable = self._thread.tokens_left - self._keep
        share = spendable // (len(parts) * self._settings["steps"])
        limits = ChainLimits(
            self._settings["steps"],
            max(1, min(self._settings["step_tokens"], share)),
            self._settings["hops"],
            self._settings["facts"],
            self._keep,
        )
        jobs: list[tuple[str, Job[ChainFinding]]] = [
            (f"chain{number}", RetrievalChain(self._graph, self._question, part, limits).run)
            for number, part in enumerate(parts, 1)
        ]
        found = await self._thread.fork("chains", jobs, role="chain")
        return [
            finding or ChainFinding(part, "") for part, finding in zip(parts, found, strict=True)
        ]

    async def _verify(self, findings: Sequence[ChainFinding]) -> list[ChainFinding]:
        verdict = ""
        if sum(bool(finding.answer) for finding in findings) > 1:
            reply = await self._thread.ask(
                "verify",
                verify_messages(self._question, findings, self._facts(findings)),
                purpose="step",
                max_tokens=len(findings) * _TOKENS_PER_VERDICT,
                keep=self._keep,
                temperature=0.0,
            )
            verdict = reply.text
        return [findings[place] for place in believed(findings, verdict)]

    async def _answer(
        self, findings: Sequence[ChainFinding], kept: Sequence[ChainFinding]
    ) -> Thought:
        facts = self._facts(kept)
        reply = await self._thread.ask(
            "answer",
            answer_messages(self._question, kept, facts),
            purpose="conclusion",
            max_tokens=self._answer_tokens,
            schema=self._question.schema,
        )
        why = f"{len(kept)} of {len(findings)} chains were believed"
        proved = sum(bool(finding.cited) for finding in kept)
        why += f", {proved} of them with facts"
        answer, cut = reply.text, reply.cut
        if not reply.ok:
            cut = False
            answer = next((finding.answer for finding in kept if finding.answer), "")
            if not answer:
                raise ReasoningError(f"there is no answer: {reply.reason}", hint=reply.hint)
            why += f"; the answer is a chain's: {reply.reason or 'nothing else was written'}"
        known = tuple(_evidence(number, fact) for number, fact in facts.items())
        cited = (
            CitedAnswer(answer) if self._question.schema else check_markers(answer, known, r"T\d+")
        )
        proof = {mark(number) for finding in kept for number in finding.cited}
        made_of = tuple(piece for piece in known if piece.marker in proof) or known
        why += cited.remarks(known, "the facts that it was made of are listed")
        return self._thread.finish(
            cited.answer,
            why,
            fidelity="approximate" if self._lost else "exact",
            lost="; ".join(self._lost),
            evidence=cited.evidence or made_of,
            cut=cut,
        )

    def _facts(self, findings: Sequence[ChainFinding]) -> dict[int, Triple]:
        return {number: self._graph.triple(number) for number in facts_of(findings, _FACTS)}


def _evidence(number: int, fact: Triple) -> Evidence:
    return Evidence(mark(number), fact.document, fact.start, fact.end, fact.text)
