"""What people do with the page of runs, in a real browser: look, answer, cancel, compare."""

from __future__ import annotations

import re
from typing import Any

from tests.integration.ui_browser import browser, watched
from tests.serving.ui.scripted import (
    DRAFTED,
    Script,
    asking_run,
    brief_run,
    finished_run,
    info,
    thinking_run,
)
from weft.core.ids import NodeId
from weft.core.ports.journal import Letter
from weft.core.values import Message, Usage
from weft.testing.journal import MemoryJournal

__all__ = ["browser"]

NODE = "aside.node"
RUN = "brief-3f2a91c0de"


def test_from_the_list_to_a_prompt(browser: Any) -> None:
    journal = MemoryJournal()
    finished_run(journal)
    asking_run(journal)
    with watched(browser, journal) as seen:
        seen.open(wait=".extent .run")
        seen.counts(".extent .run", 2)
        assert "#key" not in seen.page.url
        seen.page.fill("input[type=search]", "3f2a")
        seen.until("document.querySelectorAll('.extent .run').length === 1")
        seen.page.click(".extent .run .what")
        seen.page.wait_for_selector("canvas[data-nodes='14']")
        seen.reads("main .bar .state", "partial")
        seen.says(".reasons", "the mail server hung up")
        seen.page.click("text=Timeline")
        seen.page.click(".outline .row:has-text('[1]') >> nth=1")
        seen.page.wait_for_selector(f"{NODE} .message")
        seen.reads(f"{NODE} h2", "notes[1]")
        seen.says(f"{NODE} .message.user", "A loom holds the warp.")
        seen.says(f"{NODE} section:has-text('Result')", "In short: A loom holds the warp.")
        seen.says(NODE, "40 tokens drafted, 29 kept")
        seen.counts(f"{NODE} .meter", 1 + len(DRAFTED.tested))
        seen.page.go_back()
        seen.page.wait_for_selector(".extent .run")


def test_a_node_tells_its_calls_its_failure_and_its_retries(browser: Any) -> None:
    journal = MemoryJournal()
    finished_run(journal)
    with watched(browser, journal) as seen:
        seen.run(RUN, f"{NODE} .call", node="report")
        seen.says(f"{NODE} .call", "never repeated")
        seen.says(f"{NODE} .call", '"to": "readers"')
        seen.says(f"{NODE} .call", "its effect: unknown")
        seen.says(f"{NODE} .failure", "ConnectionError")
        seen.run(RUN, f"{NODE} .failure:has-text('429')", node="titles")
        seen.says(NODE, "repeated after 500 ms")
        seen.says(NODE, "may succeed when repeated")


def test_tokens_are_shown_as_they_stream(browser: Any) -> None:
    journal = MemoryJournal()
    script = Script(journal, "live")
    script.begin(info("write", "model"))
    script.start("write")
    script.asks_model("write", Message("user", "Tell me of looms."))
    with watched(browser, journal) as seen:
        seen.run("live", f"{NODE} .call", node="write")
        seen.says(f"{NODE} .call", "reading the prompt")
        said = ""
        for word in ("A loom ", "holds ", "threads."):
            said += word
            script.wait(0.1).model_streams("write", word)
            condition = "text => document.querySelector('.node pre.live')?.textContent === text"
            seen.until(condition, said)
        script.model_answers("write", said, Usage(9, 3))
        script.end("write", said)
        script.finish()
        seen.page.wait_for_selector(f"{NODE} .state.succeeded")
        seen.until("document.querySelector('main .bar .state').textContent.includes('succeeded')")
        seen.counts("pre.live", 0)
        seen.says(NODE, "9 prompt tokens, 3 generated")


def test_an_approval_is_answered(browser: Any) -> None:
    journal = MemoryJournal()
    script = asking_run(journal)
    with watched(browser, journal) as seen:
        seen.run(script.run, ".questions")
        seen.page.click(".questions button")
        seen.page.wait_for_selector(f"{NODE} form")
        seen.page.click(f"{NODE} form button")
        seen.says(f"{NODE} .trouble", "say yes or no")
        seen.page.check("input[value=true]")
        seen.page.select_option("form select", label="warm")
        seen.page.fill("form input[inputmode=decimal]", "0")
        seen.page.click(f"{NODE} form button")
        seen.page.wait_for_selector(f"{NODE} .trouble:has-text('does not fit')")
        assert list(journal.letters(script.run)) == []
        seen.page.fill("form input[inputmode=decimal]", "3")
        seen.page.click(f"{NODE} form button")
        seen.page.wait_for_selector("form button:disabled")
        value = {"approve": True, "tone": "warm", "copies": 3}
        assert list(journal.letters(script.run)) == [Letter("answer", NodeId("review"), value)]
        script.answered("review", value)
        seen.page.wait_for_selector(".questions", state="detached")
        seen.page.wait_for_selector("form", state="detached")


