"""The context of proposers in a study: runs on training cases and questions, each paid once."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import Any

from weft.core.errors import InputError, ModelError
from weft.core.ids import NodeId
from weft.core.ports import ModelClient
from weft.core.values import Usage
from weft.evaluation.case import Case
from weft.optimisation.budget import RunGate
from weft.optimisation.candidate_flows import CandidateFlow
from weft.optimisation.candidates import Candidate
from weft.optimisation.edits.patch import AnyFlow, with_document
from weft.optimisation.evaluator import CandidateRun, DocumentEvaluator, digest_of_run, unstored
from weft.optimisation.propose.context import ObservedNode, ObservedRun
from weft.optimisation.propose.observed import NodeObserver
from weft.optimisation.result import Spend
from weft.workflow import Flow, WorkflowDocument, loads
from weft.workflow.document.rewrite import plain_document
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.models.factory import GivenModels, Models

_ASKED = "proposer"


class StudyContext:
    """Implements `ProposalContext`.

    `model`: who is asked; None: nobody, and `ask` raises. `record`, `budget` and slots are those of
    `evaluator`: a resumed study repeats no run and no question.
    """

    def __init__(
        self,
        evaluator: DocumentEvaluator,
        train: Sequence[Case],
        seed: int,
        model: ModelClient | None,
    ) -> None:
        self._evaluator = evaluator
        self._train = tuple(train)
        self._known = {case.id for case in train}
        self._seed = seed
        self._model = model
        self._calls = 0

    @property
    def train(self) -> Sequence[Case]:
        """See `ProposalContext`."""
        return self._train

    @property
    def seed(self) -> int:
        """See `ProposalContext`."""
        return self._seed

    @property
    def calls(self) -> int:
        """See `ProposalContext`."""
        return self._calls

    def flow(self, candidate: Candidate) -> AnyFlow:
        """See `ProposalContext`. Raises: `EditError`."""
        return self._evaluator.flows.of(candidate).flow

    def allowed(self, candidate: Candidate) -> bool:
        """See `ProposalContext`."""
        return self._evaluator.flows.allowed(candidate)

    def bound(self, candidate: Candidate, case: Case, replicate: int = 0) -> int:
        """See `ProposalContext`."""
        flows = self._evaluator.flows
        made = flows.of(candidate)
        seen = self._evaluator.is_claimed(_seen(made, case, replicate))
        return 0 if seen else flows.most(made, case)

    async def observe(
        self, candidate: Candidate, cases: Sequence[Case], replicates: int = 1, first: int = 0
    ) -> Sequence[ObservedRun]:
        """See `ProposalContext`. Raises: `BudgetExceeded`, `InputError` for another case."""
        made = self._evaluator.flows.of(candidate)
        wanted = [(case, first + n) for case in cases for n in range(replicates)]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._observed(made, case, n)) for case, n in wanted]
        found = []
        for (case, n), task in zip(wanted, tasks, strict=True):
            digest, run, outputs = task.result()
            self._calls += self._evaluator.claim(digest, run.paid, run.at_s) or 0
            nodes = tuple(
                ObservedNode(**{**each, "needs": tuple(each["needs"])}) for each in run.nodes
            )
            score = run.score if run.scored else None
            feedback = run.feedback or run.reason
            found.append(ObservedRun(case, n, outputs, score, feedback, nodes))
        return found

    async def _observed(
        self, made: CandidateFlow, case: Case, replicate: int
    ) -> tuple[str, CandidateRun, Mapping[str, Any]]:
        if case.id not in self._known:
            hint = "look at cases of `context.train`"
            raise InputError(f"{case.id} is no training case: it will be measured on", hint=hint)
        evaluator = self._evaluator
        digest = _seen(made, case, replicate)
        if digest not in evaluator.record.done:
            node = evaluator.begin(digest, "observation")
            traced = await evaluator.traced(made, case, replicate, node, digest)
            results, hits = evaluator.record.results, traced.table.hits

            def prompt_of(place: NodeId) -> str:
                if place in hits and hits[place] in results:
                    return str(results[hits[place]].entry.get("prompt", ""))
                return traced.gate.prompt_of(place)

            observer = NodeObserver(
                made.flow.document,
                case.inputs,
                prompt_of,
                lambda place: traced.table.seconds.get(place, 0.0),
            )
            nodes = [asdict(each) for each in observer.nodes(list(traced.events))]
            run = replace(evaluator.summary(traced), nodes=nodes)
            value = {"run": asdict(run), "outputs": traced.result.outputs}
            evaluator.record.finish(node, digest, value, unstored(traced.table))
        value = evaluator.record.done[digest]
        outputs = value["outputs"]
        return digest, CandidateRun.of(value["run"]), outputs if outputs is not None else {}

    async def ask(
        self, prompt: str, *, schema: Mapping[str, Any] | None = None, attempt: int = 0
    ) -> Any:
        """See `ProposalContext`. Raises: `ModelError`, `BudgetExceeded`."""
        text = json.dumps([prompt, schema, attempt, self._seed], sort_keys=True)
        digest = f"asked-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
        record = self._evaluator.record
        if digest not in record.done:
            node = self._evaluator.begin(digest, "question")
            value, usage = await self._asked(prompt, schema, attempt)
            record.finish(node, digest, value, usage)
        found = record.done[digest]
        self._calls += self._evaluator.claim(digest, Spend(**found["paid"]), found["at_s"]) or 0
        if found["failure"]:
            raise ModelError(found["failure"])
        return found["answer"]

    async def _asked(
        self, prompt: str, schema: Mapping[str, Any] | None, attempt: int
    ) -> tuple[dict[str, Any], Usage]:
        gate: RunGate = self._evaluator.gate(1 + (schema is not None))
        flow = _question(schema, self._seed + attempt)
        if self._model is None:
            hint = "optimise: {proposer: {model: NAME}} in the workflow, or `proposer_model`"
            raise ModelError("the study has no model that could propose anything", hint=hint)
        models = gate.models(GivenModels({_ASKED: self._model}, Models()))
        run = flow.start({"prompt": prompt}, models=models, durability="none", questions="pause")
        result = await run.wait()
        self._evaluator.check_budget()
        failure, answer = "", result.outputs.get("answer")
        if "answer" in result.missing:
            failure = result.missing["answer"]
        used = result.usage
        paid = Spend(gate.calls, used.tokens, used.money)
        at_s = self._evaluator.record.elapsed_s
        return {"answer": answer, "failure": failure, "paid": asdict(paid), "at_s": at_s}, used


def _seen(made: CandidateFlow, case: Case, replicate: int) -> str:
    return f"seen-{digest_of_run(made, case, replicate)}"


def _question(schema: Mapping[str, Any] | None, seed: int) -> AnyFlow:
    """A workflow that asks the proposer's model one question."""
    node: dict[str, Any] = {"model": _ASKED, "prompt": "{{ prompt }}", "seed": seed, "retry": 1}
    if schema is not None:
        node |= {"schema": dict(schema), "repair": 1}
    plain = _plain_question()
    raw = plain_document(plain.document) | {"nodes": {"answer": node}}
    return Flow.of(with_document(plain, WorkflowDocument.model_validate(raw)))


@cache
def _plain_question() -> Unit:
    """A question without a schema: others differ in their node, and need no text to be read."""
    document = {
        "name": "proposal",
        "inputs": {"prompt": "string"},
        "models": {_ASKED: {"use": "openai", "model": _ASKED}},
        "nodes": {"answer": {"model": _ASKED, "prompt": "{{ prompt }}"}},
        "outputs": {"answer": "{{ answer }}"},
    }
    return loads(json.dumps(document)).unit
