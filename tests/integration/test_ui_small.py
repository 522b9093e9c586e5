"""A narrow screen, and how the timeline is drawn, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.brief_run import brief_run as brief_events
from tests.cli.test_timeline import built
from tests.integration.ui_browser import Watched, browser, painted, watched
from tests.serving.ui.scripted import (
    Script,
    asking_run,
    finished_run,
    info,
    rescued_run,
    thinking_run,
)
from weft.engine.analysis.critical_path import critical_path
from weft.testing.journal import MemoryJournal
from weft.workflow.history.run_history import read_history

__all__ = ["browser"]

TIMES = "\N{MULTIPLICATION SIGN}"
RUN = "brief-3f2a91c0de"
# What lies beyond the right edge of the screen, or is cut off by the box that it is in, unless
# dots say so.
_CUT_OFF = """() => [...document.querySelectorAll('body *')].filter((element) => {
  const style = getComputedStyle(element);
  const { width, right } = element.getBoundingClientRect();
  if (!width || style.visibility === 'hidden') return false;
  for (let at = element; at; at = at.parentElement) {
    const { clipPath, textOverflow } = getComputedStyle(at);
    if (clipPath !== 'none' || textOverflow === 'ellipsis') return false;
  }
  const cuts = style.overflowX === 'hidden' && element.scrollWidth > element.clientWidth + 1;
  return cuts || right > innerWidth + 1;
}).map((element) => `${element.tagName}.${element.className}`)"""

# What is painted at the beginning of the third row, between two marks of the scale.
_WAITS = """() => {
  const pen = document.querySelector('.bars').getContext('2d');
  const { data } = pen.getImageData(20, 2 * 26 + 6, 40, 14);
  return data.filter((value, i) => i % 4 === 3 && value > 60).length; }"""


def steps(journal: MemoryJournal, script: Script) -> int:
    """How many steps the critical path of a run has."""
    return len(critical_path(read_history(journal, script.run).trace))


@pytest.mark.parametrize("wide", [390, 640, 1000])
def test_nothing_is_cut_off_on_a_narrow_screen(browser: Any, wide: int) -> None:
    journal = MemoryJournal()
    finished_run(journal)
    asking, rescued, thinking = asking_run(journal), rescued_run(journal), thinking_run(journal)
    places = (
        ("#/", ".extent .run"),
        (f"#/run/{RUN}", "canvas[data-nodes]"),
        (f"#/run/{rescued.run}?view=timeline", ".timeline .row"),
        (f"#/run/{thinking.run}?view=threads", ".threads .row"),
        (f"#/run/{rescued.run}?view=values", ".value"),
        (f"#/run/{rescued.run}?node=pay", "aside.node .failure"),
        (f"#/run/{asking.run}?node=review", "aside.node form"),
        (f"#/compare/{RUN}/{rescued.run}", ".extent .pair"),
    )
    with watched(browser, journal, viewport={"width": wide, "height": 700}) as seen:
        for place, wait in places:
            seen.open(place, wait)
            assert seen.page.evaluate(_CUT_OFF) == [], place


def test_the_rows_keep_their_room_on_a_small_screen(browser: Any) -> None:
    journal = MemoryJournal()
    finished_run(journal)
    with watched(browser, journal, viewport={"width": 390, "height": 480}) as seen:
        seen.run(RUN, ".timeline .row", view="timeline")
        assert seen.page.evaluate("document.querySelector('.scroll').clientHeight") > 150
        seen.open(f"#/compare/{RUN}/{RUN}", ".extent .pair")
        assert seen.page.evaluate("document.querySelector('.pairs .scroll').clientHeight") > 150
        seen.page.set_viewport_size({"width": 1280, "height": 720})
        seen.run(RUN, ".unsettled fieldset", view="timeline")
        assert seen.page.evaluate("document.querySelector('.scroll').clientHeight") > 150


def _shown(seen: Watched, run: str) -> None:
    seen.run(run, ".timeline .row", view="timeline")


def test_a_run_at_rest_has_its_critical_path_and_a_live_one_has_none(browser: Any) -> None:
    journal = MemoryJournal()
    script = asking_run(journal)
    with watched(browser, journal, viewport={"width": 1280, "height": 1100}) as seen:
        finished = finished_run(journal)
        _shown(seen, finished.run)
        seen.page.wait_for_selector(f".bars[data-path='{steps(journal, finished)}']")
        path, failed = (
            painted(seen.page, ".bars", "--path"),
            painted(seen.page, ".bars", "--failed"),
        )
        assert path > 100
        assert failed > 20, "hatched"
        _shown(seen, script.run)
        seen.page.wait_for_selector(".bars[data-path='0']")
        assert painted(seen.page, ".bars", "--path") == 0
        script.claim.release()
        seen.page.wait_for_selector(".bars:not([data-path='0'])")


def test_waiting_for_a_slot_and_parallel_work_are_told(browser: Any) -> None:
    journal = MemoryJournal()
    script = Script(journal, "slots")
    script.begin(info("a", slot="s"), info("b", slot="s"), info("c", slot="s"), limits={"s": 2})
    script.start("a")
    script.start("b")
    script.wait(2.0).end("a", 1)
    script.start("c")
    script.wait(2.0).end("b", 2)
    script.wait(1.0).end("c", 3)
    script.finish()
    with watched(browser, journal) as seen:
        _shown(seen, script.run)
        seen.reads(".figures div:has(dt:text-is('parallel speed-up')) dd", f"1.8{TIMES}")
        seen.reads(".figures div:has(dt:text-is('speed up first')) bdi", "c")
        seen.page.wait_for_selector(f".bars[data-path='{steps(journal, script)}']")
        assert seen.page.evaluate(_WAITS) > 5, "dots, since it waited for a slot"


def test_inputs_and_outputs_are_shown_long_ones_folded(browser: Any) -> None:
    journal = MemoryJournal()
    script = rescued_run(journal)
    with watched(browser, journal) as seen:
        seen.run(script.run, ".value", view="values")
        seen.reads(".value:has(bdi:text-is('topic')) pre", "weaving")
        long = ".value:has(bdi:text-is('long'))"
        assert seen.page.get_attribute(long, "open") is None
        seen.says(f"{long} summary", "63,000 characters")
        seen.page.click(f"{long} summary")
        with seen.page.expect_download() as saved:
            seen.page.click(f"{long} button")
        assert saved.value.suggested_filename == f"{script.run}-long.txt"
        assert Path(saved.value.path()).read_text("utf-8") == "thread " * 9_000
        seen.reads("[aria-label=Outputs] .value:has(bdi:text-is('defaulted')) pre", "a default")
        seen.run(asking_run(journal).run, "[aria-label=Outputs] .note", view="values")
        seen.says("[aria-label=Outputs]", "when the run has ended")


@pytest.mark.parametrize("wide", [390, 1280])
def test_the_file_of_a_timeline_is_drawn_alike(browser: Any, wide: int) -> None:
    context = browser.new_context(viewport={"width": wide, "height": 700})
    try:
        page, complaints = context.new_page(), []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.append(line.text))
        page.set_content(built(brief_events()))
        page.wait_for_selector(".name.critical")
        assert complaints == []
        assert painted(page, "#bars", "--path") > 50
        assert painted(page, "#bars", "--failed") > 20
        assert page.evaluate("document.documentElement.scrollWidth") <= wide
        assert (
            page.evaluate("document.querySelector('#legend').getBoundingClientRect().right") <= wide
        )
    finally:
        context.close()


def test_why_a_run_failed_is_read_beside_what_a_person_has_to_say(browser: Any) -> None:
    journal = MemoryJournal()
    finished_run(journal)
    with watched(browser, journal) as seen:
        seen.run(RUN, ".timeline .row", view="timeline")
        seen.until("document.querySelector('.unsettled fieldset') !== null")
        why = seen.page.locator(".reasons")
        assert why.evaluate("(list) => list.scrollHeight - list.clientHeight") <= 1
