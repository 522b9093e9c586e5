"""Calls that must not be repeated, in the page: what became of them is said by mouse and by key."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.ui_browser import Watched, browser, watched
from tests.serving.ui.scripted import Script, info
from tests.serving.ui.test_effects import paying_run
from weft.core.events import RunResumed
from weft.core.ids import NodeId
from weft.core.ports.journal import Letter
from weft.testing.journal import MemoryJournal

__all__ = ["browser"]

CALL = ".unsettled-call"
ASKED = "() => performance.getEntriesByType('resource').some((e) => e.name.includes('unsettled?'))"
EVIL = "<img src=x onerror='window.owned=1'><script>window.owned=1</script>\u001b[2J\u202e"


def stopped(journal: MemoryJournal) -> Script:
    """A run that nobody has: its `second` payment failed on the way, its `third` was cut off."""
    script = paying_run(journal)
    script.claim.release()
    return script


def shown(seen: Watched, script: Script, calls: int = 2) -> None:
    seen.run(script.run, CALL)
    seen.until(f"document.querySelectorAll('{CALL}').length === {calls}")


def test_each_call_is_shown_and_settled_by_itself(browser: Any) -> None:
    journal = MemoryJournal()
    script = stopped(journal)
    with watched(browser, journal) as seen:
        shown(seen, script)
        seen.reads(".unsettled h2", "Nobody knows whether 2 calls were carried out")
        second, third = (f"{CALL} >> nth={place}" for place in (0, 1))
        seen.says(second, '"amount": 2')
        seen.says(second, "<b>rent</b>")
        seen.says(second, "no answer")
        seen.says(third, "Its process ended before it returned.")
        button = f"{third} >> button[type=submit]"
        assert seen.page.is_disabled(button)
        seen.page.check(f"{third} >> input[value=done]")
        seen.page.fill(f"{third} >> textarea", "receipt 3")
        seen.page.click(button)
        seen.page.wait_for_selector(f"{third} >> .trouble:has-text('not JSON')")
        assert list(journal.letters(script.run)) == []
        seen.page.fill(f"{third} >> textarea", '"receipt 3"')
        seen.page.click(button)
        seen.page.wait_for_selector(f"{third} >> text=weft resume {script.run}")
        (letter,) = journal.letters(script.run)
        assert (letter.kind, letter.node) == ("confirm", NodeId("third"))
        assert letter.value == {"call": letter.value["call"], "said": "done", "value": "receipt 3"}
        assert seen.page.is_disabled(f"{third} >> input[value=leave]")
        assert seen.page.is_checked(f"{second} >> input[value=leave]")
        seen.page.check(f"{third} >> input[value=repeat]")  # on second thoughts
        seen.page.click(button)
        seen.page.wait_for_selector(f"{third} >> button:has-text('told')")
        (letter,) = journal.letters(script.run)
        assert letter.value["said"] == "repeat"
        seen.page.click(f"{second} >> legend button")
        seen.page.wait_for_selector("aside.node h2 bdi:text-is('second')")


def test_it_is_said_by_keyboard_alone(browser: Any) -> None:
    journal = MemoryJournal()
    script = stopped(journal)
    with watched(browser, journal) as seen:
        shown(seen, script)
        seen.page.focus(f"{CALL} legend button")
        for key in ("Tab", "Tab", "ArrowUp", "Tab", "Enter"):  # the arguments, then the words
            seen.page.keyboard.press(key)
            assert seen.page.evaluate("document.activeElement.matches(':focus-visible')")
        seen.page.wait_for_selector(f"{CALL} button:has-text('told')")
        (letter,) = journal.letters(script.run)
        assert letter == Letter("confirm", NodeId("second"), {**letter.value, "said": "repeat"})


@pytest.mark.parametrize("standing", ["held", "succeeded", "settled"])
def test_nothing_is_asked_where_nothing_stands_still(browser: Any, standing: str) -> None:
    journal = MemoryJournal()
    script = paying_run(journal)
    if standing == "settled":
        for name in ("second", "third"):
            script.calls_tool(name, "pay", {}, "once", attempt=2)
            script.tool_returns(name, "receipt", attempt=2)
    if standing != "held":
        script.finish("succeeded" if standing == "succeeded" else "failed")
    with watched(browser, journal) as seen:
        seen.run(script.run, "canvas[data-nodes]")
        seen.page.wait_for_selector("main .bar .count", state="detached")  # all is read
        if standing == "settled":
            seen.until(ASKED)
        assert seen.page.evaluate(ASKED) == (standing == "settled")
        assert seen.count(".unsettled") == 0


def test_it_goes_when_the_run_goes_on_and_an_old_word_is_refused(browser: Any) -> None:
    journal = MemoryJournal()
    script = stopped(journal)
    with watched(browser, journal) as seen:
        shown(seen, script)
        seen.page.check(f"{CALL} input[value=repeat]")
        script.claim = journal.claim(script.run)
        script.wait(1).write(RunResumed(script.run, 2, "2026-11-22T06:00:00Z", script.at))
        seen.page.wait_for_selector(".unsettled", state="detached")
        for name in ("second", "third"):
            script.calls_tool(name, "pay", {"amount": 9}, "once")
        script.tool_returns("third", "receipt 3")
        script.claim.release()
        shown(seen, script, 1)
        seen.says(CALL, '"amount": 9')
        assert seen.page.is_checked(f"{CALL} input[value=leave]")


def test_what_tools_were_called_with_is_text(browser: Any) -> None:
    journal = MemoryJournal()
    script = Script(journal, "hostile")
    script.begin(info(EVIL))
    script.start(EVIL)
    script.calls_tool(EVIL, EVIL, {EVIL: EVIL * 10_000}, "once")
    script.claim.release()
    with watched(browser, journal) as seen:
        shown(seen, script, 1)
        text = seen.text(CALL)
        assert "<script>window.owned=1</script>" in text
        assert "␛[2J⟨U+202E⟩" in text
        assert len(text) < 20_000
        assert seen.count(f"{CALL} img, {CALL} script") == 0
        assert "Save all of it" in text
