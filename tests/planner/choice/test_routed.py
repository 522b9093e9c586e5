from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from weft.core.errors import (
    CapabilityError,
    ModelOverloaded,
    ModelRequestError,
    ModelTimeout,
    ModelUnavailable,
    StartError,
    WeftError,
)
from weft.core.ports import Capabilities, ModelEvent, ModelRequest, Sampling, complete
from weft.core.values import Completion, Message
from weft.planner.choice import CostWeights, ModelChoice, ModelProfile, RoutedModel, StaticPredictor
from weft.testing import FakeClock, FakeModel, Reply, TokenModel

DOWN = ModelUnavailable("no route to host")
BUSY = ModelOverloaded("come back", retry_after_s=3.0)


class ByLength:
    """Long prompts are hard for the small model."""

    def losses(self, text: str) -> dict[str, float]:
        return {"small": len(text) / 100, "large": 0.2}


def ask(model: RoutedModel, text: str = "hi", **fields: Any) -> Completion:
    return FakeClock().run(complete(model, ModelRequest((Message("user", text),), **fields)))


def failing(error: WeftError | None) -> FakeModel:
    return FakeModel([Reply("fine", error=error)], model="failing")


def two(first: WeftError | None, second: WeftError | None = None) -> dict[str, FakeModel]:
    return {"first": failing(first), "second": failing(second)}


def test_each_prompt_goes_to_the_model_that_is_worth_most() -> None:
    clients = {"small": FakeModel(["s"], model="s-1"), "large": FakeModel(["l"], model="l-1")}
    model = RoutedModel(clients, predictor=ByLength())
    assert ask(model, "short").model == "s-1"
    assert ask(model, "long " * 20).model == "l-1"


def test_instructions_and_answers_are_not_what_is_judged() -> None:
    seen: list[str] = []

    class Seeing:
        def losses(self, text: str) -> dict[str, float]:
            seen.append(text)
            return {}

    model = RoutedModel({"a": failing(None)}, predictor=Seeing())
    messages = (Message("system", "Be kind."), Message("user", "Why?"), Message("assistant", "So."))
    model.choose(ModelRequest(messages))
    model.choose(ModelRequest((Message("system", "Alone."),)))
    model.choose(ModelRequest(prompt_token_ids=(1, 2)))
    assert seen == ["Why?", "Alone.", ""]


def test_weights_move_calls_to_cheaper_models() -> None:
    profiles = {
        "small": ModelProfile(loss=0.5, completion_price=1.0),
        "large": ModelProfile(loss=0.2, completion_price=10.0),
    }
    clients = {"small": FakeModel(["s"]), "large": FakeModel(["l"])}
    assert ask(RoutedModel(clients, profiles)).text == "l"
    assert ask(RoutedModel(clients, profiles, weights=CostWeights(money=0.3))).text == "l"
    assert ask(RoutedModel(clients, profiles, weights=CostWeights(money=0.4))).text == "s"


@pytest.mark.parametrize("error", [DOWN, BUSY, StartError("no memory")])
def test_a_model_that_fails_makes_way_and_everybody_can_see_it(error: WeftError) -> None:
    lines: list[str] = []
    told: list[ModelChoice] = []
    clients = two(error)
    model = RoutedModel(clients, on_choice=told.append, name="auto")

    async def main() -> Completion:
        await model.start(lines.append)
        return await complete(model, ModelRequest((Message("user", "hi"),)))

    assert FakeClock().run(main()).text == "fine"
    assert [(name, failure.error) for name, failure in told[0].failed] == [
        ("first", type(error).__name__)
    ]
    assert told[0].model == "second"
    assert lines[0].startswith("auto: first failed: ")
    assert lines[1].startswith("auto: second (")


@pytest.mark.parametrize(
    "error", [ModelRequestError("too long"), CapabilityError("no tools"), ModelTimeout("late")]
)
def test_what_a_model_refuses_is_not_tried_elsewhere(error: WeftError) -> None:
    clients = two(error)
    with pytest.raises(type(error)):
        ask(RoutedModel(clients))
    assert not clients["second"].requests


def test_an_answer_that_has_begun_is_not_begun_again_elsewhere() -> None:
    clients = {
        "first": FakeModel([Reply("one two three", break_after_tokens=1)]),
        "second": FakeModel(["fine"]),
    }
    with pytest.raises(ModelUnavailable, match="broke off"):
        ask(RoutedModel(clients))
    assert not clients["second"].requests


def test_a_prefill_alone_is_no_beginning_and_comes_once() -> None:
    clients = {
        "first": FakeModel([Reply("x", prefill_s=0.1, error=DOWN)]),
        "second": FakeModel([Reply("fine", prefill_s=0.1)]),
    }

    async def main() -> list[str]:
        model = RoutedModel(clients)
        request = ModelRequest((Message("user", "hi"),))
        return [type(event).__name__ async for event in model.generate(request)]

    assert FakeClock().run(main()) == ["Prefilled", "TextDelta", "Completion"]


def test_when_all_fail_the_error_names_them_all() -> None:
    with pytest.raises(ModelUnavailable, match=r"first: no route.*second: come back") as raised:
        ask(RoutedModel(two(DOWN, BUSY)))
    assert raised.value.retryable
    told: list[ModelChoice] = []
    with pytest.raises(ModelOverloaded) as busy:
        ask(RoutedModel(two(BUSY, BUSY), on_choice=told.append))
    assert busy.value.retry_after_s == 3.0
    assert len(told[0].failed) == 2
    assert told[0].model == "second"


