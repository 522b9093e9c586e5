"""Runs a strategy over a scripted model in virtual time; everything a run must leave in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import golden_files
from tests.engine.event_stream import assert_well_formed
from tests.engine.virtual_run import FOR_EVER_S, WatchedClock, assert_nothing_left
from weft.core.events import Event, NodeStarted
from weft.core.ids import NodeId
from weft.core.ports import Capabilities, ModelClient, ModelRequest
from weft.engine import Graph, Node, Run, RunOptions
from weft.engine.runner.result import RunResult
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.strategies import bare_strategy, make_strategy
from weft.reasoning.thought import Thought, ThreadFork, ThreadRecord
from weft.testing import FakeModel, Reply, TokenModel, TokenReply

GOLDEN = Path(__file__).parents[1] / "golden" / "reasoning"
FREE = Capabilities()
"""Of a model that cannot be held to a schema."""


@dataclass
class Told:
    """A thought that is over."""

    result: RunResult
    events: list[Event]

    @property
    def thought(self) -> Thought:
        value = self.result.outcomes[NodeId("think")].value
        assert isinstance(value, Thought), self.result.reasons
        return value

    @property
    def ended(self) -> Thought | None:
        """The thought; None where there is no answer, for a reason."""
        failure = self.result.outcomes[NodeId("think")].failure
        if failure is None:
            return self.thought
        assert failure.error == "ReasoningError"
        return None

    @property
    def error(self) -> str:
        failure = self.result.outcomes[NodeId("think")].failure
        assert failure is not None
        return str(failure)

    def started_s(self, node: str) -> float:
        started = (event for event in self.events if isinstance(event, NodeStarted))
        return next(event.at_s for event in started if event.node == f"think/{node}")


def told(
    strategy: str,
    model: ModelClient,
    question: Question | str = "What is it?",
    *,
    settings: Mapping[str, Any] | None = None,
    run: RunOptions | None = None,
    bare: bool = False,
    **options: Any,
) -> Told:
    """Think about `question`, to the end. Checks what holds of every thought.

    `bare`: an empty answer is a thought as well.
    """
    asked = Question(question) if isinstance(question, str) else question
    think = ThinkOptions(settings=settings or {}, **options)
    clock = WatchedClock()
    events: list[Event] = []
    made = (bare_strategy if bare else make_strategy)(strategy, model, think)
    node = Node(NodeId("think"), made.work(asked), kind="think")
    started = Run(
        Graph("think", [node]), run or RunOptions(), clock=clock, listeners=[events.append]
    )

    async def main() -> RunResult:
        async with asyncio.timeout(FOR_EVER_S):
            result = await started.wait()
        await assert_nothing_left(clock)
        return result

    result = clock.run(main())
    assert_well_formed(events, result)
    value = result.outcomes[NodeId("think")].value
    if isinstance(value, Thought):
        _check(value, think)
    return Told(result, events)


def _check(thought: Thought, options: ThinkOptions) -> None:
    counts, tree = thought.counts, thought.tree
    assert tree is not None
    assert counts.total_tokens <= options.cap
    assert counts.critical_path_tokens == tree.critical_path_tokens <= counts.total_tokens
    assert sum(thread.generated_tokens for thread in threads(tree)) == counts.total_tokens
    assert counts.width <= max(
        1, max((len(f.children) for t in threads(tree) for f in t.forks), default=1)
    )
    tree.as_json()


def threads(tree: ThreadRecord) -> list[ThreadRecord]:
    """`tree` and all below it, in order."""
    children = [c for part in tree.segments if isinstance(part, ThreadFork) for c in part.children]
    return [tree, *(thread for child in children for thread in threads(child))]


def scripted(
    reply: Callable[[str, str], str | Reply], *, free: bool = False, **fields: Any
) -> FakeModel:
    """A model that replies to (what the system says, what the user says)."""

    def script(request: ModelRequest) -> str | Reply:
        first = request.messages[0].content if request.messages[0].role == "system" else ""
        return reply(first, request.messages[-1].content)

    return FakeModel(script, **({"capabilities": FREE} if free else {}), **fields)


def tokens(
    reply: Callable[[str, str], str | TokenReply], *, window: int | None = None, **fields: Any
) -> TokenModel:
    """As `scripted`, over token ids: a token is a character, and the window is real."""

    def script(prompt: tuple[int, ...], _: ModelRequest) -> str | TokenReply:
        said = model.spell(prompt).split("<|end|>")
        first = said[0].removeprefix("<|system|>") if said[0].startswith("<|system|>") else ""
        return reply(first, said[-2].removeprefix("<|user|>"))

    model = TokenModel(script, context_tokens=window, **fields)
    return model


def trace(model: FakeModel, thought: Thought) -> str:
    """All that was said to the model, and what came of it."""
    parts = []
    for number, request in enumerate(model.requests, 1):
        limits = f"max_tokens {request.sampling.max_tokens}"
        limits += ", schema" if request.schema is not None else ""
        parts.append(f"#### request {number} ({limits})")
        parts += [f"## {message.role}\n{message.content}" for message in request.messages]
    return "\n".join((*parts, *_end(thought))) + "\n"


def spelt_trace(model: TokenModel, thought: Thought) -> str:
    """All prompts of a thought over token ids, special tokens spelt out, and what came of it."""
    parts = []
    for number, request in enumerate(model.requests, 1):
        parts.append(f"#### request {number} (max_tokens {request.sampling.max_tokens})")
        parts.append(model.spell(request.prompt_token_ids))
    return "\n".join((*parts, *_end(thought))) + "\n"


def _end(thought: Thought) -> list[str]:
    parts = [f"#### answer\n{thought.answer}"]
    parts += [f"[{e.marker}] {e.document} {e.start}-{e.end}: {e.text}" for e in thought.evidence]
    parts.append(f"#### why\n{thought.why}\n#### lost\n{thought.lost}\n#### threads")
    assert thought.tree is not None
    for thread in threads(thought.tree):
        parts.append(f"{thread.id} {thread.role} {thread.state.value} {thread.reason}".rstrip())
    return parts


def assert_golden(name: str, text: str) -> None:
    """`text` is that of the golden file; change a prompt, and its version and file change."""
    golden_files.assert_golden(GOLDEN / f"{name}.txt", text)
