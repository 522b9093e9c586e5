"""What travels through the bridge, how calls end when workers are lost, and cancellation."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import weft
from tests.cluster import far_tools
from tests.cluster.fake_workers import FakeBridge, FakeWorker, FakeWorkers
from tests.cluster.tasks import all_of
from weft.agents.tools import Tool, Toolbox, tool, tool_logs
from weft.cluster.dispatch import MAX_BATCH, MAX_SENDINGS
from weft.cluster.link import BridgeLink
from weft.cluster.process import BRIDGES
from weft.cluster.ray_workers import RayWorkers
from weft.cluster.settings import Pool, Ray
from weft.cluster.tools import RayTools
from weft.cluster.workers import ToolWorker
from weft.core.call_context import keyed
from weft.core.errors import (
    ClusterError,
    EffectUnknown,
    NotDone,
    PlacementError,
    ToolRaised,
    WeftError,
    WorkerLost,
)

Case = Callable[[RayTools, FakeBridge], Awaitable[Any]]


def run(
    folder: Path,
    case: Case,
    *functions: Tool[..., Any],
    workers: FakeWorkers | None = None,
    **ray: Any,
) -> Any:
    async def main() -> Any:
        bridge = FakeBridge(workers)
        runner = RayTools(
            Toolbox(*functions), Ray(content=folder / "content", **ray), bridge.connect
        )
        for function in functions:
            runner.place(function)
        try:
            async with asyncio.timeout(60):
                return await case(runner, bridge)
        finally:
            await runner.aclose()
            await bridge.aclose()

    return asyncio.run(main())


def lines(file: Path) -> list[str]:
    return file.read_text("utf-8").splitlines() if file.exists() else []


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.005)


def test_a_step_travels_in_few_batches_over_all_workers(tmp_path: Path) -> None:
    async def case(tools: RayTools, bridge: FakeBridge) -> list[int]:
        call = tools.bound("square")
        found = await all_of(*(call({"n": n}) for n in range(1_000)))
        sizes = [size for worker in bridge.workers.started for size in worker.batches]
        assert sum(sizes) == 1_000
        assert max(sizes) <= MAX_BATCH
        assert len(sizes) <= 6
        assert all(worker.batches for worker in bridge.workers.started)
        return found

    assert run(tmp_path, case, far_tools.square) == [n * n for n in range(1_000)]


def test_a_slow_call_holds_nobody_up(tmp_path: Path) -> None:
    async def case(tools: RayTools, bridge: FakeBridge) -> None:
        file = tmp_path / "a"
        slow = asyncio.ensure_future(tools.call("wait", {"file": str(file)}))
        quick = [tools.call("square", {"n": n}) for n in range(50)]
        assert await all_of(*quick) == [n * n for n in range(50)]
        assert not slow.done()
        assert len(bridge.workers.started) == 1
        slow.cancel()
        await asyncio.wait({slow})

    run(tmp_path, case, far_tools.wait, far_tools.square, workers=FakeWorkers(a=()))


def test_large_values_pass_the_bridge_as_digests(tmp_path: Path) -> None:
    async def case(tools: RayTools, bridge: FakeBridge) -> None:
        assert len(await tools.call("text", {"length": 3_000_000})) == 3_000_000
        assert await tools.call("length", {"text": "é" * 1_000_000}) == 1_000_000
        assert sum(worker.bytes for worker in bridge.workers.started) < 10_000

    run(tmp_path, case, far_tools.text, far_tools.length)


def test_log_lines_arrive_in_order_and_bounded(tmp_path: Path) -> None:
    async def case(tools: RayTools, _: FakeBridge) -> list[str]:
        heard: list[str] = []
        with tool_logs(heard.append):
            await tools.call("speak", {"lines": 3_000})
        return heard

    assert run(tmp_path, case, far_tools.speak) == [f"line {number}" for number in range(1_000)]


def test_a_batch_form_is_called_on_the_worker(tmp_path: Path) -> None:
    async def case(tools: RayTools, _: FakeBridge) -> Any:
        return await tools.call_batch("together", [{"n": 1}, {"m": 2}, {"n": 3}])

    first, wrong, last = run(tmp_path, case, far_tools.together)
    assert (first, last) == (201, 203)
    assert isinstance(wrong, WeftError)


def test_an_isolated_tool_has_a_process_on_the_worker(tmp_path: Path) -> None:
    async def case(tools: RayTools, _: FakeBridge) -> Any:
        return await all_of(tools.call("apart", {}), tools.call("place", {}))

    apart, place = run(tmp_path, case, far_tools.apart, far_tools.place)
    assert apart != place


def test_calls_that_must_not_be_repeated_travel_alone(tmp_path: Path) -> None:
    async def case(tools: RayTools, bridge: FakeBridge) -> list[int]:
        files = [{"file": str(tmp_path / f"f{number}")} for number in range(10)]
        await all_of(*(tools.call("charge", each) for each in files))
        return [size for worker in bridge.workers.started for size in worker.batches]

    assert run(tmp_path, case, far_tools.charge) == [1] * 10


def test_cancelling_ends_the_call_on_its_worker(tmp_path: Path) -> None:
    file = tmp_path / "a"

    async def case(tools: RayTools, _: FakeBridge) -> None:
        task = asyncio.ensure_future(tools.call("wait", {"file": str(file)}))
        await until(lambda: lines(file) == ["begun"])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert lines(file) == ["begun", "cancelled"]

    run(tmp_path, case, far_tools.wait)


def test_a_call_that_ignores_its_cancellation_is_abandoned(tmp_path: Path) -> None:
    file = tmp_path / "a"

    async def case(tools: RayTools, _: FakeBridge) -> int:
        task = asyncio.ensure_future(tools.call("stubborn", {"file": str(file)}))
        await until(lambda: lines(file) == ["begun"])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        found: int = await tools.call("square", {"n": 3})  # the worker goes on
        return found

    assert run(tmp_path, case, far_tools.stubborn, far_tools.square) == 9


def dies_once(when: str) -> Callable[[FakeWorker], None]:
    """The first worker to get a batch dies, before or after it acts."""
    dead: list[FakeWorker] = []

    def prepare(worker: FakeWorker) -> None:
        async def die() -> None:
            if not dead:
                dead.append(worker)
                raise ConnectionError("killed")

        setattr(worker, when, die)

    return prepare


@pytest.mark.parametrize("when", ["on_submit", "on_reply"])
def test_a_lost_call_ends_as_its_effect_demands(tmp_path: Path, when: str) -> None:
    def lost(function: Tool[..., Any], arguments: dict[str, Any]) -> Any:
        workers = FakeWorkers()
        workers.prepare = dies_once(when)

        async def case(tools: RayTools, _: FakeBridge) -> Any:
            try:
                with keyed("k"):
                    return await tools.call(function.spec.name, arguments)
            except WeftError as error:
                return error

        return run(tmp_path, case, function, workers=workers)

    made = 1 if when == "on_reply" else 0
    assert lost(far_tools.square, {"n": 4}) == 16
    once = lost(far_tools.charge, {"file": str(tmp_path / "once")})
    assert isinstance(once, EffectUnknown)
    assert len(lines(tmp_path / "once")) == made
    unsure = lost(far_tools.unsure, {"file": str(tmp_path / "unsure")})
    assert isinstance(unsure, WorkerLost)
    assert unsure.retryable
    assert len(lines(tmp_path / "unsure")) == made
    assert lost(far_tools.book, {"file": str(tmp_path / "book")}) == "k"
    assert lines(tmp_path / "book") == ["k"] * (made + 1)


def test_a_key_of_its_own_stays_when_the_call_is_repeated(tmp_path: Path) -> None:
    workers = FakeWorkers()
    workers.prepare = dies_once("on_reply")
    file = tmp_path / "book"

    async def case(tools: RayTools, _: FakeBridge) -> Any:
        return await tools.call("book", {"file": str(file)})

    key = run(tmp_path, case, far_tools.book, workers=workers)
    assert key
    assert lines(file) == [key, key]


def test_a_call_that_kills_every_worker_ends(tmp_path: Path) -> None:
    workers = FakeWorkers()
    killed: list[str] = []
    said: list[str] = []

    def prepare(worker: FakeWorker) -> None:
        async def die() -> None:
            killed.append(worker.node)
            raise ConnectionError("killed")

        worker.on_submit = die

    workers.prepare = prepare

    async def case(tools: RayTools, _: FakeBridge) -> None:
        await tools.call("square", {"n": 1})

    lost = r"square: a worker on name of [abc] was lost: ConnectionError, after it was sent 8 times"
    with tool_logs(said.append), pytest.raises(WorkerLost, match=lost):
        run(tmp_path, case, far_tools.square, workers=workers)
    assert [line.rpartition("; ")[2] for line in said] == [
        f"it is sent again ({number} of {MAX_SENDINGS})" for number in range(2, MAX_SENDINGS + 1)
    ]
    assert len(killed) == MAX_SENDINGS


def test_a_worker_that_gives_no_sign_is_lost(tmp_path: Path) -> None:
    workers = FakeWorkers()
    frozen: list[FakeWorker] = []

    def prepare(worker: FakeWorker) -> None:
        async def freeze() -> None:
            if not frozen:
                frozen.append(worker)
                await asyncio.Event().wait()

        worker.on_submit = freeze

    workers.prepare = prepare

    async def case(tools: RayTools, _: FakeBridge) -> Any:
        return await tools.call("square", {"n": 5})

    assert run(tmp_path, case, far_tools.square, workers=workers, silence_s=0.2) == 25
    assert frozen[0].is_killed


def test_a_worker_does_not_act_when_its_lease_has_ended(tmp_path: Path) -> None:
    """Its clock is ahead of what the bridge knows, as after it was frozen."""
    workers = FakeWorkers()
    workers.skew_s = 60.0
    file = tmp_path / "once"

    async def case(tools: RayTools, _: FakeBridge) -> None:
        await tools.call("charge", {"file": str(file)})

    with pytest.raises(NotDone, match="lease"):
        run(tmp_path, case, far_tools.charge, workers=workers)
    assert not file.exists()


def test_without_workers_nothing_was_done(tmp_path: Path) -> None:
    def ended(function: Tool[..., Any], arguments: dict[str, Any]) -> Any:
        workers = FakeWorkers()
        workers.fails = 100

        async def case(tools: RayTools, _: FakeBridge) -> None:
            await tools.call(function.spec.name, arguments)

        with pytest.raises(WeftError) as raised:
            run(tmp_path, case, function, workers=workers)
        return raised.value

    assert isinstance(ended(far_tools.square, {"n": 1}), ClusterError)
    assert isinstance(ended(far_tools.charge, {"file": str(tmp_path / "f")}), NotDone)


def test_a_bridge_that_cannot_be_started_is_tried_once_for_a_call(tmp_path: Path) -> None:
    tried: list[int] = []

    async def connect(*_: object) -> None:
        tried.append(1)
        raise ClusterError("no bridge")

    async def main() -> None:
        tools = RayTools(Toolbox(far_tools.square), Ray(content=tmp_path), connect)
        tools.place(far_tools.square)
        for _ in range(2):
            with pytest.raises(ClusterError, match="no bridge"):
                await tools.call("square", {"n": 1})
            for _ in range(20):
                await asyncio.sleep(0)
        await tools.aclose()

    asyncio.run(main())
    assert len(tried) == 2


def test_a_port_where_nobody_listens_starts_no_bridge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.cluster.link.check_ray", lambda: None)  # it may be missing
    with socket.socket() as bound:  # it does not listen
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        flow = weft.Flow("nowhere")
        flow.output(one=flow.tool(far_tools.square, n=3))
        before = BRIDGES.running()
        result = flow.run_sync(on=Ray(address, content=tmp_path))
        (error,) = result.errors.values()
        assert isinstance(error, ClusterError)
        assert f"{address} has no Ray cluster" in error.message
        assert BRIDGES.running() == before


class DyingBridges:
    """The first bridge no longer listens, though its process is still there."""

    def __init__(self, folder: Path) -> None:
        self.sockets = [str(folder / "dying"), str(folder / "new")]
        self.closed: list[str] = []
        self.released = 0

    def acquire(self, *_: object) -> SimpleNamespace:
        found = self.sockets[len(self.closed)]
        return SimpleNamespace(socket=found, close=lambda: self.closed.append(found))

    def release(self, _: object) -> None:
        self.released += 1


def test_a_bridge_that_dies_just_now_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bridges = DyingBridges(tmp_path)
    monkeypatch.setattr("weft.cluster.link.BRIDGES", bridges)

    async def main() -> None:
        server = await asyncio.start_unix_server(
            lambda _, writer: writer.close(), bridges.sockets[1]
        )
        link = await BridgeLink.open([], {}, lambda *_: None, lambda: None)
        assert bridges.closed == bridges.sockets[:1]
        await link.aclose()
        server.close()

    asyncio.run(main())
    assert bridges.released == 2


def test_a_bridge_that_ends_loses_what_was_sent_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a"

    async def case(tools: RayTools, bridge: FakeBridge) -> None:
        assert await tools.call("square", {"n": 2}) == 4
        waiting = asyncio.ensure_future(tools.call("wait", {"file": str(file)}))
        await until(lambda: lines(file) == ["begun"])
        bridge.crash()
        with pytest.raises(WorkerLost, match="bridge"):
            await waiting
        assert await tools.call("square", {"n": 3}) == 9
        assert len(bridge.bridges) == 2

    run(tmp_path, case, far_tools.square, far_tools.wait)


def test_a_bridge_that_ends_repeats_what_may_be_repeated(tmp_path: Path) -> None:
    async def case(tools: RayTools, bridge: FakeBridge) -> list[int]:
        await tools.call("square", {"n": 2})
        calls = [asyncio.ensure_future(tools.call("square", {"n": n})) for n in range(100)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        bridge.crash()
        return await all_of(*calls)

    assert run(tmp_path, case, far_tools.square) == [n * n for n in range(100)]


def test_a_node_that_dies_while_its_worker_starts_is_no_end(tmp_path: Path) -> None:
    class OneDies(FakeWorkers):
        async def start(self, node: str, settings: Mapping[str, Any]) -> ToolWorker:
            if node == "a":
                self.labels = {"b": ()}
                raise ClusterError("no worker started on a")
            return await super().start(node, settings)

    async def case(tools: RayTools, bridge: FakeBridge) -> Any:
        result = await tools.call("square", {"n": 3})
        return result, [worker.node for worker in bridge.workers.started]

    found = run(tmp_path, case, far_tools.square, workers=OneDies(a=()))
    assert found == (9, ["b"])


def test_tools_go_to_the_pool_of_their_label(tmp_path: Path) -> None:
    far = tool(resource="gpu")(far_tools.add)

    async def case(tools: RayTools, bridge: FakeBridge) -> set[str]:
        assert await tools.call("add", {"a": 1}) == 2
        return {worker.node for worker in bridge.workers.started if worker.batches}

    pools = {"gpu": Pool(("gpu",)), "default": Pool()}
    assert run(tmp_path, case, far, pools=pools) == {"c"}


def test_labels_that_no_node_has_are_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bridge = FakeBridge()
    monkeypatch.setattr(RayTools, "_open", lambda _, *ends: bridge.connect(*ends))

    async def ended(*labels: str) -> weft.FlowResult[Any]:
        flow = weft.Flow("labelled")
        flow.output(one=flow.tool(far_tools.square, n=3))
        ray = Ray(content=tmp_path, pools={"default": Pool(labels)})
        return await flow.run(on=ray)

    async def main() -> None:
        assert (await ended("gpu")).outputs == {"one": 9}
        began = len(bridge.workers.started)
        with pytest.raises(PlacementError, match=r"square .*default.* the label big ") as raised:
            await ended("gpu", "big")
        assert "weft cluster up --label 1=big" in str(raised.value.hint)
        assert len(bridge.workers.started) == began
        bridge.workers.labels["a"] = ("big",)
        with pytest.raises(PlacementError, match="the label gpu and big "):
            await ended("gpu", "big")
        await bridge.aclose()

    asyncio.run(main())


def test_other_errors_of_a_worker_are_no_end_of_others(tmp_path: Path) -> None:
    async def case(tools: RayTools, _: FakeBridge) -> list[Any]:
        calls = [{"file": "/nowhere/at/all"}, {"file": str(tmp_path / "a")}]
        made = [asyncio.ensure_future(tools.call("unsure", each)) for each in calls]
        await asyncio.wait(made)
        return [task.exception() or task.result() for task in made]

    failed, done = run(tmp_path, case, far_tools.unsure)
    assert isinstance(failed, ToolRaised)
    assert done == 1


def node(name: str, *, alive: bool = True) -> dict[str, Any]:
    address = f"127.0.0.{len(name)}"
    return {
        "NodeID": name,
        "NodeManagerAddress": address,
        "Alive": alive,
        "Resources": {"CPU": 1.0},
    }


class FakeRay:
    """As much of Ray as a driver asks before it starts a worker."""

    def __init__(self) -> None:
        self.known = [node("mine"), node("another")]

    def init(self, **_: object) -> None:
        pass

    def remote(self, kind: type) -> type:
        return kind

    def nodes(self) -> list[dict[str, Any]]:
        return self.known

    def get_runtime_context(self) -> SimpleNamespace:
        return SimpleNamespace(get_node_id=lambda: "mine")


@pytest.mark.parametrize(
    "known",
    [
        pytest.param([node("mine", alive=False), node("another")], id="its node is dead"),
        pytest.param([node("third")], id="another cluster has the address"),
    ],
)
def test_a_driver_that_the_cluster_does_not_know_ends(
    known: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ray, lost = FakeRay(), []
    monkeypatch.setitem(sys.modules, "ray", ray)

    async def main() -> None:
        workers = RayWorkers("127.0.0.2:6379", lambda: lost.append(True))
        await workers.connect()
        assert await workers.nodes(()) == ["another", "mine"]
        assert not lost
        ray.known = known
        await workers.nodes(())
        assert lost

    asyncio.run(main())
