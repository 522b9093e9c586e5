"""Errands one by one: reroutes, joins, goals that are lowered, people, limits."""

import asyncio
import json
from typing import Any

import pytest

from tests.planner.routing.route_run import errand
from weft.core.errors import (
    ModelUnavailable,
    NodeTimeout,
    RouteError,
    ToolRaised,
    TypeMismatch,
    UnknownReference,
)
from weft.core.events import Event, NodeFinished, NodeRerouted
from weft.core.ids import NodeId
from weft.core.values import JsonSchema, ToolSpec
from weft.engine import Edge, Graph, Node, Retry, Run, RunOptions
from weft.planner.routing import (
    CallCost,
    Goal,
    MonitorSignal,
    RoutedTool,
    ToolGraph,
    ToolHistory,
    ToolRouter,
    heal,
    healing,
)
from weft.planner.routing.monitors import IntentMonitor
from weft.testing import FakeClock, FakeModel, FakeTools, MemoryStore, Reply

PAGES = ToolGraph(
    [
        RoutedTool("fetch", {"url": "address"}, gives=("page",)),
        RoutedTool("archive", {"url": "address"}, gives=("page",), cost=CallCost(4.0)),
        RoutedTool("summarise", {"text": "page"}),
    ]
)
HAVE = {"address": "here"}


def broken(**_: Any) -> str:
    raise ToolRaised("it is broken")


def tools(**others: Any) -> FakeTools:
    functions = {
        "fetch": lambda url: f"page {url}",
        "archive": lambda url: f"old page {url}",
        "summarise": lambda text: text.upper(),
    }
    return FakeTools(**{**functions, **others})


def test_the_cheapest_way_is_taken() -> None:
    runner = tools()
    ran = errand(ToolRouter(PAGES, runner), "summarise", HAVE)
    assert ran.arrival is not None
    assert ran.arrival.value == "PAGE HERE"
    assert [name for name, _ in runner.calls] == ["fetch", "summarise"]
    assert not ran.rerouted


def test_a_failure_is_a_reroute_that_is_seen() -> None:
    ran = errand(ToolRouter(PAGES, tools(fetch=broken)), "summarise", HAVE)
    assert ran.arrival is not None
    assert ran.arrival.value == "OLD PAGE HERE"
    assert [(r.tool, r.to) for r in ran.arrival.reroutes] == [("fetch", ("archive",))]
    assert [event.to for event in ran.rerouted] == ["heal/archive"]
    assert "reroute: fetch failed (ToolRaised); going by archive" in ran.logged
    assert ran.arrival.model_calls == 0


def test_results_are_kept() -> None:
    graph = ToolGraph(
        [
            RoutedTool("one", {"x": "s"}),
            RoutedTool("two", {"x": "one"}, gives=("g",)),
            RoutedTool("other", {"x": "one"}, gives=("g",), cost=CallCost(9.0)),
        ]
    )
    runner = FakeTools(one=lambda x: x + 1, two=broken, other=lambda x: x * 10)
    ran = errand(ToolRouter(graph, runner), "g", {"s": 1})
    assert ran.arrival is not None
    assert ran.arrival.value == 20
    assert [name for name, _ in runner.calls] == ["one", "two", "other"]


def test_branches_run_at_once_and_a_failure_does_not_wait_for_its_siblings() -> None:
    graph = ToolGraph(
        [
            RoutedTool("slow", gives=("a",), cost=CallCost(10.0)),
            RoutedTool("fails", gives=("b",)),
            RoutedTool("spare", gives=("b",), cost=CallCost(3.0)),
            RoutedTool("join", {"a": "a", "b": "b"}),
        ]
    )
    begun: dict[str, float] = {}

    def takes(name: str, seconds: float) -> Any:
        async def work(**_: Any) -> str:
            begun[name] = asyncio.get_running_loop().time()
            await asyncio.sleep(seconds)
            if name == "fails":
                raise ToolRaised("no")
            return name

        return work

    ran = errand(
        ToolRouter(
            graph,
            FakeTools(
                **{
                    n: takes(n, s)
                    for n, s in {"slow": 10, "fails": 1, "spare": 2, "join": 0}.items()
                }
            ),
        ),
        "join",
        {},
    )
    assert ran.arrival is not None
    assert begun == {"slow": 0, "fails": 0, "spare": 1, "join": 10}


