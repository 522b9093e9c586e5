"""Runs made to harm whoever looks at them: markup, escapes, overrides, and far too much of all."""

from __future__ import annotations

from typing import Any

from tests.integration.ui_browser import Watched, browser, watched
from tests.serving.ui.scripted import DRAFTED, Script, info, wide_run
from weft.core.calls import CallId, ModelCalled
from weft.core.errors import Failure
from weft.core.events import BudgetReached, NodeRerouted
from weft.core.ids import NodeId
from weft.core.ports.model import ModelRequest
from weft.core.values import Message, ToolCall, Usage
from weft.testing.journal import MemoryJournal

__all__ = ["browser"]

MARKUP = (
    '<img src=x onerror="window.owned=1"><script>window.owned=1</script>\'"></pre>'
    "<svg/onload=window.owned=1><iframe srcdoc='<script>parent.owned=1</script>'>"
    "{{window.owned=1}} ${window.owned=1} javascript:window.owned=1 "
)
ESCAPES = "\x1b]0;title\x07\x1b[2J\x1b[31mred\x00\x08\x9b1A"
BIDI = "\u202eevil\u2066\u200b\U000e0041\u2028"
BAD = f"{MARKUP}{ESCAPES}{BIDI}"
NODE = "aside.node"
MANY = 10_000
HUGE = 10_000_000


def hostile(journal: MemoryJournal) -> Script:
    """A run with something hostile in every field that a program, model or tool can fill."""
    values = {BAD: BAD, "__proto__": [BAD], "constructor": None}
    script = Script(journal, f"run {BAD}/../?x#y", f"flow {BAD}", values=values)
    failure = Failure(f"Error{BAD}", BAD, "tool", True, BAD)
    node = f"node {BAD}"
    script.begin(info(node, BAD, f"gone {BAD}", slot=BAD), info(f"ask {BAD}", BAD), limits={BAD: 1})
    script.start(node)
    script.log(node, BAD)
    script.retry(node, failure)
    script.start(node, 2)
    calls = (ToolCall(BAD, BAD, BAD),)
    messages = (Message("system", BAD), Message("assistant", BAD, calls), Message("user", BAD))
    request = ModelRequest(messages, cache_prefix=BAD, extra={BAD: BAD})
    script.write(ModelCalled(NodeId(node), 1, CallId("model:0#0"), BAD, request, script.at))
    script.model_streams(node, BAD)
    script.model_answers(node, BAD, Usage(1, 1), DRAFTED)
    script.calls_tool(node, BAD, {BAD: [BAD]})
    script.tool_returns(node, {BAD: BAD})
    script.calls_tool(node, BAD, BAD, attempt=2)
    script.tool_returns(node, None, failure, attempt=2)
    script.write(NodeRerouted(NodeId(node), NodeId(BAD), failure, script.at))
    script.write(BudgetReached(None, BAD, False, script.at))
    script.end(node, {BAD: BAD}, "failed", failure)
    choices = {"enum": [BAD, "plain"], "description": BAD}
    schema = {"type": "object", "properties": {BAD: choices, "__proto__": {"type": "string"}}}
    script.start(f"ask {BAD}")
    script.ask(f"ask {BAD}", BAD, schema)
    return script


def test_nothing_that_a_run_holds_is_executed(browser: Any) -> None:
    journal = MemoryJournal()
    script = hostile(journal)
    with watched(browser, journal) as seen:
        seen.open(wait=".extent .run")
        foreign = "img[src=x], svg:not(link), iframe, .node script, .run script"
        assert seen.count(foreign) == 0
        seen.page.keyboard.press("Tab")
        seen.page.click(".extent .run .what")
        seen.page.wait_for_selector("canvas[data-nodes='2']")
        seen.page.click(".questions button")
        seen.page.wait_for_selector("form select")
        assert seen.count(foreign) == 0
        seen.run(script.run, f"{NODE} .message", node=f"node {BAD}")
        seen.page.wait_for_selector(f"{NODE} .failure")
        assert seen.count(foreign) == 0
        seen.counts(f"{NODE} .call", 3)
        for view in ("timeline", "graph"):
            seen.page.click(f"#tab-{view}")
        text = seen.text(NODE)
        for shown in ("<img src=x", "␛[2J", "␀", "⟨U+009B⟩", "⟨U+202E⟩", "⟨U+E0041⟩", "⟨U+2028⟩"):
            assert shown in text
        raw = seen.page.evaluate("document.body.textContent")
        assert not set(raw) & set("\x1b\x00\x08\x07\x9b\u202e\u2066\u200b\u2028")
        assert "owned" not in seen.page.evaluate("document.title.replace(/window.owned/g, '')")
        assert seen.page.evaluate("Object.prototype.type === undefined")
        script.finish("failed", BAD)
        seen.page.wait_for_selector(".reasons:has-text('<img src=x')")
        seen.page.click("#tab-values")
        seen.page.wait_for_selector("[aria-label=Inputs] .value")
        seen.counts("[aria-label=Inputs] .value", 3)
        assert "␛[2J" in seen.text(".values")
        raw = seen.page.evaluate("document.body.textContent")
        assert not set(raw) & set("\x1b\x00\x08\x07\x9b\u202e\u2066\u200b\u2028")
        assert seen.count(foreign) == 0
        seen.open(f"#/compare/{'%2525'}/{'x'}", "main.compare")  # runs that are not there


