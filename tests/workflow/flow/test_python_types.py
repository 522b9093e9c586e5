"""Pydantic models, dataclasses and TypedDicts as types of answers, tools, calls and inputs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

import weft
from weft.errors import BuildError, InputError
from weft.testing import FakeModel


class Hit(BaseModel):
    title: str
    score: int = 1
    full_text: str = Field("", alias="fullText")

    @property
    def loud(self) -> str:
        return self.title.upper()


class Out(BaseModel):
    answer: str
    hits: list[Hit] = []

    @field_validator("answer")
    @classmethod
    def _short(cls, answer: str) -> str:
        if len(answer) > 10:
            raise ValueError("at most 10 letters")
        return answer.strip()


@dataclass
class Point:
    x: int
    y: int = 2


class Place(TypedDict):
    name: str
    at: Point


@weft.tool
def find(query: str) -> list[Hit]:
    return [Hit(title=query), Hit(title="b", score=2)]


@weft.tool
async def best(hits: list[Hit], extra: Hit | None = None) -> Hit:
    assert all(isinstance(hit, Hit) for hit in hits)
    return max([*hits, *([extra] if extra else [])], key=lambda hit: hit.score)


def shout(hit: Hit) -> str:
    assert isinstance(hit, Hit)
    return hit.loud


def move(point: Point) -> Point:
    assert isinstance(point, Point)
    return Point(point.x + 1, point.y)


def place_of(place: Place) -> Place:
    assert isinstance(place["at"], Point)
    return {"name": place["name"], "at": move(place["at"])}


def longest(hits: list[Hit]) -> Hit:
    return max(hits, key=lambda hit: len(hit.title))


def made(*replies: str, **settings: Any) -> weft.Flow[Any, Any]:
    return weft.Flow("case", models={"m": FakeModel(list(replies) or ["x"])}, **settings)


def test_an_answer_is_an_instance_with_defaults_and_validators() -> None:
    flow = made('{"answer": " tea ", "hits": [{"title": "t"}]}')
    o = flow.model("m", "p", schema=Out)
    loud = flow.call(lambda hit: hit.loud, o.hits[0])
    flow.output(o=o, first=o.hits[0], text=f"{o.answer}!", parts={"hit": o.hits[0]}, loud=loud)
    result = flow.run_sync()
    assert result.ok, result.reasons
    hit = Hit(title="t")
    assert result["o"] == Out(answer="tea", hits=[hit])
    assert (result["first"], result["text"], result["parts"]) == (hit, "tea!", {"hit": hit})
    assert result["loud"] == "T"


def test_a_refusal_of_a_validator_is_a_misfit_of_the_answer() -> None:
    flow = made('{"answer": "far too long an answer"}', '{"answer": "short"}')
    flow.output(o=flow.model("m", "p", schema=Out, retry=2))
    assert flow.run_sync()["o"] == Out(answer="short")
    flow = made('{"answer": "far too long an answer"}')
    flow.output(o=flow.model("m", "p", schema=Out))
    assert "at most 10 letters" in str(flow.run_sync().missing)


def test_samples_are_a_list_of_instances() -> None:
    flow = made('{"answer": "a"}')
    flow.output(o=flow.model("m", "p", schema=Out, samples=2))
    assert flow.run_sync()["o"] == [Out(answer="a"), Out(answer="a")]


def test_tools_and_calls_take_and_return_instances() -> None:
    flow = made()
    hits = flow.tool(find, "tea")
    texts = flow.map(hits, lambda hit: flow.call(shout, hit))
    flow.output(
        hits=hits,
        best=flow.tool(best, hits, extra=Hit(title="{{ x }}", score=3)),
        texts=texts,
        point=flow.call(move, Point(1)),
        place=flow.call(place_of, {"name": "n", "at": {"x": 1, "y": 5}}),
        longest=flow.reduce(longest, hits),
        copies=flow.map(hits, lambda hit: hit),
    )
    result = flow.run_sync()
    assert result.ok, (result.reasons, result.missing)
    found = [Hit(title="tea"), Hit(title="b", score=2)]
    assert result["hits"] == result["copies"] == found
    assert result["best"] == Hit(title="{{ x }}", score=3)
    assert result["texts"] == ["TEA", "B"]
    assert result["point"] == Point(2, 2)
    assert result["place"] == {"name": "n", "at": Point(2, 5)}
    assert result["longest"] == found[0]


NODES_OF_HITS: dict[str, Callable[[weft.Flow, Callable[..., Any]], Any]] = {
    "default": lambda flow, hit: hit(default={"title": "b"}),
    "default instance": lambda flow, hit: hit(default=Hit(title="b")),
    "default none": lambda flow, hit: hit(default=None),
    "fallback": lambda flow, hit: hit(fallback=hit(name="other")),
    "join any": lambda flow, hit: flow.join(hit(name="a"), hit(name="b"), mode="any"),
    "branch": lambda flow, hit: flow.branch(flow.value(True), {True: hit, False: {"title": "b"}}),
    "value": lambda flow, hit: flow.value(hit()),
    "break": lambda flow, hit: flow.loop(
        {"title": "b"}, lambda _: leave(flow, hit), until="{{ false }}", max=2
    ),
}
LISTS_OF_HITS: dict[str, Callable[[weft.Flow, Callable[..., Any]], Any]] = {
    "join": lambda flow, hit: flow.join(hit(name="a"), hit(name="b")),
    "best_effort": lambda flow, hit: flow.map(
        [1, 2], lambda _: hit(), mode="best_effort", otherwise={"title": "b"}
    ),
    "list": lambda flow, hit: flow.value([hit(), hit()]),
}


def leave(flow: weft.Flow, hit: Callable[..., Any]) -> Any:
    flow.break_if("{{ true }}", {"title": "a"})
    return hit()


def model_of(flow: weft.Flow) -> Callable[..., Any]:
    return lambda **options: flow.model("m", "p", schema=Hit, **options)


@pytest.mark.parametrize("case", NODES_OF_HITS)
def test_nodes_that_pass_an_answer_on_pass_its_type_on(case: str) -> None:
    flow = made(*['{"title": "a"}'] * 4)
    flow.output(loud=flow.call(lambda hit: hit.loud, NODES_OF_HITS[case](flow, model_of(flow))))
    result = flow.run_sync()
    assert result.ok, (result.reasons, result.missing)
    assert result["loud"] == "A"


@pytest.mark.parametrize("case", LISTS_OF_HITS)
def test_nodes_that_collect_answers_pass_their_type_on(case: str) -> None:
    flow = made(*['{"title": "a"}'] * 4)
    hits = LISTS_OF_HITS[case](flow, model_of(flow))
    flow.output(
        called=flow.call(lambda hits: [hit.loud for hit in hits], hits),
        reduced=flow.reduce(
            lambda hits, other: [hit.loud for hit in hits] + [other.title],
            hits,
            other=Hit(title="o"),
        ),
    )
    result = flow.run_sync()
    assert result.ok, (result.reasons, result.missing)
    assert (result["called"], result["reduced"]) == (["A", "A"], ["A", "A", "o"])


def test_a_value_of_several_types_is_plain() -> None:
    flow = made('{"title": "a"}')
    given = flow.model("m", "p", schema=Hit, default={"other": 1})
    flow.output(plain=flow.call(lambda hit: hit["title"], given))
    assert flow.run_sync()["plain"] == "a"


def wrong() -> Hit:
    return {"title": 3}  # type: ignore[return-value]


def test_a_result_that_is_not_what_the_annotation_promises_fails() -> None:
    flow = made()
    flow.output(a=flow.call(wrong))
    assert "does not promise: title" in str(flow.run_sync().missing)


class In(BaseModel):
    topic: str
    hit: Hit = Hit(title="d")


class Topic(TypedDict):
    topic: str


def test_instances_are_inputs() -> None:
    flow = made()
    hit = flow.input("hit", Hit)
    flow.output(text=flow.call(shout, hit), hit=hit)
    result = flow.run_sync(hit=Hit(title="a"))
    assert (result["text"], result["hit"]) == ("A", Hit(title="a"))
    assert flow.run_sync(hit={"title": "a"})["hit"] == Hit(title="a")
    with pytest.raises(InputError):
        flow.run_sync(hit={"titel": 3})


class Answer(BaseModel):
    text: str
    hits: list[Hit] = []


def test_a_flow_with_types_of_its_inputs_and_outputs() -> None:
    flow = weft.Flow("typed", inputs=In, outputs=Answer)
    given = flow.params
    flow.output(text=flow.call(shout, given.hit), hits=[given.hit])
    result = flow.run_sync(In(topic="tea"))
    assert isinstance(result.outputs, Answer)
    assert result.outputs.text == "D"
    assert result.outputs.hits == [Hit(title="d")]
    assert flow.run_sync(topic="tea", hit=Hit(title="x")).outputs.text == "X"
    with pytest.raises(InputError, match="no input `topc`"):
        flow.run_sync(topc="tea")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="no input `topc`"):
        flow.run_sync({"topc": "tea"})  # type: ignore[call-overload]


def test_outputs_that_the_type_does_not_have_are_refused() -> None:
    flow = weft.Flow("typed", inputs=Topic, outputs=Answer)
    with pytest.raises(BuildError, match="no field `txt`") as caught:
        flow.output(txt=flow.params["topic"])
    assert "`text`" in str(caught.value.hint)
    flow.value(1)
    with pytest.raises(BuildError, match="lacks the output `text`"):
        flow.check()
    with pytest.raises(BuildError, match="is not a type with fields"):
        weft.Flow("typed", inputs=str)  # type: ignore[type-var]


def test_a_part_that_a_type_does_not_have_is_refused() -> None:
    flow = made()
    o = flow.model("m", "p", schema=Out)
    with pytest.raises(BuildError, match="`nonexistent`"):
        _ = o.nonexistent  # type: ignore[attr-defined]


ENDED: list[str] = []


def fails_once(hit: Hit, out: Out) -> Out:
    assert isinstance(hit, Hit)
    assert isinstance(out, Out)
    ENDED.append(hit.title)
    if len(ENDED) == 1:
        raise RuntimeError("not yet")
    return out


def test_instances_survive_the_journal_and_a_resumed_run(tmp_path: Path) -> None:
    ENDED.clear()
    flow = made('{"answer": "tea"}')
    first = flow.call(longest, [Hit(title="abc")])
    out = flow.model("m", "p", schema=Out)
    flow.output(first=first, out=flow.call(fails_once, first, out))
    with closing(weft.open_journal(tmp_path / "runs.db")) as journal:
        assert not flow.run_sync(journal=journal, run="r1").ok
        client = FakeModel(['{"answer": "other"}'])
        result = asyncio.run(flow.resume("r1", journal=journal, models={"m": client}).wait())
    assert result.ok, result.reasons
    assert (result["first"], result["out"]) == (Hit(title="abc"), Out(answer="tea"))
    assert client.requests == []
