"""`Flow.stream`: typed events, the result at the end, and a run that ends with its loop."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import re
import signal
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, get_args

import pytest

import weft
import weft.events as events
from weft.errors import Cancelled, InputError, RunError
from weft.testing import FakeModel, MemoryJournal, Reply
from weft.workflow.runtime.blocking import run_blocking

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "events.md"


def writing(model: FakeModel) -> weft.Flow:
    flow = weft.Flow("write", models={"small": model})
    topic = flow.input("topic", str)
    flow.output(text=flow.model("small", f"About {topic}", name="text"))
    return flow


def slow() -> FakeModel:
    return FakeModel([Reply("one two three four", per_token_s=3600)])


def run_quietly(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `main`; fail when the event loop was told of an unhandled error."""
    complaints: list[dict[str, Any]] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: complaints.append(what))
        await main()
        gc.collect()
        await asyncio.sleep(0)

    asyncio.run(watched())
    assert complaints == []


async def settled(model: FakeModel) -> None:
    """Wait until the model's streams are closed, a few passes of the loop."""
    for _ in range(20):
        await asyncio.sleep(0)
    assert (model.running, model.cancelled) == (0, 1)


def test_events_come_in_order_with_tokens_and_the_result_at_the_end() -> None:
    async def main() -> None:
        stream = writing(FakeModel(["Tea is old."])).stream(topic="tea")
        kinds, tokens = [], []
        async for event in stream:
            assert isinstance(event, events.Event)
            kinds.append(type(event))
            if isinstance(event, events.NodeStreamed):
                tokens.append(event.text)
                assert event.node == "text"
        assert (kinds[0], kinds[-1]) == (events.RunStarted, events.RunFinished)
        assert "".join(tokens) == "Tea is old."
        assert len(tokens) == 3
        assert stream.result().outputs == {"text": "Tea is old."}
        assert [event async for event in stream] == []  # no hang, no second run

    run_quietly(main)


def test_a_context_and_waiting_without_reading() -> None:
    async def main() -> None:
        async with writing(FakeModel(["x"])).stream({"topic": "tea"}, seed=3) as stream:
            assert stream.run.id.startswith("write")
            with pytest.raises(RunError, match="has not ended"):
                stream.result()
            result = await stream.wait()
        assert result.ok
        assert stream.result() is result
        assert not stream.cancelled

    run_quietly(main)


def test_break_cancels_the_run_without_a_context() -> None:
    model = slow()

    async def main() -> None:
        stream = writing(model).stream(topic="tea")  # a name that keeps it does not matter
        async for event in stream:
            if isinstance(event, events.NodeStreamed):
                break
        await settled(model)
        assert stream.cancelled
        with pytest.raises(Cancelled, match="left before the end"):
            stream.result()

    run_quietly(main)


def test_an_exception_in_the_loop_cancels_the_run() -> None:
    model = slow()

    async def read() -> None:
        async for event in writing(model).stream(topic="tea"):
            if isinstance(event, events.NodeStreamed):
                raise ValueError("mine")

    async def main() -> None:
        with pytest.raises(ValueError, match="mine") as raised:
            await read()
        await settled(model)
        assert raised.tb is not None  # alive until here, with its frames

    run_quietly(main)


def test_cancelling_the_reader_cancels_the_run() -> None:
    model = slow()

    async def read() -> None:
        async for _ in writing(model).stream(topic="tea"):
            pass

    async def main() -> None:
        reader = asyncio.create_task(read())
        while not model.running:
            await asyncio.sleep(0)
        reader.cancel()
        await asyncio.wait((reader,))
        assert reader.cancelled()
        await settled(model)

    run_quietly(main)


def test_cancelling_a_caller_that_waits_cancels_the_run() -> None:
    model = slow()

    async def main() -> None:
        stream = writing(model).stream(topic="tea")
        waiting = asyncio.create_task(stream.wait())
        while not model.running:
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait((waiting,))
        assert (model.running, model.cancelled) == (0, 1)

    run_quietly(main)


def test_the_end_of_a_context_waits_until_everything_is_released() -> None:
    model, journal = slow(), MemoryJournal()

    async def main() -> None:
        async with writing(model).stream(topic="tea", journal=journal) as stream:
            async for event in stream:
                if isinstance(event, events.NodeStreamed):
                    break
        assert (model.running, model.cancelled) == (0, 1)
        journal.claim(stream.run.id).release()  # no one else holds the run

    run_quietly(main)


@pytest.mark.parametrize("begun", [False, True])
def test_a_stream_that_nobody_reads_can_be_closed(begun: bool) -> None:
    journal = MemoryJournal()

    async def main() -> None:
        stream = writing(slow()).stream(topic="tea", journal=journal)
        if begun:
            async with stream:
                pass
            journal.claim(stream.run.id).release()
        await stream.aclose()
        await stream.aclose()
        assert len(journal.runs()) == begun
        assert stream.cancelled is begun

    run_quietly(main)