def test_ten_megabytes_are_a_few_thousand_characters_on_the_page(browser: Any) -> None:
    journal = MemoryJournal()
    script = Script(journal, "huge")
    script.begin(info("a"))
    script.start("a")
    script.calls_tool("a", "read", {"path": "/" * HUGE})
    for _ in range(20):
        script.stream("a", "word " * (HUGE // 100), 1)
    script.log("a", "log " * (HUGE // 40))
    script.end("a", "value " * (HUGE // 6))
    script.finish()
    with watched(browser, journal) as seen:
        seen.run("huge", f"{NODE} .cut", node="a")
        assert len(seen.page.evaluate("document.body.textContent")) < 90_000
        with seen.page.expect_download() as download:
            seen.page.click(f"{NODE} section:has-text('Result') .cut button")
        assert download.value.suggested_filename == "huge-25-outcome.value.txt"
        assert download.value.path().stat().st_size == HUGE // 6 * 6


def elements(seen: Watched) -> int:
    return seen.count("*")


def test_ten_thousand_nodes_are_drawn_but_not_put_into_the_document(browser: Any) -> None:
    journal = MemoryJournal()
    script = wide_run(journal, MANY)
    asked: list[str] = []
    with watched(browser, journal) as seen:
        seen.page.on("request", lambda request: asked.append(request.url))
        seen.run(script.run, "canvas[data-nodes='3']")
        seen.until("document.querySelector('.figures').textContent.includes('8,001 / 10,003')")
        pages = [url for url in asked if "/api/records" in url]
        assert len(pages) <= 2 + len(list(journal.records(script.run))) // 2_000
        seen.page.click("text=Unfold all")
        seen.page.wait_for_selector(f"canvas[data-nodes='{MANY + 3}']")
        canvas = seen.page.locator(".graph canvas")
        assert int(canvas.get_attribute("data-boxes")) == MANY + 3
        assert int(canvas.get_attribute("data-texts")) == 0  # nobody could read them
        canvas.focus()
        for _ in range(18):
            seen.page.keyboard.press("+")
        seen.until("Number(document.querySelector('.graph canvas').dataset.texts) > 0")
        assert int(canvas.get_attribute("data-boxes")) < 200
        assert elements(seen) < 120
        seen.page.click("#tab-timeline")
        seen.page.wait_for_selector(".outline .row")
        assert int(seen.page.get_attribute(".outline .scroll", "aria-rowcount")) == MANY + 3
        assert 10 < seen.count(".outline .row") < 60
        seen.page.focus(".outline .scroll")
        seen.page.keyboard.press("End")
        seen.page.wait_for_selector(f"#row-{MANY + 2}.picked")
        assert 10 < seen.count(".outline .row") < 60
        assert elements(seen) < 700
        before = len(asked)
        script.wait(0.1).end("each[8500]", "late")
        seen.until("document.querySelector('.figures').textContent.includes('8,002 / 10,003')")
        fresh = [url for url in asked[before:] if "/api/records" in url]
        assert len(fresh) <= 3


def test_a_chain_of_ten_thousand_and_a_deep_nest_are_laid_out(browser: Any) -> None:
    journal = MemoryJournal()
    script = Script(journal, "chain")
    script.begin(*(info(f"n{i}", "tool", *([f"n{i - 1}"] if i else [])) for i in range(MANY)))
    deep = Script(journal, "deep")
    deep.begin(info("d"))
    place = "d"
    for _ in range(300):
        deep.grow(place, info(f"{place}/d", parent=place))
        place = f"{place}/d"
    with watched(browser, journal) as seen:
        seen.run("chain", f"canvas[data-nodes='{MANY}']")
        seen.run("deep", "canvas[data-nodes='3']")
        seen.page.click("text=Unfold all")
        seen.page.wait_for_selector("canvas[data-nodes='301']")