def test_what_is_no_longer_needed_is_cancelled() -> None:
    async def for_ever(**_: Any) -> None:
        await asyncio.Event().wait()

    graph = ToolGraph(
        [RoutedTool("quick", gives=("a",)), RoutedTool("endless", gives=("b",), timeout_s=None)]
    )

    class Change:
        """Wants less once there is something."""

        name = "change"
        every_s = None

        async def look(self, scene: Any) -> Any:
            less = MonitorSignal(1.0, "a will do", goal=Goal("less", ("a",)))
            return [less] if "a" in scene.values else []

    runner = FakeTools(quick=lambda: 1, endless=for_ever)
    ran = errand(ToolRouter(graph, runner, monitors=[Change()]), Goal("both", ("a", "b")), {})
    assert ran.arrival is not None
    assert (ran.arrival.goal, ran.arrival.value) == ("less", 1)
    ends = {e.node: e.outcome.status for e in ran.events if isinstance(e, NodeFinished)}
    assert ends["heal/endless"] == "cancelled"
    assert "endless is no longer needed" in ran.logged
    assert ran.status == "succeeded"


def test_what_fails_when_it_is_no_longer_needed_was_left_off_before() -> None:
    async def fails(**_: Any) -> None:
        await asyncio.sleep(2.0)
        raise ToolRaised("too late to matter")

    async def quick(**_: Any) -> int:
        await asyncio.sleep(1.0)
        return 1

    def less(_: Goal, values: Any) -> Goal | None:
        return Goal("less", ("quick",)) if "quick" in values else None

    class Slow(MemoryStore):
        async def put(self, key: str, value: Any, ttl_s: float | None = None) -> None:
            await asyncio.sleep(2.0)

    graph = ToolGraph([RoutedTool("quick"), RoutedTool("fails")])
    runner = FakeTools(quick=quick, fails=fails)
    router = ToolRouter(graph, runner, monitors=[IntentMonitor(less)], history=ToolHistory(Slow()))
    ran = errand(router, Goal("all", ("quick", "fails")), {})
    assert ran.arrival is not None
    assert ran.arrival.goal == "less"
    assert [event.at_s for event in ran.failed] == [2.0]


def test_a_tool_that_never_answers_is_a_failure() -> None:
    async def for_ever(**_: Any) -> None:
        await asyncio.Event().wait()

    ran = errand(ToolRouter(PAGES, tools(fetch=for_ever)), "summarise", HAVE)
    assert ran.arrival is not None
    assert ran.arrival.value == "OLD PAGE HERE"
    assert ran.arrival.reroutes[0].failure.error == NodeTimeout.__name__
    assert ran.arrival.calls[0].latency_s == 60.0


def test_no_way_and_nobody_to_ask() -> None:
    ran = errand(ToolRouter(PAGES, tools(fetch=broken, archive=broken)), "summarise", HAVE)
    assert ran.error is not None
    assert "fetch: ToolRaised: it is broken" in ran.error.message
    assert "nobody could be asked" in ran.error.message
    assert ran.error.hint is not None
    assert ran.logged[-1].startswith("escalation: No way is left to 'summarise'")


LESSER = ToolGraph([*PAGES.tools.values(), RoutedTool("guess", {"url": "address"})])


def choosing(*answers: str | Reply) -> FakeModel:
    return FakeModel(list(answers))


def test_the_model_lowers_the_goal() -> None:
    model = choosing('{"choice": "guess", "reason": "better than nothing"}')
    runner = tools(summarise=broken, guess=lambda url: f"about {url}")
    ran = errand(ToolRouter(LESSER, runner, model=model), "summarise", HAVE, ["guess"])
    assert ran.arrival is not None
    assert ran.arrival.value == "about here"
    assert ran.arrival.model_calls == len(model.requests) == 1
    (lowering,) = ran.arrival.lowered
    assert (lowering.goal, lowering.chosen, lowering.by) == ("summarise", "guess", "model")
    assert lowering.reason == "better than nothing"
    assert list(lowering.failures) == ["summarise"]
    assert model.requests[0].sampling.thinking_tokens == 0, "a short step"
    schema = model.requests[0].schema
    assert schema is not None
    assert schema["properties"]["choice"] == {"enum": ["guess", "escalate"]}
    assert "summarise: ToolRaised: it is broken" in model.requests[0].messages[1].content


@pytest.mark.parametrize(
    "answer",
    [
        '{"choice": "escalate"}',
        '{"choice": "summarise"}',
        "no JSON",
        "[]",
        '{"choice": ["guess"]}',
        Reply(error=ModelUnavailable("gone")),
    ],
)
def test_whatever_the_model_says_it_is_asked_once(answer: str | Reply) -> None:
    model = choosing(answer)
    runner = tools(summarise=broken, guess=lambda url: url)
    ran = errand(ToolRouter(LESSER, runner, model=model), "summarise", HAVE, ["guess"])
    assert ran.error is not None
    assert "the model did not choose a lesser goal" in ran.error.message
    assert len(model.requests) == 1


