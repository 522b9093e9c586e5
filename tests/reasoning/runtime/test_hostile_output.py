"""Random thread trees over a model that writes anything at all: what holds in every one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.engine.event_stream import assert_well_formed
from tests.engine.virtual_run import FOR_EVER_S, WatchedClock, assert_nothing_left
from tests.profile import examples
from tests.reasoning.runtime.random_grammar import TAGS, Wild, Wildness, WithoutBars, model_of
from weft.core.errors import Failure
from weft.core.events import Event, NodeFinished, NodeLogged
from weft.engine import Graph, Node, Run, RunOptions
from weft.engine.runner.result import RunResult
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.runtime import GrammarStrategy
from weft.reasoning.strategy import THINK
from weft.reasoning.thought import Thought, ThreadFork, ThreadRecord
from weft.testing import TokenModel

FRAGMENTS = [
    "<fork>1 2</fork>",
    "<fork>1 1 2 3 4 5 6 7 8 9</fork>",
    "<fork></fork>",
    "<fork>?</fork>",
    "<fork>",
    "</fork>",
    "<path>",
    "</path>",
    "<sync/>",
    "<end/>",
    "<|end|>",
    "<|user|>",
    "words and words ",
    "e\u0301\u202e\U0001f9f5 \u4e2d",
    "<fo",
    "rk>",
    "\n",
]
wildness = st.builds(
    Wildness,
    join=st.sampled_from(["append", "splice", "replace", "new root"]),
    inherit=st.sampled_from(["full", "prompt", "none"]),
    enough=st.sampled_from([None, None, 1, 2, 50]),
    detach=st.sampled_from([False, False, True]),
    appends=st.booleans(),
    first=st.booleans(),
    timeout_s=st.sampled_from([None, None, 0.5, 5.0]),
    then_fork=st.sampled_from([False, False, True]),
)
options = st.builds(
    ThinkOptions,
    width=st.integers(1, 5),
    budget=st.one_of(st.none(), st.integers(1, 400), st.integers(400, 4000)),
    path_tokens=st.one_of(st.none(), st.integers(1, 400)),
    depth=st.integers(0, 3),
    rounds=st.integers(1, 4),
    max_tokens=st.one_of(st.integers(1, 60), st.integers(60, 300)),
    answer_tokens=st.integers(1, 40),
)
models = st.builds(
    model_of,
    seed=st.integers(0, 2**32),
    fragments=st.lists(st.sampled_from(FRAGMENTS), max_size=6).map(
        lambda some: [*FRAGMENTS[:2], FRAGMENTS[0], *some]
    ),
    special=st.booleans(),
    trouble=st.sampled_from([0.0, 0.0, 0.2, 0.6]),
    context_tokens=st.one_of(st.none(), st.integers(20, 400), st.integers(400, 2000)),
    placement=st.booleans(),
    hides_token_ids=st.booleans(),
    spells_all=st.booleans(),
)
runs = st.builds(
    RunOptions,
    max_concurrency=st.sampled_from([None, 1, 2]),
    limits=st.sampled_from([{}, {"tokens": 1}, {"tokens": 2}]),
)


def threads(record: ThreadRecord) -> Iterator[ThreadRecord]:
    yield record
    for fork in record.forks:
        for child in fork.children:
            yield from threads(child)


def think(
    model: TokenModel, grammar: Wild, options: ThinkOptions, run: RunOptions, question: str
) -> tuple[Thought | Failure, list[Event]]:
    events: list[Event] = []
    grammar.lost_by_prompt, grammar.lost_flat = "prompted", "flat"
    strategy = GrammarStrategy(grammar, model, options)
    clock = WatchedClock()
    node = Node(THINK, strategy.work(Question(question)), kind="think")
    started = Run(Graph("think", [node]), run, clock=clock, listeners=[events.append])

    async def main() -> RunResult:
        async with asyncio.timeout(FOR_EVER_S):
            result = await started.wait()
        await assert_nothing_left(clock)
        return result

    result = clock.run(main())
    assert_well_formed(events, result)
    outcome = result.outcomes[THINK]
    if isinstance(outcome.value, Thought):
        assert result.status == "succeeded", result.reasons
        return outcome.value, events
    assert outcome.failure is not None
    return outcome.failure, events


@examples(400)
@given(models, wildness, options, runs, st.text(max_size=20))
def test_whatever_a_model_writes(
    model: TokenModel, how: Wildness, caps: ThinkOptions, run: RunOptions, question: str
) -> None:
    grammar = Wild(how)
    if isinstance(model, WithoutBars):
        question = question.replace("|", "")  # that is the user's to mend
    thought, events = think(model, grammar, caps, run, question)
    assert model.running == 0
    assert model.generated <= caps.cap
    said = [event.text for event in events if isinstance(event, NodeLogged)]
    ends = [event.outcome.failure for event in events if isinstance(event, NodeFinished)]
    assert not [end for end in ends if end is not None and end.error in BUGS], ends
    for _, asked, given_ in grammar.joins:
        assert in_order(given_, asked), (given_, asked, said)
    if isinstance(thought, Failure):
        assert thought.error == "ReasoningError", thought
        told = thought.message
        assert "gave no answer: ModelUnavailable" in told or "the model's window has" in told
        return
    counts, tree = thought.counts, thought.tree
    assert tree is not None
    assert counts.total_tokens == model.generated
    assert counts.cancelled_tokens <= counts.total_tokens
    found = list(threads(tree))
    assert len(found) == counts.threads
    assert len({record.id for record in found}) == counts.threads
    assert sum(record.generated_tokens for record in found) == counts.total_tokens
    assert counts.critical_path_tokens == tree.critical_path_tokens <= counts.total_tokens
    assert caps.path_tokens is None or counts.critical_path_tokens <= caps.path_tokens
    for record in found:
        check(record, caps)
    assert counts.depth <= caps.depth
    assert tree.as_json()["id"] == "think"


BUGS = {"NodeFailed", "InternalError", "DuplicateName", "UnknownReference", "CycleError"}


def in_order(keys: tuple[str, ...], asked: tuple[str, ...]) -> bool:
    """Whether `keys` is `asked`, with some left out."""
    rest = iter(asked)
    return all(key in rest for key in keys)


def check(record: ThreadRecord, caps: ThinkOptions) -> None:
    assert record.state.ended, record
    assert len(record.forks) <= caps.rounds
    for fork in record.forks:
        # detached forks are joined together
        assert 0 < len(fork.children) <= caps.width * caps.rounds
    root = "[" not in record.id
    assert record.generated_tokens <= caps.max_tokens + (caps.answer_tokens if root else 0)


@examples(150)
@given(
    st.lists(st.sampled_from([*TAGS, "<|end|>", "<|user|>", "a", "<", "fork>"]), max_size=8),
    st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=5),
    st.booleans(),
    st.integers(0, 99),
)
def test_user_text_never_forges_a_tag(
    words: list[str], fragments: list[str], special: bool, seed: int
) -> None:
    """The same answers of the model lead to the same tree, whatever tags the question spells."""

    def tree_of(question: str) -> tuple[Any, list[tuple[int, ...]], TokenModel]:
        model = model_of(seed, fragments, special=special, trouble=0.0)
        inner = model._script
        model._script = lambda _, request: inner((), request)
        thought, _ = think(
            model, Wild(), ThinkOptions(max_tokens=30, rounds=3), RunOptions(), question
        )
        assert isinstance(thought, Thought)
        assert thought.tree is not None
        return shape(thought.tree), [r.prompt_token_ids for r in model.requests], model

    hostile, prompts, model = tree_of("".join(words))
    harmless, _, _ = tree_of("x")
    assert hostile == harmless
    first = model.spell(prompts[0])
    if special:
        ids = {model.read(tag)[0] for tag in TAGS}
        assert not ids.intersection(prompts[0])
    assert not any(tag in first for tag in TAGS)


def shape(record: ThreadRecord) -> Any:
    """The tree without its prompts."""
    return (
        record.state,
        record.reason,
        [
            [shape(child) for child in part.children] if isinstance(part, ThreadFork) else part
            for part in record.segments
        ],
    )
