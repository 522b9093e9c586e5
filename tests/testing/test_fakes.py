from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import CapabilityError, ToolArgumentError
from weft.core.ports import ModelRequest, Sampling, TextDelta, complete
from weft.core.values import Lossless, Message, Usage
from weft.testing import FakeClock, FakeModel, FakeTools, Reply

REQUEST = ModelRequest((Message("user", "how are you"),))


def test_time_does_not_jump_past_a_thread_of_an_executor() -> None:
    """It runs until the event loop has nothing left to do but wait for it."""
    clock = FakeClock(start_s=5)
    idle = threading.Event()

    async def main() -> float:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(3600):
            working = asyncio.create_task(asyncio.to_thread(idle.wait, 60))
            loop.call_later(1, lambda: None)
            await asyncio.sleep(0)
            threading.Timer(0.05, idle.set).start()
            assert await working
        return clock.now()

    assert clock.run(main()) == 5


def test_virtual_time_jumps_over_waiting() -> None:
    clock = FakeClock(start_s=5)

    async def main() -> float:
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(3600))
            group.create_task(clock.sleep(7200))
        assert loop.time() == clock.now()
        return clock.now()

    assert clock.run(main()) == pytest.approx(5 + 7200)


def test_virtual_timeouts_fire_in_order() -> None:
    clock = FakeClock()

    async def main() -> list[str]:
        order: list[str] = []
        clock.call_later(20, lambda: order.append("timer"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await asyncio.sleep(15)
        order.append("timeout")
        await asyncio.sleep(15)
        return order

    assert clock.run(main()) == ["timeout", "timer"]


def test_time_moves_by_hand_but_never_back() -> None:
    clock = FakeClock()
    before = clock.wall()
    clock.advance(60)
    assert (clock.wall() - before).total_seconds() == 60
    with pytest.raises(ValueError, match="forward"):
        clock.advance(-1)


def test_real_events_are_still_heard_in_virtual_time() -> None:
    async def main() -> str:
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        thread = threading.Thread(target=lambda: loop.call_soon_threadsafe(done.set))
        thread.start()
        await done.wait()
        thread.join()
        return "heard"

    assert FakeClock().run(main()) == "heard"


def test_a_scripted_model_takes_virtual_time() -> None:
    clock = FakeClock()
    model = FakeModel([Reply("one two three", first_token_s=1, per_token_s=0.5)])
    answer = clock.run(complete(model, REQUEST))
    assert answer.text == "one two three"
    assert clock.now() == pytest.approx(2.5)


def test_replies_come_in_turn_and_the_last_repeats() -> None:
    model = FakeModel(["a", "b"])

    async def main() -> list[str]:
        return [(await complete(model, REQUEST)).text for _ in range(3)]

    assert asyncio.run(main()) == ["a", "b", "b"]
    assert model.requests == [REQUEST] * 3
    with pytest.raises(ValueError, match="at least one"):
        FakeModel([])


def test_a_script_may_read_the_request() -> None:
    model = FakeModel(lambda request: request.messages[0].content.upper())
    assert asyncio.run(complete(model, REQUEST)).text == "HOW ARE YOU"


@given(st.text(), st.none() | st.integers(0, 20))
def test_tokens_join_to_the_text(text: str, limit: int | None) -> None:
    request = ModelRequest(REQUEST.messages, sampling=Sampling(max_tokens=limit))
    pieces: list[str] = []

    async def main() -> str:
        def keep(delta) -> None:
            assert isinstance(delta, TextDelta)
            pieces.append(delta.text)

        return (await complete(FakeModel([text]), request, keep)).text

    answer = asyncio.run(main())
    assert "".join(pieces) == answer
    assert text.startswith(answer)
    assert limit is not None or answer == text


def test_a_scripted_model_counts_and_charges() -> None:
    model = FakeModel(["one two"], money_per_token=0.5)
    usage = asyncio.run(complete(model, REQUEST)).usage
    assert usage == Usage(3, 2, requests=1, forwards=2, money=2.5)


def test_a_scripted_model_knows_who_left_early() -> None:
    model = FakeModel([Reply("one two three", per_token_s=1)])

    async def main() -> None:
        async with aclosing(model.generate(REQUEST)) as stream:
            await anext(stream)
            assert model.running == 1
        assert (model.running, model.cancelled) == (0, 1)
        await complete(model, REQUEST)
        assert model.cancelled == 1

    FakeClock().run(main())


def test_a_scripted_model_refuses_other_decoders() -> None:
    with pytest.raises(CapabilityError):
        asyncio.run(
            complete(FakeModel(["x"]), ModelRequest(REQUEST.messages, decode=Lossless("x")))
        )


def test_fake_tools_record_what_reached_them() -> None:
    tools = FakeTools(add=lambda a, b: a + b)

    async def main() -> None:
        assert await tools.call("add", {"a": 1, "b": 2}) == 3
        with pytest.raises(ToolArgumentError):
            await tools.call("add", {"a": 1})

    asyncio.run(main())
    assert tools.calls == [("add", {"a": 1, "b": 2})]