def test_the_second_model_has_the_time_that_is_left() -> None:
    clients = {
        "first": FakeModel([Reply("x", first_token_s=4, error=DOWN)]),
        "second": FakeModel(["fine"]),
    }
    assert ask(RoutedModel(clients), timeout_s=10).text == "fine"
    assert clients["second"].requests[0].timeout_s == pytest.approx(6)
    slow = {"first": FakeModel([Reply("x", first_token_s=4, error=DOWN)]), "second": failing(None)}
    with pytest.raises(ModelTimeout):
        ask(RoutedModel(slow), timeout_s=3)


def test_usage_is_priced_where_the_client_does_not_know() -> None:
    profiles = {"a": ModelProfile(prompt_price=1.0, completion_price=2.0)}
    usage = ask(RoutedModel({"a": FakeModel(["one two"])}, profiles), "three words here").usage
    assert usage.money == pytest.approx((3 * 1.0 + 2 * 2.0) / 1e6)
    told = ask(RoutedModel({"a": FakeModel(["one"], money_per_token=0.5)}, profiles)).usage
    assert told.money == 1.0


def test_it_can_do_what_all_can_do() -> None:
    class Able(FakeModel):
        def __init__(self, able: Capabilities | WeftError) -> None:
            super().__init__(["x"])
            self.able = able

        async def capabilities(self) -> Capabilities:
            if isinstance(self.able, WeftError):
                raise self.able
            return self.able

    def common(*able: Capabilities | WeftError) -> Capabilities:
        clients = {f"m{index}": Able(each) for index, each in enumerate(able)}
        return FakeClock().run(RoutedModel(clients).capabilities())

    rich = Capabilities(tools=True, grammar=True, adapters=("a", "b"), max_context_tokens=100)
    poor = Capabilities(grammar=True, adapters=("b",), max_context_tokens=None)
    found = common(rich, poor, DOWN)
    assert found == Capabilities(grammar=True, adapters=("b",), max_context_tokens=100)
    with pytest.raises(ModelUnavailable):
        common(DOWN, DOWN)


def test_tokens_are_those_of_one_model() -> None:
    def tokens() -> TokenModel:
        return TokenModel(lambda _ids, _request: "fine")

    one, several = RoutedModel({"a": tokens()}), RoutedModel({"a": tokens(), "b": tokens()})
    clock = FakeClock()
    assert clock.run(one.encode("hi")) == (104, 105)
    assert clock.run(one.capabilities()).prompt_token_ids
    assert not clock.run(several.capabilities()).prompt_token_ids
    with pytest.raises(CapabilityError, match="differ"):
        clock.run(several.encode("hi"))
    with pytest.raises(CapabilityError, match="differ"):
        FakeClock().run(complete(several, ModelRequest(prompt_token_ids=(1,))))
    with pytest.raises(CapabilityError, match="does not tokenize"):
        clock.run(RoutedModel({"a": failing(None)}).decode((1,)))


def test_only_the_chosen_model_is_started_and_warmed() -> None:
    class Server(FakeModel):
        started = 0
        warmed = 0

        async def start(self, show: Callable[[str], None] | None = None) -> None:
            self.started += 1

        async def warm(self, request: ModelRequest) -> None:
            self.warmed += 1

    clients = {"small": Server(["s"]), "large": Server(["l"])}
    model = RoutedModel(clients, predictor=StaticPredictor({"small": 0.1, "large": 0.9}))

    async def main() -> None:
        request = ModelRequest((Message("user", "hi"),))
        await model.start()
        await model.warm(request)
        await complete(model, request)

    FakeClock().run(main())
    assert (clients["small"].started, clients["small"].warmed) == (1, 1)
    assert (clients["large"].started, clients["large"].warmed) == (0, 0)


def test_a_stream_without_an_end_counts_as_broken() -> None:
    class Endless(FakeModel):
        async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            return
            yield

    assert ask(RoutedModel({"a": Endless(["x"]), "b": failing(None)})).text == "fine"


def test_wrong_profiles_are_named() -> None:
    with pytest.raises(ValueError, match="at least one"):
        RoutedModel({})
    with pytest.raises(ValueError, match="smal"):
        RoutedModel({"small": failing(None)}, {"smal": ModelProfile()})
    for wrong in ({"latency_s": -1.0}, {"size": float("nan")}, {"loss": float("inf")}):
        with pytest.raises(ValueError, match="must"):
            ModelProfile(**wrong)
    with pytest.raises(ValueError, match="money"):
        CostWeights(money=-1)


def test_the_length_of_the_answer_counts_for_the_price() -> None:
    profiles = {
        "chatty": ModelProfile(loss=0.0, prompt_price=1.0, completion_price=9.0),
        "reader": ModelProfile(loss=0.0, prompt_price=9.0, completion_price=1.0),
    }
    model = RoutedModel(
        {"chatty": failing(None), "reader": failing(None)}, profiles, weights=CostWeights(money=1)
    )

    def best(characters: int, answer: int) -> str:
        message = Message("user", "x" * characters)
        sampling = Sampling(max_tokens=answer)
        return model.choose(ModelRequest((message,), sampling=sampling))[0].model

    assert best(10_000, 10) == "chatty"
    assert best(10, 10_000) == "reader"
