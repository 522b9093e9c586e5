"""What a proposer of documents may see and ask: runs on training cases, and a model.

A proposer is a `weft.optimisation.candidates.Proposer`. One for documents is made with a context:

    before = context.calls
    for seen in await context.observe(state.best, context.train[:3]):
        ...  # seen.score, seen.feedback, seen.nodes
    text = await context.ask("A better prompt for ...")
    option = EditOption.of([SetPrompt(node="solve", prompt=text)], "prompt: ...", why="...")
    return Proposal([state.best.replace("solve.prompt", option)], context.calls - before)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from weft.evaluation.case import Case
from weft.optimisation.candidates import Candidate, KnobOptions
from weft.optimisation.options import baseline_of
from weft.workflow.flow.flow import AnyFlow


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """A node of one run, by its address in the document: what it was given and what it made.

    `prompt`: what a model was sent, as text; `inputs`: the values that it refers to, by name;
    `needs`: the addresses of the nodes whose values it used.
    """

    node: str
    kind: str
    prompt: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    value: Any = None
    failure: str = ""
    seconds: float = 0.0
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """A candidate on one training case. `score` is None where the metric could not say."""

    case: Case
    replicate: int
    outputs: Mapping[str, Any]
    score: float | None
    feedback: str
    nodes: tuple[ObservedNode, ...]
    """In the order in which they ended."""


class ProposalContext(Protocol):
    """Of one study. Training cases only: what a proposer has seen must not be measured on."""

    @property
    def train(self) -> Sequence[Case]:
        """The training cases."""
        ...

    @property
    def seed(self) -> int:
        """Of the study, for a proposer's own random numbers."""
        ...

    @property
    def calls(self) -> int:
        """Fresh model calls that `observe` and `ask` have made so far."""
        ...

    def flow(self, candidate: Candidate) -> AnyFlow:
        """The patched workflow. Raises: `EditError` where the edits do not fit together."""
        ...

    def allowed(self, candidate: Candidate) -> bool:
        """Whether the candidate's edits fit together and pass `weft check`."""
        ...

    def bound(self, candidate: Candidate, case: Case, replicate: int = 0) -> int:
        """The most fresh model calls that `observe` could make of this now; 0 where it has run."""
        ...

    async def observe(
        self, candidate: Candidate, cases: Sequence[Case], replicates: int = 1, first: int = 0
    ) -> Sequence[ObservedRun]:
        """Run it on training cases, replicates `first` and following; what was run before is not
        run again.
        """
        ...

    async def ask(
        self, prompt: str, *, schema: Mapping[str, Any] | None = None, attempt: int = 0
    ) -> Any:
        """The answer of the study's proposer model: a text, or a value that fits `schema`. One
        call, or two with a schema.

        An equal prompt with another `attempt` is asked anew. Raises: `ModelError` where the model
        fails, or there is none.
        """
        ...


async def observe_within(
    context: ProposalContext,
    candidate: Candidate,
    cases: Sequence[Case],
    most_calls: int,
    replicate: int = 0,
) -> list[ObservedRun]:
    """Runs on the first of `cases`, as many as `most_calls` pay for whatever each of them takes."""
    found: list[ObservedRun] = []
    begun = context.calls
    while len(found) < len(cases):
        left = most_calls - (context.calls - begun)
        group: list[Case] = []
        for case in cases[len(found) :]:
            left -= context.bound(candidate, case, replicate)
            if left < 0:
                break
            group.append(case)
        if not group:
            break
        found += await context.observe(candidate, group, 1, replicate)
    return found


def observation_calls(
    context: ProposalContext, knobs: KnobOptions, most_calls: int | None, usual: int
) -> int:
    """`most_calls`, or by default `usual`, raised to what one case of the baseline may take."""
    if most_calls is not None:
        return most_calls
    first = context.train[:1]
    return max([usual, *(context.bound(baseline_of(knobs), case) for case in first)])