def test_a_model_is_not_asked_when_there_is_nothing_to_choose() -> None:
    model = choosing("never")
    runner = tools(summarise=broken, guess=broken, fetch=broken, archive=broken)
    graph = ToolGraph([*PAGES.tools.values(), RoutedTool("guess", {"text": "page"})])
    ran = errand(ToolRouter(graph, runner, model=model), "summarise", HAVE, ["guess"])
    assert ran.error is not None
    assert not model.requests


def test_a_part_of_what_is_wanted_is_a_lesser_goal() -> None:
    graph = ToolGraph([RoutedTool("news"), RoutedTool("weather")])
    model = FakeModel(
        lambda request: json.dumps({"choice": request.schema["properties"]["choice"]["enum"][0]})  # type: ignore[index]
    )
    runner = FakeTools(news=lambda: "news", weather=broken)
    goal = Goal("morning", ("news", "weather"))
    ran = errand(ToolRouter(graph, runner, model=model), goal, {})
    assert ran.arrival is not None
    assert ran.arrival.goal == "morning without weather"
    assert ran.arrival.values == {"news": "news"}
    without = errand(ToolRouter(graph, runner, model=model), goal, {}, partial=False)
    assert without.error is not None


@pytest.mark.parametrize("first", ["digest", "paper"])
def test_after_a_lesser_goal_the_rest_of_what_was_wanted_will_still_do(first: str) -> None:
    graph = ToolGraph(
        [RoutedTool("news"), RoutedTool("weather"), RoutedTool("digest"), RoutedTool("paper")]
    )
    asked: list[list[str]] = []

    def choose(request: Any) -> str:
        offered = request.schema["properties"]["choice"]["enum"]
        asked.append(offered)
        return json.dumps({"choice": first if first in offered else offered[-2]})

    runner = FakeTools(news=lambda: "news", weather=broken, digest=broken, paper=broken)
    goal = Goal("morning", ("news", "weather"))
    lesser = [Goal("digest"), Goal("paper", ("paper", "digest"))]
    ran = errand(ToolRouter(graph, runner, model=FakeModel(choose)), goal, {}, lesser)
    assert ran.arrival is not None, asked
    assert ran.arrival.goal == "morning without weather"
    assert ran.arrival.values == {"news": "news"}


class Person:
    """Answers in turn; remembers what was asked."""

    def __init__(self, *answers: Any, takes_s: float = 1.0) -> None:
        self.answers = list(answers)
        self.takes_s = takes_s
        self.asked: list[tuple[str, JsonSchema]] = []

    async def __call__(self, question: str, schema: JsonSchema) -> Any:
        self.asked.append((question, schema))
        await asyncio.sleep(self.takes_s)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def asked(person: Person, **more: Any) -> Any:
    runner = tools(summarise=broken, guess=lambda url: f"about {url}")
    router = ToolRouter(LESSER, runner, person_s=30.0, **more)
    return errand(router, "summarise", HAVE, ["guess"], person=person)


def test_a_person_settles_for_less() -> None:
    person = Person({"decision": "guess"})
    ran = asked(person, model=choosing('{"choice": "escalate", "reason": "too hard"}'))
    assert ran.arrival is not None
    assert ran.arrival.value == "about here"
    assert ran.arrival.lowered[0].by == "person"
    question, schema = person.asked[0]
    assert "No way is left to 'summarise'" in question
    assert schema["properties"]["decision"]["enum"] == ["guess", "provide", "give up"]


def test_a_person_provides_what_is_missing() -> None:
    ran = asked(Person({"decision": "provide", "values": {"summarise": "by hand"}}))
    assert ran.arrival is not None
    assert (ran.arrival.goal, ran.arrival.value) == ("summarise", "by hand")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"decision": "give up"}, "gave up"),
        ({"decision": "provide"}, "did not provide"),
        ({"decision": "nonsense"}, "what was not offered"),
        ("nonsense", "what was not offered"),
        (OSError("the terminal is gone"), "nobody answered"),
    ],
)
def test_a_person_who_does_not_take_over(answer: Any, said: str) -> None:
    ran = asked(Person(answer))
    assert ran.error is not None
    assert said in ran.error.message


def test_a_person_who_never_answers_is_not_waited_for() -> None:
    ran = asked(Person({"decision": "guess"}, takes_s=31.0))
    assert ran.error is not None
    assert "nobody answered" in ran.error.message
    assert ran.events[-1].at_s == 30.0


