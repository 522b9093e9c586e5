"""Programs that type checkers accept, and that run: nodes and their handles."""

from __future__ import annotations

from typing import Any

import weft
from tests.typing.shapes import Hit, Out, Point, above, fetch, longest, rate, search, shift
from weft.testing import FakeModel

ANSWER = '{"answer": "tea", "hits": [{"title": "t"}]}'


def flow_of(*replies: str) -> weft.Flow:
    return weft.Flow("program", models={"m": FakeModel(list(replies) or ["x"])})


def outputs_of(flow: weft.Flow, **inputs: Any) -> Any:
    result = flow.run_sync(**inputs)
    assert result.ok, (result.reasons, result.missing)
    return result.outputs


def fields_and_items_of_a_tool() -> None:
    flow = flow_of()
    topic = flow.input("topic", str)
    hits = flow.tool(search, topic, limit=5)
    title: str = hits[0].title
    few: list[Hit] = hits[:1]
    flow.output(title=title, score=hits[-1].score, few=few)
    assert outputs_of(flow, topic="tea") == {"title": "tea", "score": 5, "few": [Hit(title="tea")]}


def options_of_a_node() -> None:
    flow = flow_of()
    hits = flow.tool(search, "tea", args={"limit": 5}, timeout=3, retry=2, retry_on=TimeoutError)
    count = flow.call(above, hits, 1, name="count", retry_on=["TimeoutError", 503], timeout="3s")
    flow.output(count=count)
    assert outputs_of(flow) == {"count": 1}


def options_beside_typed_arguments() -> None:
    flow = flow_of()
    hits = flow.options(retry=2, timeout="5s", retry_on=TimeoutError).tool(search, "tea", limit=5)
    one: Hit = flow.options(name="one", alternatives=[search]).tool(search, query="a")[0]
    count: int = flow.options(when=hits[0].score > 0).reduce(above, hits, least=1)
    point = flow.options(retry=1).call(fetch, title="tea")
    text: str = flow.options(timeout=5).model("m", f"About {one.title}", max_tokens=9)
    rates: list[int] = flow.options(timeout=5).map(hits, lambda hit: flow.tool(rate, hit))
    flow.output(count=count, x=point.x, text=text, rates=rates)
    assert outputs_of(flow) == {"count": 1, "x": 3, "text": "x", "rates": [1, 5]}


def plain_functions_sync_and_async() -> None:
    flow = flow_of()
    point = flow.call(fetch, "tea")
    moved = flow.call(shift, point, by=2)
    flow.output(x=moved.x)
    assert outputs_of(flow) == {"x": 5}


def a_typed_answer() -> None:
    flow = flow_of(ANSWER)
    out = flow.model("m", "p", schema=Out, max_tokens=60, temperature=0.2, system="Be terse.")
    first: Hit = out.hits[0]
    flow.output(answer=out.answer, rate=flow.tool(rate, first))
    assert outputs_of(flow) == {"answer": "tea", "rate": 1}


def samples_of_a_typed_answer() -> None:
    flow = flow_of(ANSWER)
    outs: list[Out] = flow.model("m", "p", schema=Out, samples=2)
    flow.output(second=outs[1].answer)
    assert outputs_of(flow) == {"second": "tea"}


def a_text_in_a_prompt() -> None:
    flow = flow_of()
    draft: str = flow.model("m", "Write")
    better = flow.model("m", f"Improve: {draft}", stop=["\n"])
    flow.output(better=better)
    assert outputs_of(flow) == {"better": "x"}


def answers_of_other_schemas() -> None:
    flow = flow_of("3")
    number = flow.model("m", "p", schema=int)
    free = flow.model("m", "p", schema={"type": "integer"})
    flow.output(big=number > 2, free=free)
    assert outputs_of(flow) == {"big": True, "free": 3}


def a_map_over_typed_items() -> None:
    flow = flow_of()
    hits = flow.tool(search, "tea")
    rates: list[int] = flow.map(hits, lambda hit: flow.tool(rate, hit), width=2)
    texts: list[str] = flow.map(hits, lambda hit, index: flow.model("m", f"{index} {hit.title}"))
    flow.output(rates=rates, text=texts[0])
    assert outputs_of(flow) == {"rates": [1, 3], "text": "x"}


def a_map_of_what_succeeds() -> None:
    flow = flow_of()

    def body(hit: Hit) -> str:
        return flow.model("m", hit.title)

    notes = flow.map(flow.tool(search, "tea"), body, mode="best_effort", otherwise="")
    flow.output(note=notes[1])
    assert outputs_of(flow) == {"note": "x"}


def a_reduction() -> None:
    flow = flow_of()
    hits = flow.tool(search, "tea")
    best = flow.reduce(longest, hits)
    flow.output(title=best.title, count=flow.reduce(above, hits, least=0))
    assert outputs_of(flow) == {"title": "tea", "count": 2}


def a_loop_with_a_typed_value() -> None:
    flow = flow_of()
    end = flow.loop(
        Point(1), lambda point: flow.call(shift, point), until=lambda point: point.x > 3, max=9
    )
    flow.output(x=end.x)
    assert outputs_of(flow) == {"x": 4}


def the_first_of_two() -> None:
    flow = flow_of()
    a = flow.model("m", "a")
    b = flow.model("m", "b")
    first: str = flow.join(a, b, mode="any")
    both: list[str] = flow.join(a, b)
    flow.output(first=first, both=both)
    assert outputs_of(flow) == {"first": "x", "both": ["x", "x"]}


def branches_and_conditions() -> None:
    flow = flow_of()
    score = flow.input("score", int, default=5)
    public = flow.input("public", bool, default=True)
    note = flow.branch(score > 3, {True: "good", False: lambda: flow.model("m", "p")})
    kept = flow.value(score, when=(score > 3) & public)
    hidden = flow.value(0, when=~public, name="hidden")
    flow.output(note=note, kept=kept)
    assert isinstance(outputs_of(flow), dict)
    del hidden


def a_question_with_a_type() -> None:
    flow = flow_of()
    yes: bool = flow.ask("Publish?", bool)
    name: str = flow.ask("Under which name?")
    flow.output(name=name, yes=yes)
    result = flow.run_sync(answers={"yes": True, "name": "Ann"})
    assert result.outputs == {"name": "Ann", "yes": True}


def values_and_free_types() -> None:
    flow = flow_of()
    limits = flow.input("limits", "object", default={"depth": 2})
    both = flow.value({"depth": limits.depth, "one": 1})
    flow.output(depth=both.depth)
    assert outputs_of(flow) == {"depth": 2}


def typed_inputs() -> None:
    flow = flow_of()
    hits = flow.input("hits", list[Hit])
    flow.output(title=hits[0].title, rate=flow.tool(rate, hits[0]))
    assert outputs_of(flow, hits=[Hit(title="a")]) == {"title": "a", "rate": 1}


def approval_and_alternatives() -> None:
    flow = flow_of()
    hits = flow.tool(search, "tea", alternatives=[search], approve=False)
    flow.output(title=hits[0].title)
    assert outputs_of(flow) == {"title": "tea"}


def an_image_in_a_message(photo: weft.Image) -> None:
    flow = flow_of()
    image = flow.input("photo", weft.Image)
    text = flow.model("m", messages=[{"role": "user", "content": ["What is it?", image]}])
    flow.output(text=text)
    flow.run_sync(photo=photo)