def test_questions_are_answered_from_the_stream() -> None:
    flow = weft.Flow("approve")
    flow.output(sure=flow.ask("Publish?", bool, name="sure"))

    async def main() -> None:
        async with flow.stream(journal=MemoryJournal()) as stream:
            async for event in stream:
                if isinstance(event, events.HumanAsked):
                    stream.run.answer(event.node, True)
        assert stream.result().outputs == {"sure": True}

    run_quietly(main)


def test_a_resumed_run_is_a_stream_too() -> None:
    journal = MemoryJournal()
    model = FakeModel([Reply("one two", per_token_s=3600), "done"])
    flow = writing(model)

    async def main() -> None:
        async with flow.stream(topic="tea", journal=journal, run="mine") as first:
            async for event in first:
                if isinstance(event, events.NodeStreamed):
                    first.run.pause("later")
        resumed = weft.RunStream(
            lambda listener: flow.resume("mine", journal=journal, listeners=[listener])
        )
        seen = [type(event) async for event in resumed]
        assert seen[0] is events.RunResumed
        assert resumed.result().outputs == {"text": "done"}

    run_quietly(main)


def test_wrong_inputs_are_an_error_of_the_first_event() -> None:
    async def main() -> None:
        stream = writing(FakeModel(["x"])).stream(topik="tea")
        with pytest.raises(InputError, match="topik"):
            async for _ in stream:
                pass
        with pytest.raises(RunError, match="has not begun"):
            _ = stream.run

    run_quietly(main)


def test_other_listeners_get_the_events_as_well() -> None:
    heard: list[events.Event] = []

    async def main() -> None:
        stream = writing(FakeModel(["x"])).stream(topic="tea", listeners=[heard.append])
        assert [event async for event in stream] == heard

    run_quietly(main)


def test_the_documented_list_has_every_event_and_all_are_public() -> None:
    listed = re.findall(r"^## (\w+)$", REFERENCE.read_text("utf-8"), re.MULTILINE)
    classes = [kind.__name__ for kind in get_args(events.Event)]
    assert listed == [*classes, "NodeInfo", "Outcome"]
    assert set(listed) <= set(events.__all__)


# -- `run_sync` inside a running loop --------------------------------------------------------------


def test_run_sync_inside_a_running_loop_runs_on_a_thread() -> None:
    threads = []
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")

    async def where() -> str:
        threads.append(threading.current_thread())
        return variable.get()

    flow = weft.Flow("where")
    flow.output(found=flow.call(where))

    async def cell() -> weft.FlowResult:
        variable.set("of the cell")
        return flow.run_sync()

    assert asyncio.run(cell()).outputs == {"found": "of the cell"}
    assert threads[0] is not threading.main_thread()
    assert not threads[0].is_alive()
    assert flow.run_sync().status == "failed"  # outside of a loop: here, without the variable
    assert threads[1] is threading.main_thread()


def test_ask_sync_and_think_sync_work_in_a_running_loop() -> None:
    async def cell() -> None:
        thought = weft.think_sync("why?", model=FakeModel(["\\boxed{4}"]), strategy="sample")
        assert thought.answer == "4"
        answer = weft.ask_sync("why?", model=FakeModel(["Answer: 5"]), agent="react")
        assert "5" in str(answer.value)
        with pytest.raises(InputError):
            writing(FakeModel(["x"])).run_sync(topik=1)

    asyncio.run(cell())


def test_ctrl_c_while_the_thread_of_a_cell_starts_cancels_its_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, ended = threading.Event(), []

    class Interrupted(threading.Thread):
        def start(self) -> None:
            super().start()
            begun.wait(60)
            raise KeyboardInterrupt

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def cell() -> None:
        with pytest.raises(KeyboardInterrupt):
            run_blocking(work)

    monkeypatch.setattr("weft.workflow.runtime.blocking.Thread", Interrupted)
    asyncio.run(cell())
    assert ended == [True]


def test_ctrl_c_in_a_cell_cancels_the_run_on_its_thread() -> None:
    model = slow()

    def interrupt(event: events.Event) -> None:
        if isinstance(event, events.NodeStreamed):
            main = threading.main_thread().ident
            assert main is not None
            signal.pthread_kill(main, signal.SIGINT)

    async def cell() -> None:
        loop_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                writing(model).run_sync(topic="tea", listeners=[interrupt])
        finally:
            signal.signal(signal.SIGINT, loop_handler)
        assert (model.running, model.cancelled) == (0, 1)

    asyncio.run(cell())