ANSWERS: tuple[tuple[dict[str, Any], str, Any], ...] = (
    ({"type": "string"}, "plain words", "plain words"),
    ({}, "anything", "anything"),
    ({"type": "number"}, "2,5", 2.5),
    ({"type": "array", "items": {"type": "integer"}}, "[1, 2]", [1, 2]),
    ({"type": "object"}, '{"a": null}', {"a": None}),
)


def test_answers_of_every_shape_are_typed(browser: Any) -> None:
    journal = MemoryJournal()
    script = Script(journal, "ask")
    script.begin(*(info(f"ask{i}", "human") for i in range(len(ANSWERS))))
    for place, (schema, _, _) in enumerate(ANSWERS):
        script.start(f"ask{place}")
        script.ask(f"ask{place}", "Which?", schema)
    with watched(browser, journal) as seen:
        for place, (_, typed, value) in enumerate(ANSWERS):
            seen.run("ask", f"{NODE}:has-text('ask{place}') form", node=f"ask{place}")
            seen.page.fill("form textarea, form input", typed)
            seen.page.click("form button")
            seen.page.wait_for_selector("form button:disabled")
            letter = Letter("answer", NodeId(f"ask{place}"), value)
            assert list(journal.letters(script.run)) == [letter]


def test_the_run_and_a_node_are_cancelled_after_a_question(browser: Any) -> None:
    journal = MemoryJournal()
    script = brief_run(journal)
    script.start("review")
    with watched(browser, journal) as seen:
        seen.run(script.run, f"{NODE} button.danger", node="review")
        seen.page.click(f"{NODE} button.danger")
        seen.page.click("dialog button:has-text('Back')")
        seen.page.wait_for_selector("dialog", state="detached")
        assert list(journal.letters(script.run)) == []
        seen.page.click(f"{NODE} button.danger")
        seen.page.click("dialog button.danger")
        seen.page.wait_for_selector(f"{NODE} button.danger:disabled")
        seen.page.click("main > .bar button.danger")
        seen.page.wait_for_selector("dialog[open]")
        seen.page.keyboard.press("Escape")
        seen.page.wait_for_selector("dialog", state="detached")
        seen.page.click("main > .bar button.danger")
        seen.page.click("dialog button.danger")
        seen.page.wait_for_selector("main > .bar button.danger:disabled")
        reason = "cancelled in the page"
        assert list(journal.letters(script.run)) == [
            Letter("cancel", NodeId("review"), reason),
            Letter("cancel", None, reason),
        ]


def test_two_runs_are_compared(browser: Any) -> None:
    journal = MemoryJournal()
    finished_run(journal, words=700)
    finished_run(journal, "brief-0000000001")
    with watched(browser, journal) as seen:
        seen.open(wait=".extent .run")
        for place in range(2):
            seen.page.check(f".extent .run >> nth={place} >> input")
        seen.page.click("text=Compare (2 of 2)")
        seen.page.wait_for_selector(".pair.differs")
        seen.reads(".count", "1 node of 14 differ")
        seen.page.check("label.check input")
        seen.until("document.querySelectorAll('.extent .pair').length === 1")
        seen.page.click(".extent .pair .id")
        seen.until("document.querySelectorAll('.results pre').length === 2")
        assert set(seen.page.locator(".results pre").all_inner_texts()) == {"700", "812"}


def test_threads_of_a_thought(browser: Any) -> None:
    journal = MemoryJournal()
    script = thinking_run(journal)
    with watched(browser, journal) as seen:
        seen.run(script.run, ".threads .row", view="threads")
        rows = seen.page.locator(".threads .row").all_inner_texts()
        assert [re.split(r"\s+", row.strip())[0] for row in rows] == [
            "answer",
            "odd",
            "even",
            "zero",
        ]
        assert "If n is even" in rows[2]
        script.wait(0.1).stream("answer/cases/even/solve", "of one", 2)
        seen.page.wait_for_selector(".threads .row:has-text('remainder of one')")


def test_a_run_that_was_killed_and_resumed(browser: Any) -> None:
    from weft.core.events import RunResumed

    journal = MemoryJournal()
    script = brief_run(journal)
    script.start("review")
    script.claim.release()
    with watched(browser, journal) as seen:
        seen.run(script.run, f"{NODE} .state.interrupted", node="review")
        seen.reads("main .bar .state", "interrupted")
        assert seen.count("button.danger") == 0
        script.claim = journal.claim(script.run)
        script.wait(1).write(RunResumed(script.run, 2, "2026-11-22T06:00:00Z", script.at))
        script.start("review")
        seen.page.wait_for_selector(f"{NODE} .state.working")
        seen.says(".figures", "resumed")


def test_without_the_key_the_page_says_what_to_do(browser: Any) -> None:
    with watched(browser) as seen:
        seen.page.goto(seen.here.address)
        seen.page.wait_for_selector(".trouble")
        seen.says(".trouble", "weft ui")
        seen.open()


def test_the_end_of_the_server_is_told(browser: Any) -> None:
    with watched(browser) as seen:
        seen.open(wait=".empty")
        seen.says(".empty", "weft run FILE")
        seen.here.stop()
        seen.page.wait_for_selector(".connection.off")