def test_as_a_node_of_another_graph() -> None:
    async def page_of(_: Any, inputs: Any) -> str:
        return str(inputs["arrival"].value)

    async def address(_: Any, __: Any) -> str:
        return "there"

    nodes = [
        Node(NodeId("address"), address),
        Node(
            NodeId("healed"),
            healing(ToolRouter(PAGES, tools(fetch=broken)), "page"),
            (Edge(NodeId("address"), "address"),),
        ),
        Node(NodeId("use"), page_of, (Edge(NodeId("healed"), "arrival"),)),
    ]
    clock = FakeClock()
    events: list[Event] = []
    result = clock.run(Run(Graph("g", nodes), clock=clock, listeners=[events.append]).wait())
    assert result.status == "succeeded"
    assert result.value("use") == "old page there"
    assert [e.node for e in events if isinstance(e, NodeRerouted)] == ["healed"]


def test_an_answer_to_the_node_from_outside() -> None:
    async def main() -> Any:
        router = ToolRouter(PAGES, tools(summarise=broken), person_s=60.0)
        node = Node(NodeId("healed"), healing(router, "summarise"), given=HAVE)
        run = Run(Graph("g", [node]), clock=clock)
        waiting = asyncio.create_task(run.wait())
        while not run.questions:
            await asyncio.sleep(0.1)
        (question,) = run.questions
        run.answer(question, {"decision": "provide", "values": {"summarise": "mine"}})
        return (await waiting).value("healed")

    clock = FakeClock()
    assert clock.run(main()).value == "mine"


@pytest.mark.parametrize(
    ("graph", "goal", "error", "said"),
    [
        (ToolGraph([RoutedTool("fetch")]), "fetsh", UnknownReference, "'fetch'"),
        (ToolGraph([RoutedTool("fetsh", {"url": "a"})]), "fetsh", UnknownReference, "fetch"),
        (ToolGraph([RoutedTool("typed")]), "typed", TypeMismatch, "needs"),
        (
            ToolGraph([RoutedTool("number"), RoutedTool("typed", {"count": "number"})]),
            "typed",
            TypeMismatch,
            "can never be",
        ),
        (
            ToolGraph([RoutedTool("typed", {"count": "s"}, given={"cuont": 1})]),
            "typed",
            UnknownReference,
            "has no 'cuont'",
        ),
        (ToolGraph([RoutedTool("typed", given={"count": 1})]), "typed", TypeMismatch, "never"),
    ],
)
def test_what_does_not_fit_is_found_before_anything_runs(
    graph: ToolGraph, goal: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as caught:
        asyncio.run(heal(ToolRouter(graph, Typed()), goal, HAVE))
    assert said in str(caught.value)


class Typed(FakeTools):
    """Tools with schemas."""

    def __init__(self) -> None:
        super().__init__(fetch=lambda url: url, typed=lambda count: count, number=lambda: 1)

    def specs(self) -> Any:
        text = {
            "type": "object",
            "properties": {"count": {"type": "string"}},
            "required": ["count"],
            "additionalProperties": False,
        }
        return (
            ToolSpec("fetch", "", {"type": "object"}),
            ToolSpec("typed", "", text),
            ToolSpec("number", "", {"type": "object"}, {"type": "integer"}),
        )


def test_who_cancels_it_cancels_the_calls() -> None:
    ended: list[str] = []

    async def for_ever(**_: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("fetch")

    async def main() -> None:
        async with asyncio.timeout(3.0):
            await heal(ToolRouter(PAGES, tools(fetch=for_ever)), "page", HAVE, clock=clock)

    clock = FakeClock()
    with pytest.raises(TimeoutError):
        clock.run(main())
    assert ended == ["fetch"]
    assert clock.now() == 3.0


def test_a_call_may_be_retried_before_another_tool_is() -> None:
    failing = iter([True, True])

    def sometimes(url: str) -> str:
        if next(failing, False):
            raise ToolRaised("not yet", retryable=True)
        return url

    graph = ToolGraph([RoutedTool("fetch", {"url": "address"}, retry=Retry(3, 1.0, jitter=0.0))])
    clock = FakeClock()
    arrival = clock.run(heal(ToolRouter(graph, tools(fetch=sometimes)), "fetch", HAVE, clock=clock))
    assert arrival.value == "here"
    assert len(arrival.calls) == 1


def test_a_run_that_is_cut_off_says_so() -> None:
    async def for_ever(**_: Any) -> None:
        await asyncio.Event().wait()

    clock = FakeClock()
    runner = tools(fetch=for_ever)
    cut = heal(
        ToolRouter(PAGES, runner), "page", HAVE, options=RunOptions(deadline_s=5), clock=clock
    )
    with pytest.raises(RouteError, match="DeadlineExceeded"):
        clock.run(cut)
