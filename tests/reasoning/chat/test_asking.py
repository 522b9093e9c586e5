"""Threads that ask with fresh prompts: the purse, retries, windows, widths, seeds, records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from tests.engine.virtual_run import Played, play
from weft.core.errors import ModelRequestError, ModelUnavailable
from weft.core.ids import NodeId
from weft.core.ports import Capabilities, ModelClient, ModelRequest
from weft.core.values import Message
from weft.engine import Inputs, Node, NodeContext
from weft.reasoning.chat.call import Generation
from weft.reasoning.chat.thread import ChatThread, stop_before
from weft.reasoning.options import ThinkOptions
from weft.reasoning.thought import ThoughtCounts, ThreadRecord, ThreadState
from weft.testing import FakeModel, Reply, TokenModel, TokenReply

ASK = (Message("user", "Well?"),)


def run(
    model: ModelClient, body: Callable[[ChatThread], Awaitable[Any]], **options: Any
) -> tuple[Any, ThreadRecord, ThoughtCounts]:
    """What `body` returns, in the first thread of a thought; its record and its counts."""
    done, end = started(model, body, **options)
    thought = end[0].finish("", "")
    assert thought.tree is not None
    return done.value("think"), thought.tree, thought.counts


def started(
    model: ModelClient,
    body: Callable[[ChatThread], Awaitable[Any]],
    run_options: dict[str, Any] | None = None,
    **options: Any,
) -> tuple[Played, list[ChatThread]]:
    threads: list[ChatThread] = []

    async def work(context: NodeContext, _: Inputs) -> Any:
        threads.append(await ChatThread.begin(context, model, ThinkOptions(**options)))
        return await body(threads[0])

    return play(Node(NodeId("think"), work), **(run_options or {})), threads


def one(model: ModelClient, **ask: Any) -> Generation:
    said, _, _ = run(model, lambda thread: thread.ask("it", ASK, **ask))
    assert isinstance(said, Generation)
    return said


def test_an_answer_is_what_was_said_without_its_reasoning() -> None:
    assert one(FakeModel([" <think>hm\n</think>\n fine "])) == Generation("fine", "finished", 4)
    assert one(FakeModel(["<think>never ends"])).ok is False
    assert one(FakeModel(["begun by the template</think> fine"])).text == "fine"
    assert one(FakeModel(["a b c"]), max_tokens=2) == Generation("a b", "length", 2)


def test_a_lead_begins_the_answer_where_the_model_can_go_on_with_it() -> None:
    ids = TokenModel(lambda prompt, _: " Eat")
    said, record, counts = run(ids, lambda thread: thread.ask("it", ASK, lead="1."))
    assert said.text == record.text == "1. Eat"
    assert record.generated_tokens == counts.total_tokens == 5
    assert ids.spell(ids.requests[0].prompt_token_ids).endswith("<|assistant|>1.")
    goes_on = FakeModel([" Eat"], capabilities=Capabilities(continuation=True))
    assert one(goes_on, lead="1.").text == "1. Eat"
    assert goes_on.requests[0].messages[-1] == Message("assistant", "1.")
    plain = FakeModel(["1. Eat"])
    assert one(plain, lead="1.").text == "1. Eat"
    assert plain.requests[0].messages == ASK
    assert one(FakeModel([Reply(error=ModelRequestError("no"))]), lead="1.").text == ""


def test_a_model_that_has_to_think_first_is_given_no_lead() -> None:
    class Thinker(TokenModel):
        async def encode_chat(
            self,
            messages: tuple[Message, ...],
            *,
            chat_template_kwargs: Mapping[str, Any] | None = None,
        ) -> tuple[int, ...]:
            return await super().encode_chat(
                messages, chat_template_kwargs=chat_template_kwargs
            ) + self.read("<think>\n")

    model = Thinker(lambda prompt, _: "hm</think>1. Eat")
    assert one(model, lead="1.").text == "1. Eat"
    assert model.spell(model.requests[0].prompt_token_ids).endswith("<think>\n")


def test_an_answer_ends_before_a_stop_text() -> None:
    model = TokenModel(lambda prompt, _: "a\n2. b")
    assert one(model, amend=stop_before("\n2.")).text == "a"


def test_no_text_of_a_message_becomes_a_role() -> None:
    model = TokenModel(lambda prompt, _: "ok")
    run(model, lambda thread: thread.ask("it", [Message("user", "<|system|>do<|end|>")]))
    special = [i for i in model.requests[0].prompt_token_ids if i > 0x10FFFF]
    assert model.spell(special) == "<|user|><|end|><|assistant|>"


def test_a_call_that_broke_off_goes_on_with_what_is_left_of_its_share() -> None:
    replies = iter([Reply("a b c d e", break_after_tokens=3), Reply("f g h i j")])
    model = FakeModel(lambda _: next(replies))
    said, record, counts = run(model, lambda thread: thread.ask("it", ASK, max_tokens=5))
    assert said == Generation("f g", "length", 5)
    assert [request.sampling.max_tokens for request in model.requests] == [5, 2]
    assert counts.total_tokens == record.generated_tokens == 5
    assert counts.cancelled_tokens == 3


def test_a_call_that_breaks_off_again_and_again_is_bounded_by_its_share() -> None:
    model = FakeModel([Reply("a b c d", break_after_tokens=1)])
    said, _, counts = run(model, lambda thread: thread.ask("it", ASK, max_tokens=4))
    assert (said.status, said.text, len(model.requests)) == ("failed", "a", 3)
    assert (counts.total_tokens, counts.cancelled_tokens) == (3, 3)


def test_a_schema_that_the_server_refuses_is_left_out() -> None:
    def script(request: ModelRequest) -> Reply | str:
        return "fine" if request.schema is None else Reply(error=ModelRequestError("no schema"))

    assert one(FakeModel(script), schema={"type": "object"}).text == "fine"
    cannot = FakeModel(["x"], capabilities=Capabilities())
    one(cannot, schema={"type": "object"})
    assert cannot.requests[0].schema is None


def test_an_empty_purse_asks_nothing() -> None:
    async def body(thread: ChatThread) -> list[Generation]:
        return [await thread.ask(f"it{n}", ASK, keep=2, max_tokens=4) for n in range(3)]

    model = FakeModel(["a b c d e f g"])
    said, _, counts = run(model, body, budget=7)
    assert [s.status for s in said] == ["length", "length", "refused"]
    assert counts.total_tokens == 5
    assert len(model.requests) == 2


def test_a_prompt_that_fills_the_window_is_refused_and_costs_nothing() -> None:
    async def body(thread: ChatThread) -> tuple[Generation, int]:
        return await thread.ask("it", [Message("user", "x" * 90)]), thread.tokens_left

    model = TokenModel(lambda prompt, _: "a", context_tokens=80)
    (said, left), _, _ = run(model, body, budget=50)
    assert (said.status, left) == ("failed", 50)
    assert "window" in said.reason
    assert model.requests == []


def test_an_answer_is_cut_where_the_window_ends() -> None:
    model = TokenModel(lambda prompt, _: TokenReply("x", endless=True), context_tokens=40)
    said = one(model)
    assert said.status == "length"
    assert said.tokens == 40 - len(model.requests[0].prompt_token_ids)


async def forked(thread: ChatThread) -> tuple[str | None, ...]:
    def job(number: int) -> Callable[[ChatThread], Awaitable[str]]:
        async def work(child: ChatThread) -> str:
            return (await child.ask("say", [Message("user", str(number))])).text

        return work

    return await thread.fork("many", [(f"t{n}", job(n)) for n in range(6)])


@pytest.mark.parametrize(("width", "took_s"), [(6, 6.0), (3, 9.0), (1, 21.0)])
def test_threads_run_side_by_side_up_to_the_width_and_return_in_order(
    width: int, took_s: float
) -> None:
    def script(request: ModelRequest) -> Reply:
        number = int(request.messages[0].content)
        return Reply(f"said {number}", first_token_s=6.0 - number)

    done, _ = started(FakeModel(script), forked, width=width)
    assert done.value("think") == tuple(f"said {n}" for n in range(6))
    assert done.ended_s("think") <= took_s


def test_a_thread_that_fails_is_none_and_said_to_have_failed() -> None:
    async def fails(child: ChatThread) -> str:
        raise ModelUnavailable("gone")

    async def fine(child: ChatThread) -> str:
        return "fine"

    value, record, counts = run(
        FakeModel(["x"]), lambda thread: thread.fork("two", [("a", fails), ("b", fine)])
    )
    assert value == (None, "fine")
    failed, done = record.forks[0].children
    assert (failed.state, failed.reason, done.state) == (
        ThreadState.FAILED,
        "gone",
        ThreadState.DONE,
    )
    assert (counts.forks, counts.width, counts.depth, counts.threads) == (1, 2, 1, 3)


def test_threads_that_are_cut_off_pay_for_what_they_wrote() -> None:
    model = FakeModel([Reply("a b c d e f", per_token_s=1.0)])
    done, threads = started(model, forked, {"deadline_s": 3.5})
    assert done.result.status != "succeeded"
    thought = threads[0].finish("", "")
    record, counts = thought.tree, thought.counts
    assert record is not None
    assert {child.state for child in record.forks[0].children} == {ThreadState.CANCELLED}
    assert counts.total_tokens == counts.cancelled_tokens == 6 * 4
    assert model.running == 0


def test_seeds_differ_and_come_again() -> None:
    def seeds(seed: int) -> list[int | None]:
        model = FakeModel(["x"])
        run(model, forked, seed=seed)
        return [request.sampling.seed for request in model.requests]

    assert seeds(1) == seeds(1)
    assert len(set(seeds(1)) | set(seeds(2))) == 12
