"""Which chains are believed: a model's verdict, within what their evidence allows. Pure."""

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
    """The places of the findings that are kept, from 0, in order.

    A chain that the verdict drops is out, unless that would leave none with evidence while there
    is some: then all that have evidence stay. A chain without an answer is always out, and when
    nothing else is left, all are kept.
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
"""How many facts the last prompts list."""


class MirageStrategy(ChatStrategy):
    """Settings: `graph`, a file or a list of triples, beside those in the question's documents.

    `chains`, how many sub-questions at most; `steps` of a chain, of at most `step_tokens`; `hops`
    of a connection; `facts` that a look-up tells.
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
    """The work on one question."""

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
        findings = await self._found(parts)
        kept = await self._verified(findings)
        return await self._answered(findings, kept)

    async def _parts(self) -> tuple[str, ...]:
        """The sub-questions; the question itself where the model writes none."""
        named = self._graph.named_in(self._question.text, MOST_NAMED)
        most: int = self._settings["chains"]
        if most == 1 or not len(self._graph):
            return (self._question.text,)
        said = await self._thread.ask(
            "decompose",
            decompose_messages(self._question, most, named),
            max_tokens=most * _TOKENS_PER_QUESTION,
            keep=self._keep,
            lead="1.",
            amend=stop_before(f"\n{most + 1}."),
        )
        read = read_points(said.text, most=most, chars=_QUESTION_CHARS)
        if read.left_out:
            self._lost.append(f"{read.left_out} sub-questions were left out")
        return read.points or (self._question.text,)

    async def _found(self, parts: Sequence[str]) -> list[ChainFinding]:
        """What the chains come to, in the order of `parts`."""
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

    async def _verified(self, findings: Sequence[ChainFinding]) -> list[ChainFinding]:
        verdict = ""
        if sum(bool(finding.answer) for finding in findings) > 1:
            said = await self._thread.ask(
                "verify",
                verify_messages(self._question, findings, self._facts(findings)),
                max_tokens=len(findings) * _TOKENS_PER_VERDICT,
                keep=self._keep,
                temperature=0.0,
            )
            verdict = said.text
        return [findings[place] for place in believed(findings, verdict)]

    async def _answered(
        self, findings: Sequence[ChainFinding], kept: Sequence[ChainFinding]
    ) -> Thought:
        facts = self._facts(kept)
        said = await self._thread.ask(
            "answer",
            answer_messages(self._question, kept, facts),
            max_tokens=self._answer_tokens,
            schema=self._question.schema,
        )
        why = f"{len(kept)} of {len(findings)} chains were believed"
        proved = sum(bool(finding.cited) for finding in kept)
        why += f", {proved} of them with facts"
        answer, cut = said.text, said.cut
        if not said.ok:
            cut = False
            answer = next((finding.answer for finding in kept if finding.answer), "")
            if not answer:
                raise ReasoningError(f"there is no answer: {said.reason}")
            why += f"; the answer is a chain's: {said.reason or 'nothing else was written'}"
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
