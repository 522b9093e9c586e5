"""The timeline page: well-formed, alone in the world, and deaf to what models write into it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from tests.cli.brief_run import brief_run
from tests.cli.hostile import ALL, FORBIDDEN
from tests.cli.test_report import hostile_run, traced
from tests.durability.simulated_run import Job, simulate
from weft.cli.run.listeners import NodeOutputLog
from weft.cli.timeline.page import chart, page
from weft.core.events import Event, NodeStreamed
from weft.core.ids import NodeId

VOID = {"meta", "input", "br", "img", "link"}


class Outline(HTMLParser):
    """Collects elements and their text; complains about tags that do not match."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.setdefault(self.open[-1] if self.open else "", []).append(data)


def built(events: list[Event]) -> str:
    trace, speech = traced(events), NodeOutputLog()
    for event in events:
        speech(event)
    return page(trace, speech)


def outline(text: str) -> Outline:
    found = Outline()
    found.feed(text)
    found.close()
    assert found.open == []
    return found


def test_the_page_is_well_formed_and_asks_nobody_for_anything() -> None:
    text = built(brief_run())
    found = outline(text)
    tags = [tag for tag, _ in found.found]
    assert tags.count("script") == 2
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(tags)
    attributes = [name for _, attributes in found.found for name in attributes]
    assert not [name for name in attributes if name.startswith("on") or name in ("src", "href")]
    assert "http" not in text.replace("http-equiv", "")
    assert "@@" not in text


def test_the_policy_admits_the_pages_own_script_and_style_only() -> None:
    found = outline(built(brief_run()))
    policy = next(a["content"] for tag, a in found.found if a.get("http-equiv")) or ""
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    script, style = found.text["script"][1], found.text["style"][0]
    for name, text in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy


def test_hostile_text_cannot_leave_its_place() -> None:
    events = hostile_run()
    events.insert(2, NodeStreamed(NodeId("fetch"), ALL, 1, 0.2))
    text = built(events)
    found = outline(text)
    assert [tag for tag, _ in found.found].count("script") == 2
    assert "alert(1)" not in found.text["script"][1]
    assert not set(text) & set(FORBIDDEN)
    data = json.loads(found.text["script"][0])
    assert "<script>alert(1)" in data["nodes"][0]["text"]
    assert "\u003c" not in found.text["script"][0]


def test_rows_are_nested_and_bars_cover_the_life_of_a_node() -> None:
    data = chart(traced(brief_run()), NodeOutputLog())
    rows = {row["id"]: row for row in data["nodes"]}
    place = {row["id"]: index for index, row in enumerate(data["nodes"])}
    assert rows["notes[11]"]["parent"] == place["notes"]
    assert rows["notes[11]"]["depth"] == 1
    assert place["notes[0]"] == place["notes"] + 1
    assert [bar[0] for bar in rows["notes[5]"]["bars"]] == [
        "slot", "failed", "delay", "failed", "delay", "failed",
    ]  # fmt: skip
    assert [bar[0] for bar in rows["notes"]["bars"]] == ["work", "children", "work"]
    assert [bar[0] for bar in rows["summary"]["bars"]] == ["failed", "children", "work"]
    for row in rows.values():
        for before, after in zip(row["bars"], row["bars"][1:], strict=False):
            assert before[2] == pytest.approx(after[1], abs=0.01)
    assert data["path"][0][:2] == [place["list_documents"], "work"]


def test_ten_thousand_nodes_stay_a_page_one_can_open() -> None:
    items = tuple(Job(f"m[{i}]", (1.0, 1.0)) for i in range(10_000))
    events = simulate([Job("m", children=items, kind="map")], slots=50)
    told = [NodeStreamed(NodeId(f"m[{i}]"), ALL * 3, 9, 1.0) for i in range(10_000)]
    text = built([*events[:-1], *told, events[-1]])
    assert len(text) < 8_000_000
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert len(data["nodes"]) == 10_001
