"""Replicas that break, refuse, stall and come back; callers that leave; time that runs out."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tests.serving.fleet.fleet_calls import LONG, answer, asking, events_of, play, settle
from tests.serving.fleet.server import ABLE, CONTEXT, Fate, Server
from weft.core.errors import (
    ModelError,
    ModelOverloaded,
    ModelRequestError,
    ModelTimeout,
    ModelUnavailable,
)
from weft.core.ports import (
    Capabilities,
    Delta,
    ModelRequest,
    Prefilled,
    Sampling,
    TextDelta,
    complete,
)
from weft.core.values import Completion
from weft.serving.fleet import Fleet, FleetOptions, FleetStats
from weft.testing import FakeClock, FakeModel, Reply


def breaks(after_tokens: int) -> Server:
    """A server whose first stream breaks."""
    fates = iter([Fate(break_after_tokens=after_tokens)])
    return Server(lambda _: next(fates, Fate()))


def undisturbed(request: ModelRequest) -> Completion:
    return FakeClock().run(answer(Server(), request))


class TestResuming:
    def resumed(
        self, request: ModelRequest, after: int = 5, **able: Any
    ) -> tuple[Completion, ModelRequest, FleetStats]:
        """The answer, what the second replica was asked, and the counts."""
        servers = [breaks(after), Server(able=replace(ABLE, **able))]

        async def body(fleet: Fleet, clock: FakeClock) -> tuple[Completion, FleetStats]:
            return await answer(fleet, request), fleet.stats()

        given, stats = play(body, servers)
        return given, servers[1].requests[0], stats

    def test_the_tokens_so_far_become_the_prompt(self, caplog: pytest.LogCaptureFixture) -> None:
        request = asking("river", 30)
        right = undisturbed(request)
        with caplog.at_level("WARNING", "weft"):
            given, second, stats = self.resumed(request)
        assert "is put aside until it answers again" in caplog.text
        length = len(second.prompt_token_ids) - right.usage.prompt_tokens
        assert 0 < length <= 5
        assert second.prompt_token_ids[-length:] == right.token_ids[:length]
        assert not second.messages
        assert second.sampling.max_tokens == 30 - length
        assert given == replace(right, usage=replace(right.usage, requests=2))
        assert (stats.resumed, stats.moved, stats.sent) == (1, 1, 2)

    def test_without_a_limit_the_rest_of_the_context_is_asked_for(self) -> None:
        request = asking("river", None)
        given, second, _ = self.resumed(request)
        assert second.sampling.max_tokens == CONTEXT - len(second.prompt_token_ids)
        assert given.text == undisturbed(request).text

    def test_a_seed_moves_on(self) -> None:
        sampling = Sampling(max_tokens=30, temperature=0.7, seed=2**63 - 2)
        request = asking("river", sampling=sampling)
        _, second, _ = self.resumed(request)
        length = len(second.prompt_token_ids) - undisturbed(request).usage.prompt_tokens
        assert second.sampling.seed == length - 2

    def test_an_answer_cut_after_its_last_token_needs_nobody(self) -> None:
        """The server breaks between the last token and the end of the stream."""

        class Cut(Server):
            async def generate(self, request: ModelRequest) -> Any:
                async with aclosing(super().generate(request)) as stream:
                    async for event in stream:
                        if isinstance(event, Completion):
                            raise ModelUnavailable("cut")
                        yield event

        request = asking("river", 6)
        spare = Server()

        async def body(fleet: Fleet, clock: FakeClock) -> Completion:
            return await answer(fleet, request)

        given, right = play(body, [Cut(), spare]), undisturbed(request)
        assert given == replace(right, usage=replace(right.usage, requests=2))
        assert not spare.requests

    def test_an_answer_cut_after_its_stop_token_needs_nobody(self) -> None:
        """Its last tokens came at once, and the stream broke before it said that this was all."""
        whole = undisturbed(asking("river", 30))
        stop = next(
            token
            for n, token in enumerate(whole.token_ids)
            if n and token not in whole.token_ids[:n]
        )
        sampling = Sampling(max_tokens=30, stop_token_ids=(stop,))
        request = asking("river", sampling=sampling)
        right = undisturbed(request)
        spare = Server()

        async def body(fleet: Fleet, clock: FakeClock) -> Completion:
            return await answer(fleet, request)

        fate = Fate(merge=len(right.token_ids), break_at_stop=True)
        given = play(body, [Server(lambda _: fate), spare])
        assert given == replace(right, usage=replace(right.usage, requests=2))
        assert (given.stop, given.finish_reason) == (stop, "stop")
        assert not spare.requests

    @pytest.mark.parametrize(
        "able", [{"token_ids": False}, {"prompt_token_ids": False}, {"max_context_tokens": None}]
    )
    def test_a_replica_that_cannot_go_on_repeats_a_greedy_answer(
        self, able: dict[str, Any]
    ) -> None:
        tokens = None if "max_context_tokens" in able else 30
        request = asking("river", tokens)
        given, second, stats = self.resumed(request, **able)
        assert second.messages == request.messages
        assert given.text == undisturbed(request).text
        assert (stats.resumed, stats.repeated) == (0, 1)

    @pytest.mark.parametrize(
        "fields", [{"logprobs": True}, {"schema": {"type": "string"}}, {"extra": {"min_tokens": 3}}]
    )
    def test_what_depends_on_more_than_the_tokens_is_repeated(self, fields: dict[str, Any]) -> None:
        request = asking("river", 30, **fields)
        given, second, stats = self.resumed(request)
        assert second.messages
        assert (given.text, given.logprobs) == (
            undisturbed(request).text,
            undisturbed(request).logprobs,
        )
        assert stats.repeated == 1

    def test_a_sampled_answer_that_cannot_go_on_is_an_error(self) -> None:
        sampling = Sampling(max_tokens=30, temperature=0.7)
        for fields in ({"logprobs": True}, {"schema": {"type": "string"}}):
            with pytest.raises(ModelUnavailable, match="broke off"):
                self.resumed(asking("river", sampling=sampling, **fields))
        with pytest.raises(ModelUnavailable, match="broke off"):
            self.resumed(asking("river", sampling=sampling), token_ids=False)

    def test_whatever_has_delivered_nothing_is_sent_again(self) -> None:
        request = asking("river", sampling=Sampling(max_tokens=30, temperature=0.7), logprobs=True)
        given, second, stats = self.resumed(request, after=0)
        assert second.messages
        assert given.text
        assert (stats.repeated, stats.resumed, stats.moved) == (0, 0, 1)

    def test_a_repeated_answer_that_differs_is_an_error(self) -> None:
        models = [
            FakeModel([Reply("one two three", break_after_tokens=2), "probe"]),
            FakeModel(["one 2 three"]),
        ]

        async def main() -> None:
            async with aclosing(Fleet(models, FleetOptions(failover=9))) as fleet:
                await complete(fleet, asking())

        with pytest.raises(ModelUnavailable, match="differs from what was delivered"):
            FakeClock().run(main())
        assert not models[1].running

    def test_prefill_is_told_once(self) -> None:
        async def body(fleet: Fleet, clock: FakeClock) -> int:
            events = await events_of(fleet, asking("river", 30))
            return sum(isinstance(event, Prefilled) for event in events)

        assert play(body, [breaks(4), breaks(4), Server()]) == 1


class TestFailover:
    def test_the_last_error_is_raised_after_so_many_moves(self) -> None:
        servers = [Server(lambda _: Fate(refuse=True)) for _ in range(2)]

        async def body(fleet: Fleet, clock: FakeClock) -> FleetStats:
            with pytest.raises(ModelUnavailable, match="refused"):
                await answer(fleet, asking())
            return fleet.stats()

        assert play(body, servers, failover=3).sent == 4

    def test_without_failover_nothing_is_put_aside(self) -> None:
        servers = [Server(lambda _: Fate(refuse=True)), Server()]

        async def body(fleet: Fleet, clock: FakeClock) -> None:
            for _ in range(2):
                with pytest.raises(ModelUnavailable, match="refused"):
                    await answer(fleet, asking())
                await answer(fleet, asking())

        play(body, servers, failover=0, affinity=False)
        assert [server.probes for server in servers] == [0, 0]

    def test_a_refused_request_is_not_sent_again(self) -> None:
        def refuse(_: ModelRequest) -> Fate:
            raise ModelRequestError("too long")

        servers = [Server(refuse), Server(refuse)]

        async def body(fleet: Fleet, clock: FakeClock) -> FleetStats:
            with pytest.raises(ModelRequestError, match="too long"):
                await answer(fleet, asking())
            return fleet.stats()

        assert play(body, servers).sent == 1

    def test_a_broken_replica_is_looked_at_ever_more_seldom_and_used_again(self) -> None:
        servers = [Server(), Server()]

        async def body(fleet: Fleet, clock: FakeClock) -> None:
            servers[0].kill()
            await answer(fleet, asking("a"))
            await clock.sleep(100)
            servers[0].down = False
            await clock.sleep(16)
            await answer(fleet, asking("b"))

        looks: list[float] = []
        generate = servers[0].generate

        def seen(request: ModelRequest) -> Any:
            if request.priority == 10**9:
                looks.append(asyncio.get_running_loop().time())
            return generate(request)

        servers[0].generate = seen  # type: ignore[method-assign]
        play(body, servers, affinity=False, backoff_s=1, longest_backoff_s=10)
        assert looks[0] == 0
        gaps = [after - before for before, after in pairwise(looks)]
        for number, gap in enumerate(gaps):
            least = min(2**number, 10)
            assert least <= gap <= least * 1.5
        assert [r.messages[0].content for r in servers[0].requests] == ["b"]

    def test_waiters_for_a_dead_replica_move(self) -> None:
        servers = [Server(), Server()]

        async def body(fleet: Fleet, clock: FakeClock) -> None:
            tasks = [
                asyncio.create_task(answer(fleet, asking(str(n), 50, cache_prefix="t")))
                for n in range(6)
            ]
            await clock.sleep(0.1)
            servers[0].kill()
            await asyncio.wait(tasks)
            assert all(task.result().text for task in tasks)

        play(body, servers, in_flight=2)
        assert len(servers[1].requests) == 6

    def test_when_all_are_down_calls_wait_for_one_to_come_back(self) -> None:
        server = Server(down=True)

        async def body(fleet: Fleet, clock: FakeClock) -> float:
            task = asyncio.create_task(answer(fleet, asking()))
            await clock.sleep(25)
            assert not task.done()
            server.down = False
            await task
            return clock.now()

        assert 25 < play(body, [server], failover=1) < 25 + 30 * 1.5 + 1

    def test_but_not_for_ever_and_then_at_once(self) -> None:
        servers = [Server(down=True), Server(down=True)]

        async def body(fleet: Fleet, clock: FakeClock) -> None:
            waiting = [asyncio.create_task(answer(fleet, asking(str(n)))) for n in range(3)]
            await asyncio.wait(waiting)
            assert clock.now() == pytest.approx(40, abs=1)
            for task in waiting:
                with pytest.raises(ModelUnavailable, match=r"replica 0 .*; replica 1 .*down"):
                    task.result()
            with pytest.raises(ModelUnavailable, match="no replica answered for 40 s"):
                await answer(fleet, asking())
            assert clock.now() == pytest.approx(40, abs=1)
            servers[1].down = False
            await clock.sleep(50)
            assert (await answer(fleet, asking())).text

        play(body, servers, outage_s=40)

    def test_a_replica_that_raises_anything_while_it_is_looked_at_does_not_answer(self) -> None:
        class Odd(Server):
            async def generate(self, request: ModelRequest) -> Any:
                if request.priority == 10**9 and self.probes == 0:
                    self.probes += 1
                    raise RuntimeError("odd")
                async for event in super().generate(request):
                    yield event

        server = Odd(lambda _: Fate(refuse=not server.probes))

        async def body(fleet: Fleet, clock: FakeClock) -> str:
            return (await answer(fleet, asking())).text

        assert play(body, [server])

    def test_a_replica_that_refuses_to_be_looked_at_answers(self) -> None:
        class Base(Server):
            """A model without a chat template refuses any message, but not token ids."""

            async def generate(self, request: ModelRequest) -> Any:
                if request.messages:
                    self.probes += 1
                    raise ModelRequestError("no chat template")
                async for event in super().generate(request):
                    yield event

        fates = iter([Fate(refuse=True)])
        server = Base(lambda _: next(fates, Fate()))
        request = ModelRequest(prompt_token_ids=(1, 2), sampling=Sampling(max_tokens=4))

        async def body(fleet: Fleet, clock: FakeClock) -> str:
            return (await answer(fleet, request)).text

        assert play(body, [server])
        assert server.probes == 1

    def test_a_stream_without_an_end_is_broken(self) -> None:
        class Short(Server):
            async def generate(self, request: ModelRequest) -> Any:
                if request.priority == 10**9:
                    raise ModelUnavailable("short")
                yield Prefilled((1, 2))

        async def body(fleet: Fleet, clock: FakeClock) -> None:
            with pytest.raises(ModelUnavailable, match=r"replica 0 .* ended too early"):
                await answer(fleet, asking())

        play(body, [Short()], failover=0)


class TestOverload:
    def test_it_is_asked_again_after_the_time_it_says(self) -> None:
        fates = iter([Fate(overloaded_s=7.0)])
        server = Server(lambda _: next(fates, Fate()))

        async def body(fleet: Fleet, clock: FakeClock) -> tuple[float, int]:
            task = asyncio.create_task(answer(fleet, asking()))
            await clock.sleep(1)
            assert (await answer(fleet, asking("later"))).text
            assert clock.now() > 7
            await task
            return clock.now(), fleet.stats().retried

        ended_s, retried = play(body, [server])
        assert 7 < ended_s < 8
        assert retried == 1

    def test_another_replica_takes_over_at_once(self) -> None:
        servers = [Server(lambda _: Fate(overloaded_s=60)), Server()]

        async def body(fleet: Fleet, clock: FakeClock) -> float:
            await answer(fleet, asking())
            return clock.now()

        assert play(body, servers) < 1

    def test_without_a_time_the_delays_double(self) -> None:
        class Busy(Server):
            async def generate(self, request: ModelRequest) -> Any:
                times.append(asyncio.get_running_loop().time())
                raise ModelOverloaded("busy")
                yield

        times: list[float] = []

        async def body(fleet: Fleet, clock: FakeClock) -> None:
            with pytest.raises(ModelOverloaded, match="busy"):
                await answer(fleet, asking())

        play(body, [Busy()], retries=4, backoff_s=1, longest_backoff_s=4)
        gaps = [after - before for before, after in pairwise(times)]
        assert len(gaps) == 4
        for gap, least in zip(gaps, (1, 2, 4, 4), strict=True):
            assert least <= gap <= least * 1.5

    def test_nothing_is_retried_where_that_is_off(self) -> None:
        async def body(fleet: Fleet, clock: FakeClock) -> None:
            with pytest.raises(ModelOverloaded) as raised:
                await answer(fleet, asking())
            assert raised.value.retry_after_s == 3

        play(body, [Server(lambda _: Fate(overloaded_s=3))], retries=0)

    def test_fewer_calls_run_after_an_overload_and_slowly_more_again(self) -> None:
        """The server bears 4; sixteen at once are refused until the bound has found that."""
        server = Server(max_running=4, token_s=0.1)

        async def body(fleet: Fleet, clock: FakeClock) -> tuple[int, float]:
            async with asyncio.TaskGroup() as group:
                for number in range(60):
                    group.create_task(complete(fleet, asking(str(number), 10)))
            return fleet.stats().retried, clock.now()

        retried, ended_s = play(body, [server], in_flight=16, retries=60, backoff_s=0.1)
        assert retried < 40
        assert ended_s < 3 * 60 / 4 * 1.1
        assert server.most_running == 4

    def test_refusals_of_one_moment_count_once(self) -> None:
        class Slow(Server):
            async def generate(self, request: ModelRequest) -> Any:
                await asyncio.sleep(0.1)
                running.append(self.running)
                if len(running) <= 8:
                    raise ModelOverloaded("busy", retry_after_s=1.0)
                async for event in super().generate(request):
                    yield event

        running: list[int] = []
        server = Slow(token_s=1.0)

        async def body(fleet: Fleet, clock: FakeClock) -> FleetStats:
            async with asyncio.TaskGroup() as group:
                for number in range(8):
                    group.create_task(complete(fleet, asking(str(number), 3)))
                await clock.sleep(1.5)
                assert server.running == 4
            return fleet.stats()

        assert play(body, [server], in_flight=8).retried == 8

    def test_a_recovered_replica_gets_its_calls_back(self) -> None:
        """After a refusal half of the calls run; each full round of answers lets one more run."""
        fates = iter([Fate()] * 7 + [Fate(overloaded_s=1.0)])
        server = Server(lambda _: next(fates, Fate()))

        async def body(fleet: Fleet, clock: FakeClock) -> None:
            async with asyncio.TaskGroup() as group:
                for number in range(200):
                    group.create_task(complete(fleet, asking(str(number), 3)))
                await clock.sleep(1.02)
                assert 4 <= server.running <= 6
                server.most_running = 0

        play(body, [server], in_flight=8)
        assert server.most_running == 8

    def test_an_overload_half_way_that_nobody_can_go_on_from_is_an_error(self) -> None:
        class Halfway(Server):
            async def generate(self, request: ModelRequest) -> Any:
                async for event in super().generate(request):
                    if isinstance(event, TextDelta) and self.tokens > 5:
                        raise ModelOverloaded("too much")
                    yield event

        sampling = Sampling(max_tokens=30, temperature=0.7)
        servers = [Halfway(), Server(able=replace(ABLE, prompt_token_ids=False))]

        async def body(fleet: Fleet, clock: FakeClock) -> None:
            with pytest.raises(ModelUnavailable, match="too much"):
                await answer(fleet, asking("river", sampling=sampling))

        play(body, servers)


class TestLeaving:
    def test_closing_the_stream_closes_the_replicas_at_once(self) -> None:
        server = Server()

        async def body(fleet: Fleet, clock: FakeClock) -> FleetStats:
            stream = fleet.generate(asking(tokens=1000))
            assert isinstance(await anext(stream), Prefilled)
            assert isinstance(await anext(stream), TextDelta)
            assert server.running == 1
            await stream.aclose()
            assert server.running == 0
            return fleet.stats()

        assert play(body, [server]).cancelled == 1

    def test_a_place_that_was_granted_to_someone_who_leaves_goes_to_the_next(self) -> None:
        """The caller is cancelled in the moment between its turn and its start."""
        server = Server()

        async def body(fleet: Fleet, clock: FakeClock) -> None:
            stream = fleet.generate(asking(tokens=1000))
            await anext(stream)
            tasks = [asyncio.create_task(answer(fleet, asking(str(n)))) for n in range(3)]
            await settle()
            closing = asyncio.create_task(stream.aclose())
            while server.running:
                await asyncio.sleep(0)
            tasks[0].cancel()
            await asyncio.wait([closing, *tasks])
            assert [task.cancelled() for task in tasks] == [True, False, False]

        play(body, [server], in_flight=1)

    def test_closing_the_fleet_ends_waiters_and_streams(self) -> None:
        server = Server()

        async def body(fleet: Fleet, clock: FakeClock) -> None:
            tasks = [asyncio.create_task(answer(fleet, asking(str(n), 999))) for n in range(3)]
            await clock.sleep(0.1)
            await fleet.aclose()
            await asyncio.wait(tasks)
            for task in tasks:
                with pytest.raises(ModelUnavailable, match="the fleet of m is closed"):
                    task.result()
            with pytest.raises(ModelUnavailable, match="closed"):
                await fleet.warm(asking(LONG))

        play(body, [server], in_flight=1)
        assert server.closed

    def test_all_replicas_are_closed_even_if_one_objects(self) -> None:
        class Stubborn(Server):
            async def aclose(self) -> None:
                raise ModelUnavailable("no")

        servers = [Server(), Stubborn()]

        async def main() -> None:
            with pytest.raises(ModelUnavailable, match="no"):
                await Fleet(servers).aclose()

        asyncio.run(main())
        assert servers[0].closed


class TestTime:
    def timed(self, server: Server, request: ModelRequest, **options: Any) -> tuple[str, float]:
        async def body(fleet: Fleet, clock: FakeClock) -> tuple[str, float]:
            try:
                await answer(fleet, request)
            except ModelError as error:
                await settle()
                assert server.running == 0
                return type(error).__name__, clock.now()
            return "answer", clock.now()

        return play(body, [server], **options)

    def test_a_stream_that_takes_too_long_is_closed(self) -> None:
        slow = Server(token_s=1.0)
        assert self.timed(slow, asking(tokens=50, timeout_s=3.5)) == ("ModelTimeout", 3.5)
        assert self.timed(Server(), asking(timeout_s=3.5))[0] == "answer"

    def test_without_time_nothing_is_sent(self) -> None:
        server = Server()
        assert self.timed(server, asking(timeout_s=0.0)) == ("ModelTimeout", 0.0)
        assert not server.requests

    def test_the_queue_counts_and_the_rest_is_passed_on(self) -> None:
        server = Server(prefill_s=2.0, token_s=0.0)

        async def body(fleet: Fleet, clock: FakeClock) -> FleetStats:
            tasks = [
                asyncio.create_task(answer(fleet, asking(str(n), timeout_s=5.0))) for n in range(4)
            ]
            await asyncio.wait(tasks)
            assert clock.now() == 5.0
            for task in tasks[2:]:
                with pytest.raises(
                    ModelTimeout, match="the answer of m was not complete after 5 s"
                ):
                    task.result()
            return fleet.stats()

        stats = play(body, [server], in_flight=1)
        assert [request.timeout_s for request in server.requests] == [5.0, 3.0, 1.0]
        assert stats.timed_out == 2

    def test_the_deadline_never_bites_in_the_callers_own_code(self) -> None:
        async def body(fleet: Fleet, clock: FakeClock) -> None:
            async with aclosing(fleet.generate(asking(tokens=50, timeout_s=1.0))) as stream:
                await anext(stream)
                await clock.sleep(9.0)
                with pytest.raises(ModelTimeout):
                    await anext(stream)
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0

        play(body, [Server()])

    def test_a_cancelled_caller_is_cancelled_even_in_the_moment_of_the_deadline(self) -> None:
        async def body(fleet: Fleet, clock: FakeClock) -> None:
            task = asyncio.create_task(answer(fleet, asking(tokens=50, timeout_s=1.0)))
            clock.call_later(1.0, task.cancel)
            await asyncio.wait([task])
            assert task.cancelled()

        play(body, [Server(token_s=5.0)])


def test_capabilities_are_what_all_replicas_have() -> None:
    one = Server(
        able=replace(
            ABLE,
            adapters=("a", "b"),
            max_context_tokens=None,
            top_logprobs=20,
            layouts=("contiguous", "combined"),
        )
    )
    two = Server(
        able=replace(
            ABLE, adapters=("b", "c"), priority=False, top_logprobs=4, layouts=("combined",)
        )
    )

    class Away(Server):
        async def capabilities(self) -> Capabilities:
            raise ModelUnavailable("away")

    async def of(*servers: Server) -> Capabilities:
        return await Fleet(servers).capabilities()

    both = replace(ABLE, adapters=("b",), priority=False, top_logprobs=4, layouts=("combined",))
    assert asyncio.run(of(one, two)) == both
    assert asyncio.run(of(one, Away(), two, Away())) == both
    with pytest.raises(ModelUnavailable, match="away"):
        asyncio.run(of(Away(), Away()))


def test_a_fleet_has_replicas_of_one_model() -> None:
    with pytest.raises(ValueError, match="of: a, b"):
        Fleet([Server(model="b"), Server(model="a")])
    with pytest.raises(ValueError, match="replicas of one model"):
        Fleet([])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("order", "random"),
        ("in_flight", 0),
        ("slack", -1),
        ("patience", float("inf")),
        ("hold_s", float("nan")),
        ("outage_s", -1.0),
    ],
)
def test_wrong_options_are_named(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        FleetOptions(**{name: value})


def test_a_plain_fleet_sends_what_it_is_given() -> None:
    server = Server()
    request = asking(LONG, priority=3)

    async def main(clock: FakeClock) -> FleetStats:
        async with aclosing(Fleet([server], FleetOptions.plain(), clock=clock)) as fleet:
            async with asyncio.TaskGroup() as group:
                for _ in range(100):
                    group.create_task(answer(fleet, request))
                await clock.sleep(0.01)
                assert server.running == 100
            return fleet.stats()

    clock = FakeClock()
    assert clock.run(main(clock)) == FleetStats(
        sent=100, received_tokens=100 * len(undisturbed(request).token_ids)
    )
    assert all(sent == request for sent in server.requests)


def test_deltas_reach_the_caller_as_they_come() -> None:
    seen: list[tuple[float, str]] = []

    async def body(fleet: Fleet, clock: FakeClock) -> None:
        def note(delta: Delta) -> None:
            if isinstance(delta, TextDelta):
                seen.append((round(clock.now(), 3), delta.text))

        await complete(fleet, asking("river", 5), note)

    play(body, [Server()])
    assert len({moment for moment, _ in seen}) == len(seen) > 2
