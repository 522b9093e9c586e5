"""MIRAGE: decompose, retrieval chains side by side, checks across chains, answer with provenance.

After MIRAGE (arXiv 2508.18260). Knows no server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.core.errors import BuildError, ReasoningError
from weft.core.ports import ModelClient
from weft.engine import Inputs, NodeContext, Work
from weft.reasoning.evidence import Cited, Evidence, check_markers
from weft.reasoning.mirage.chain import MOST_NAMED, Chain, Limits, facts_of
from weft.reasoning.mirage.graph import KnowledgeGraph
from weft.reasoning.mirage.prompts import (
    Finding,
    answer_messages,
    decompose_messages,
    mark,
    verify_messages,
)
from weft.reasoning.mirage.source import GraphSource, check_source, graph_of
from weft.reasoning.mirage.triples import Triple
from weft.reasoning.mirage.verdict import believed
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.reading import read_points
from weft.reasoning.settings import read_settings
from weft.reasoning.thought import Thought
from weft.reasoning.thread.asking import Asking, Job, stopping

_DEFAULTS: Final = {
    "graph": None,
    "chains": 4,
    "steps": 5,
    "step_tokens": 200,
    "hops": 3,
    "facts": 12,
}
_QUESTION_CHARS: Final = 300
_TOKENS_PER_QUESTION: Final = 40
_TOKENS_PER_VERDICT: Final = 32
_FACTS: Final = 40
"""How many facts the last prompts list."""


class MirageStrategy:
    """`make_strategy("mirage", ...)`.

    Settings: `graph`, a file of triples or a list of them (beside it, the question's documents are
    read as triples too); `chains`, how many sub-questions at most; `steps` of a chain, of at most
    `step_tokens`; `hops` of a connection; `facts` that a look-up tells.

    Raises: `BuildError` for settings that are none.
    """

    name = "mirage"

    def __init__(self, model: ModelClient, options: ThinkOptions) -> None:
        settings = read_settings(self.name, options.settings, _DEFAULTS)
        for setting in ("chains", "steps", "step_tokens", "hops", "facts"):
            if settings[setting] < 1:
                raise BuildError(f"mirage: {setting} must be at least 1")
        self.model = model
        self.options = options
        self.source: GraphSource = check_source(settings["graph"])
        self.chains: int = settings["chains"]
        self.steps: int = settings["steps"]
        self.step_tokens: int = settings["step_tokens"]
        self.hops: int = settings["hops"]
        self.facts: int = settings["facts"]

    def work(self, question: Question) -> Work:
        """See `Strategy.work`."""

        async def work(context: NodeContext, _: Inputs) -> Thought:
            graph = graph_of(self.source, question.documents)
            thread = await Asking.begin(context, self.model, self.options)
            return await _Inquiry(self, thread, question, graph).answer()

        return work


def make(model: ModelClient, options: ThinkOptions) -> MirageStrategy:
    """See `weft.reasoning.strategies`."""
    return MirageStrategy(model, options)


class _Inquiry:
    """The work on one question."""

    def __init__(
        self, strategy: MirageStrategy, thread: Asking, question: Question, graph: KnowledgeGraph
    ) -> None:
        self._strategy = strategy
        self._thread = thread
        self._question = question
        self._graph = graph
        self._keep = thread.kept
        self._lost: list[str] = []

    async def answer(self) -> Thought:
        """Decompose, run the chains, verify, answer."""
        if not len(self._graph):
            self._lost.append("there is no graph: no fact could be retrieved")
        parts = await self._parts()
        findings = await self._found(parts)
        kept = await self._verified(findings)
        return await self._answered(findings, kept)

    async def _parts(self) -> tuple[str, ...]:
        """The sub-questions; the question itself where the model writes none."""
        named = self._graph.named_in(self._question.text, MOST_NAMED)
        most = self._strategy.chains
        if most == 1 or not len(self._graph):
            return (self._question.text,)
        said = await self._thread.ask(
            "decompose",
            decompose_messages(self._question, most, named),
            max_tokens=most * _TOKENS_PER_QUESTION,
            keep=self._keep,
            lead="1.",
            amend=stopping(f"\n{most + 1}."),
        )
        read = read_points(said.text, most=most, chars=_QUESTION_CHARS)
        if read.left_out:
            self._lost.append(f"{read.left_out} sub-questions were left out")
        return read.points or (self._question.text,)

    async def _found(self, parts: Sequence[str]) -> list[Finding]:
        """What the chains come to, in the order of `parts`."""
        spendable = self._thread.tokens_left - self._keep
        share = spendable // (len(parts) * self._strategy.steps)
        limits = Limits(
            self._strategy.steps,
            max(1, min(self._strategy.step_tokens, share)),
            self._strategy.hops,
            self._strategy.facts,
            self._keep,
        )
        jobs: list[tuple[str, Job[Finding]]] = [
            (f"chain{number}", Chain(self._graph, self._question, part, limits).run)
            for number, part in enumerate(parts, 1)
        ]
        found = await self._thread.fork("chains", jobs, role="chain")
        return [finding or Finding(part, "") for part, finding in zip(parts, found, strict=True)]

    async def _verified(self, findings: Sequence[Finding]) -> list[Finding]:
        """Those of `findings` that are believed."""
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

    async def _answered(self, findings: Sequence[Finding], kept: Sequence[Finding]) -> Thought:
        facts = self._facts(kept)
        said = await self._thread.ask(
            "answer",
            answer_messages(self._question, kept, facts),
            max_tokens=self._strategy.options.answer_tokens,
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
        cited = Cited(answer) if self._question.schema else check_markers(answer, known, r"T\d+")
        proof = {mark(number) for finding in kept for number in finding.cited}
        made_of = tuple(piece for piece in known if piece.marker in proof) or known
        why += cited.remarks(known, "the facts that it was made of are listed")
        tree, counts = self._thread.finish(cited.answer, why)
        return Thought(
            cited.answer,
            tree=tree,
            counts=counts,
            fidelity="approximate" if self._lost else "exact",
            lost="; ".join(self._lost),
            why=why,
            evidence=cited.evidence or made_of,
            cut=cut,
        )

    def _facts(self, findings: Sequence[Finding]) -> dict[int, Triple]:
        return {number: self._graph.triple(number) for number in facts_of(findings, _FACTS)}


def _evidence(number: int, fact: Triple) -> Evidence:
    return Evidence(mark(number), fact.document, fact.start, fact.end, fact.text)
