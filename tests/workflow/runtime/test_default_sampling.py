"""What a node leaves open is the model's default, which the run tells once."""

from __future__ import annotations

from typing import Any

import weft
from weft.core.events import Event, NodeLogged
from weft.core.ports import Capabilities, Sampling
from weft.testing import FakeModel


def told(able: Capabilities, **fields: Any) -> list[str]:
    flow = weft.Flow("t", models={"m": FakeModel(["words"], model="small", capabilities=able)})
    flow.output(
        a=flow.model("m", "one", name="a", **fields), b=flow.model("m", "two", name="b", **fields)
    )
    events: list[Event] = []
    assert flow.run_sync(listeners=[events.append]).ok
    return [event.text for event in events if isinstance(event, NodeLogged)]


def test_the_default_is_told_once_in_a_run() -> None:
    able = Capabilities(sampling=Sampling(None, 0.6, 0.95, 20))
    assert told(able) == [
        "small is sampled with temperature 0.6, top_p 0.95, top_k 20: its default"
    ]


def test_nothing_is_told_where_the_node_says_it_or_nobody_knows() -> None:
    assert told(Capabilities(sampling=Sampling(temperature=1.0)), temperature=0) == []
    assert told(Capabilities()) == []
