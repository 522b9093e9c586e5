"""Every way in which a thread can go wrong has one outcome, which is tested here by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.engine.event_stream import assert_well_formed
from tests.reasoning.protocols.protocol_trace import model_of
from tests.reasoning.runtime.random_grammar import TAGS, Wild, Wildness
from weft.core.budget import Budget
from weft.core.errors import ModelUnavailable, ReasoningError
from weft.core.events import Event, NodeLogged, NodeStarted
from weft.core.ports import ModelRequest
from weft.engine import BudgetLimit, Graph, Node, Run, RunOptions
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.runtime import GrammarStrategy
from weft.reasoning.strategy import THINK, run_thought
from weft.reasoning.thought import Thought, ThreadRecord
from weft.testing import FakeClock, FakeModel, TokenModel, TokenReply

Answers = dict[str, str | TokenReply]
FORK: Answers = {
    "<|assistant|>": "<fork>12</fork>",
    "\n<path>1:": "one</path>",
    "\n<path>2:": "two</path>",
    "]": "end",
    "Final answer: ": "at last",
}


def think(
    answers: Answers | Callable[[str], str | TokenReply],
    how: Wildness | None = None,
    *,
    question: Question | str = "q",
    run: RunOptions | None = None,
    listen: list[Event] | None = None,
    model: TokenModel | None = None,
    fields: dict[str, Any] | None = None,
    **options: Any,
) -> Thought:
    model = model or model_of(answers, TAGS, **(fields or {}))
    strategy = GrammarStrategy(Wild(how or Wildness()), model, ThinkOptions(**options))
    asked = Question(question) if isinstance(question, str) else question
    listeners = [] if listen is None else [listen.append]
    thinking = run_thought(strategy, asked, options=run or RunOptions(), listeners=listeners)
    return FakeClock().run(thinking)


def children(thought: Thought, fork: int = 0) -> tuple[ThreadRecord, ...]:
    assert thought.tree is not None
    return thought.tree.forks[fork].children


def ends(thought: Thought) -> list[tuple[str, str, str]]:
    return [(child.key, child.state.value, child.reason) for child in children(thought)]


def test_all_is_well() -> None:
    thought = think(FORK)
    assert thought.answer == "<fork>12</fork>[one</path>two</path><end/>]end"
    assert ends(thought) == [("1", "done", ""), ("2", "done", "")]


def test_the_model_ends_inside_a_child() -> None:
    thought = think({**FORK, "\n<path>1:": "one"})
    assert [child.text for child in children(thought)] == [
        "\n<path>1:one</path>",
        "\n<path>2:two</path>",
    ]
    assert "[one</path>two</path>" in thought.answer


def test_a_child_is_cut_off_at_its_length() -> None:
    thought = think({**FORK, "\n<path>1:": TokenReply("x", endless=True)}, max_tokens=20)
    assert ends(thought)[0] == ("1", "done", "cut off at its length")
    assert f"[{'x' * 20}</path>two</path>" in thought.answer


def test_an_empty_fork_is_none() -> None:
    thought = think({**FORK, "<|assistant|>": "<fork></fork>", "</fork>": "alone"})
    assert (thought.answer, thought.counts.forks) == ("<fork></fork>alone", 0)


def test_the_second_child_of_a_key_is_left_out() -> None:
    events: list[Event] = []
    thought = think({**FORK, "<|assistant|>": "<fork>1121</fork>"}, listen=events)
    assert [end[0] for end in ends(thought)] == ["1", "2"]
    assert any("keys are taken" in e.text for e in events if isinstance(e, NodeLogged))


def test_children_beyond_the_width_are_left_out_from_the_last() -> None:
    events: list[Event] = []
    thought = think({**FORK, "<|assistant|>": "<fork>1234</fork>"}, width=2, listen=events)
    assert [end[0] for end in ends(thought)] == ["1", "2"]
    said = [e.text for e in events if isinstance(e, NodeLogged)]
    assert "children left out: 3, 4: at most 2 side by side" in said


def test_a_fork_that_is_too_deep_is_refused() -> None:
    answers = {
        **FORK,
        "\n<path>1:": "<fork>12</fork>",
        "\n<path>1:<fork>12</fork>": "by myself</path>",
    }
    thought = think(answers, depth=1)
    assert thought.counts.depth == 1
    assert "by myself</path>" in children(thought)[0].text


def test_a_thread_forks_only_so_often_and_then_has_to_answer() -> None:
    def answers(text: str) -> str:
        if text.endswith("Final answer: "):
            return "enough"
        return "x</path>" if text.endswith(":") else "<fork>1</fork>"

    thought = think(answers, rounds=2)
    assert thought.counts.forks == 2
    assert thought.answer == "enough"
    assert thought.why == "it may fork no more: a thread forks at most 2 times"


@pytest.mark.parametrize("budget", range(1, 120, 3))
def test_the_budget_is_never_exceeded_and_there_is_an_answer(budget: int) -> None:
    answers = {
        **FORK,
        "\n<path>1:": TokenReply("x", endless=True),
        "]": TokenReply("y", endless=True),
        "</fork>": TokenReply("z", endless=True),
    }
    model = model_of(answers, TAGS)
    thought = think({}, model=model, budget=budget, answer_tokens=8)
    assert model.generated == thought.counts.total_tokens <= budget
    assert thought.answer == "at last"[: min(8, budget // 2)].strip() or budget < 2


def test_a_child_that_takes_too_long_is_cut_off_and_its_words_are_kept() -> None:
    slow = TokenReply("slow", endless=True, per_token_s=1.0)
    thought = think({**FORK, "\n<path>1:": slow}, Wildness(timeout_s=3.5))
    assert ends(thought)[0] == ("1", "cancelled", "no result within 3.5 s")
    assert "[slo</path>two</path>" in thought.answer
    assert thought.counts.cancelled_tokens == 3


def test_a_child_whose_model_fails_is_joined_without_words() -> None:
    down = TokenReply(error=ModelUnavailable("down"))
    thought = think({**FORK, "\n<path>1:": down})
    ((key, state, reason), other) = ends(thought)
    assert (key, state, other) == ("1", "failed", ("2", "done", ""))
    assert "down" in reason
    assert "[</path>two</path>" in thought.answer


def test_a_stream_that_breaks_is_asked_again_and_paid_for() -> None:
    replies: Iterator[str | TokenReply] = iter(
        [TokenReply("lost words", break_after_tokens=4), "kept"]
    )
    model = model_of(lambda _: next(replies))
    thought = think({}, model=model)
    assert thought.answer == "kept"
    assert thought.counts.total_tokens == model.generated == 4 + len("kept") + 1
    assert (thought.counts.cancelled_tokens, thought.counts.requests) == (4, 2)
    assert thought.counts.critical_path_tokens == 9


def test_what_was_lost_counts_against_the_next_attempt() -> None:
    broken = TokenReply("0123456789", break_after_tokens=6)
    replies: Iterator[str | TokenReply] = iter([broken, TokenReply("z", endless=True), "last"])
    model = model_of(lambda _: next(replies))
    thought = think({}, model=model, max_tokens=10)
    assert [request.sampling.max_tokens for request in model.requests] == [10, 4, 512]
    assert thought.answer == "last"


def test_there_is_no_answer_when_the_root_cannot_be_asked() -> None:
    with pytest.raises(ReasoningError, match="tokens gave no answer: ModelUnavailable: down"):
        think(lambda _: TokenReply(error=ModelUnavailable("down")))


def test_last_words_that_fail_leave_what_was_written() -> None:
    down = TokenReply(error=ModelUnavailable("down"))
    answers: Answers = {"<|assistant|>": TokenReply("x", endless=True), "Final answer: ": down}
    thought = think(answers, max_tokens=5)
    assert (thought.answer, thought.why) == ("xxxxx", "its tokens are spent")


def test_a_join_that_does_not_fit_the_window_leaves_the_parent_to_answer() -> None:
    answers = {**FORK, "\n<path>1:": "x" * 60 + "</path>", "\n<path>2:": "y" * 60 + "</path>"}
    thought = think(
        answers, Wildness(appends=False), fields={"context_tokens": 150}, answer_tokens=10
    )
    assert thought.why == "its window has no room for what its children wrote"
    assert thought.answer == "at last"


def test_children_share_what_is_left_of_the_window() -> None:
    answers = {
        **FORK,
        "\n<path>1:": TokenReply("x", endless=True),
        "\n<path>2:": TokenReply("y", endless=True),
    }
    model = model_of(answers, TAGS, context_tokens=300)
    thought = think({}, model=model, answer_tokens=40)
    one, two = (request.sampling.max_tokens for request in model.requests[1:3])
    assert one == two
    assert thought.why == ""
    assert thought.answer.endswith("]end")


def test_a_full_window_leaves_room_for_the_answer() -> None:
    def answers(text: str) -> str | TokenReply:
        return "fits" if text.endswith("Final answer: ") else TokenReply("x", endless=True)

    thought = think(answers, fields={"context_tokens": 200})
    assert (thought.answer, thought.why) == ("fits", "its window is full")


def test_a_question_longer_than_the_window_is_refused_with_a_way_out() -> None:
    with pytest.raises(ReasoningError, match="map-reduce"):
        think(FORK, question="q" * 300, fields={"context_tokens": 200})


def test_what_is_malformed_is_mended_once() -> None:
    answers = {**FORK, "<|assistant|>": "<fork>?</fork>", "!": "fine"}
    assert think(answers).answer == "<fork>?</fork>!fine"
    thought = think({**answers, "!": "<fork>?</fork>"})
    assert (thought.answer, thought.why) == ("at last", "malformed again: a question")


def test_a_model_that_only_pauses_is_made_to_answer() -> None:
    def answers(text: str) -> str:
        return "at last" if text.endswith("Final answer: ") else "<sync/>"

    thought = think(answers, rounds=1)
    assert (thought.answer, thought.why) == ("at last", "it paused too often")


def test_a_detached_child_goes_on_beside_its_parent() -> None:
    answers = {**FORK, "</fork>": "meanwhile<sync/>"}
    thought = think(answers, Wildness(detach=True), fields={"per_token_s": 1.0})
    assert thought.answer == "<fork>12</fork>meanwhile<sync/>[one</path>two</path><end/>]end"
    # The fork, the longest of both sides, and the rest of it.
    assert thought.counts.critical_path_tokens == len("<12>") + len("meanwhile<") + len("end.")


def test_detached_children_that_nobody_joins_are_cancelled_and_kept_in_the_record() -> None:
    answers = {**FORK, "</fork>": "by"}
    thought = think(answers, Wildness(detach=True), fields={"per_token_s": 1.0})
    assert thought.answer == "<fork>12</fork>by"
    assert ends(thought) == [(key, "cancelled", "nobody waits for it") for key in "12"]


def test_enough_threads_end_the_others_where_they_are() -> None:
    answers = {**FORK, "\n<path>1:": TokenReply("slowly", endless=True)}
    thought = think(answers, Wildness(enough=1), fields={"per_token_s": 1.0})
    assert ends(thought) == [
        ("1", "cancelled", "1 of 2 threads are enough"),
        ("2", "done", ""),
    ]
    assert "[slow</path>two</path>" in thought.answer


@pytest.mark.parametrize("slots", [1, 2])
def test_waiting_threads_hold_no_slot(slots: int) -> None:
    def answers(text: str) -> str:
        if text.endswith(":"):
            return "<fork>12</fork>" if text.count("<path>") < 3 else "leaf</path>"
        return "</path>" if text.endswith("]") else "<fork>12</fork>"

    run = RunOptions(max_concurrency=slots, limits={"tokens": 1})
    thought = think(answers, depth=3, run=run, max_tokens=500, rounds=1)
    assert thought.counts.depth == 3


def test_joined_parents_go_before_children_and_children_before_new_roots() -> None:
    """Over one slot of the model: what is begun is finished first."""
    model = model_of(FORK, TAGS, per_token_s=0.1)
    strategy = GrammarStrategy(Wild(), model)
    nodes = [Node(name, strategy.work(Question(name)), kind="think") for name in "abc"]  # type: ignore[arg-type]
    events: list[Event] = []
    run = Run(Graph("roots", nodes), RunOptions(limits={"tokens": 1}), listeners=[events.append])
    result = FakeClock().run(run.wait())
    assert_well_formed(events, result)
    order = [e.node for e in events if isinstance(e, NodeStarted) and "/say" in e.node]
    at = {str(node): place for place, node in enumerate(order)}
    assert at["a/fork1[0]/say1"] < at["c/say1"]
    assert at["a/say2"] < at["c/say1"]
    assert at["a/say2"] < at["b/fork1[1]/say1"]


def test_a_run_that_is_cancelled_takes_all_threads_with_it() -> None:
    model = model_of({**FORK, "\n<path>1:": TokenReply("x", endless=True)}, TAGS, per_token_s=1.0)
    run = Run(Graph("g", [Node(THINK, GrammarStrategy(Wild(), model).work(Question("q")))]))

    async def main() -> Any:
        asyncio.get_running_loop().call_later(9.5, run.cancel)
        return await run.wait()

    result = FakeClock().run(main())
    assert result.status == "cancelled"
    assert (model.running, model.cancelled) == (0, 1)
    assert result.usage.completion_tokens == model.generated


def test_a_spent_budget_of_the_run_still_leaves_an_answer() -> None:
    run = RunOptions(limit=BudgetLimit(Budget(tokens=35), on_reached="degrade"))
    thought = think({**FORK, "]": "never said"}, run=run)
    assert thought.why == "its tokens are spent"
    assert "[one</path>two</path>" in thought.answer


def test_an_answer_in_the_form_of_a_schema() -> None:
    model = model_of({"<|assistant|>": "it is 4", "The answer as JSON:\n": '{"n": 4}'})
    thought = think({}, model=model, question=Question("2 + 2?", schema={"type": "object"}))
    assert thought.answer == '{"n": 4}'


def test_a_model_that_takes_no_token_ids_is_refused_before_anything_is_asked() -> None:
    model = FakeModel(["x"])
    with pytest.raises(ReasoningError, match="fake takes no token ids"):
        FakeClock().run(run_thought(GrammarStrategy(Wild(), model), Question("q")))
    assert model.requests == []


def test_a_long_fresh_prompt_is_primed_and_a_short_one_is_not() -> None:
    def at(question: str) -> list[float]:
        begun: list[float] = []

        def script(ids: tuple[int, ...], request: ModelRequest) -> str:
            begun.append(asyncio.get_running_loop().time())
            return (
                "x</path>"
                if "<path>" in model.spell(ids)[-4:] or ":" in model.spell(ids)[-1:]
                else "e"
            )

        model = TokenModel(script, tags=TAGS, prefill_s=0.01, per_token_s=1.0)
        think({}, Wildness(first=True), model=model, question=question)
        return begun[:3]

    assert at("short") == [0.0, 0.0, 0.0]
    first, *others = at("long " * 100)
    assert first == 0.0
    assert others[0] == others[1] > 5.0
    assert others[0] < 6.0, "as soon as the prompt is computed, not when the first has ended"
