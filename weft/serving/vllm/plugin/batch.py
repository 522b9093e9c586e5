"""The running batch of vLLM's worker, as weft's proposer is told of it.

vLLM gives a custom proposer tokens and no names. Its runner hands over what it calls the proposer
with: so the runner is caught there. Where that does not work, the proposer does without.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Container
from typing import Any, Protocol

from weft.serving.vllm.drafting.facts import LABEL, Batch, Constraint, RowFacts
from weft.serving.vllm.drafting.memory import LONGEST_LABEL

_MOMENT = "propose_draft_token_ids"


class Told(Protocol):
    """A proposer that wants to know whose rows it drafts for."""

    batch: Batch | None


class RunnerBatch:
    """Implements `Batch` over vLLM's model runner."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._known: dict[str, tuple[Any, RowFacts]] = {}

    def rows(self) -> list[RowFacts]:
        """One for each row, in the order of the step's arrays."""
        requests = self._runner.requests
        names = self._runner.input_batch.req_ids
        self._known = {name: self._facts(name, requests[name]) for name in names}
        return [self._known[name][1] for name in names]

    def _facts(self, name: str, request: Any) -> tuple[Any, RowFacts]:
        """As in the step before, if it is the same request: schemas are long."""
        known = self._known.get(name)
        if known is not None and known[0] is request:
            return known
        return request, facts_of(name, request)

    def living(self) -> Container[str]:
        """The requests that vLLM has not ended."""
        requests: Container[str] = self._runner.requests
        return requests


def facts_of(name: str, request: Any) -> RowFacts:
    """What vLLM keeps of a request, in our words."""
    sampling = request.sampling_params
    label = ((sampling.extra_args or {}) if sampling else {}).get(LABEL, "")
    return RowFacts(
        name,
        label[:LONGEST_LABEL] if isinstance(label, str) else "",
        int(request.num_prompt_tokens),
        constraint_of(getattr(sampling, "structured_outputs", None)),
    )


def constraint_of(wanted: Any) -> Constraint | None:
    """What vLLM holds an answer to; None for nothing, and for what forces nothing worth it."""
    if wanted is None:
        return None
    if wanted.json is not None:
        plain = wanted.json if isinstance(wanted.json, str) else json.dumps(wanted.json)
        return Constraint("json", plain)
    if wanted.grammar is not None:
        return Constraint("lark", wanted.grammar)
    return None if wanted.regex is None else Constraint("regex", wanted.regex)


def catch_runner(runners: Any, proposer: type[Told]) -> None:
    """Have `runners`, a class of vLLM, tell their proposer who they are. May be called again."""
    original = getattr(runners, _MOMENT)
    if hasattr(original, "tells"):
        return

    @functools.wraps(original)
    def telling(runner: Any, *given: Any, **named: Any) -> Any:
        drafter = getattr(runner, "drafter", None)
        if isinstance(drafter, proposer) and drafter.batch is None:
            drafter.batch = RunnerBatch(runner)
        return original(runner, *given, **named)

    telling.tells = True  # type: ignore[attr-defined]
    setattr(runners, _MOMENT, telling)
