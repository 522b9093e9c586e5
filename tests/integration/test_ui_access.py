"""The page by keyboard alone, in the dark, on a small screen, and for those who do not see it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.ui_browser import Watched, browser, watched
from tests.serving.ui.scripted import asking_run, finished_run
from weft.testing.journal import MemoryJournal

__all__ = ["browser"]

NODE = "aside.node"
RUN = "brief-3f2a91c0de"

_NAMELESS = """() => {
  const found = document.querySelectorAll(
    'button, input, select, textarea, [tabindex="0"], canvas');
  const named = (e) => e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length;
  return [...found].filter((e) => !named(e) && !e.ariaHidden).map((e) => e.outerHTML);
}"""
# WCAG 2.2: the contrast of the text of an element with what is painted behind it.
_CONTRAST = """selectors => selectors.map((selector) => {
  const rgb = (colour) => {
    const canvas = new OffscreenCanvas(1, 1).getContext('2d');
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const over = ([r, g, b, alpha], under) =>
    [r, g, b].map((c, i) => (c * alpha + under[i] * (255 - alpha)) / 255);
  const behind = (element) => {
    if (!element) return [255, 255, 255];
    const own = rgb(getComputedStyle(element).backgroundColor);
    return own[3] === 255 ? own.slice(0, 3) : over(own, behind(element.parentElement));
  };
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) =>
    0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const element = document.querySelector(selector);
  const [a, b] = [light(rgb(getComputedStyle(element).color)), light(behind(element))];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
})"""
_TEXTS = (
    "main h1",
    "nav a",
    ".figures dd",
    ".figures dt",
    ".reasons li",
    "#tab-graph",
    "#tab-timeline",
    f"{NODE} h2",
    f"{NODE} pre",
    f"{NODE} .note",
    f"{NODE} h4",
    f"{NODE} .failure .message",
    "main .state",
)


def focused(seen: Watched) -> str:
    """What has the focus, as those hear it who do not see it."""
    found: str = seen.page.evaluate(
        "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"
    )
    return found.strip()


def press(seen: Watched, *keys: str) -> None:
    for key in keys:
        seen.page.keyboard.press(key)


def tab_to(seen: Watched, words: str) -> None:
    """Press Tab until what has the focus begins with `words`; the focus is always visible."""
    for _ in range(25):
        press(seen, "Tab")
        assert seen.page.evaluate("document.activeElement.matches(':focus-visible')")
        outline = seen.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none"
        if focused(seen).startswith(words):
            return
    raise AssertionError(f"no way by Tab to {words!r}; last: {focused(seen)!r}")


def test_all_of_it_by_keyboard(browser: Any) -> None:
    journal = MemoryJournal()
    finished_run(journal)
    script = asking_run(journal)
    with watched(browser, journal) as seen:
        seen.open(wait=".extent .run")
        press(seen, "Tab")
        assert focused(seen) == "Skip to the content"
        tab_to(seen, "Find a run")
        tab_to(seen, "Runs; brief-77aa01b2c3")
        press(seen, "ArrowDown", " ", "ArrowUp", " ")
        seen.page.wait_for_selector("text=Compare (2 of 2)")
        press(seen, "Enter")
        seen.page.wait_for_selector("canvas[data-nodes]")
        tab_to(seen, "Graph")
        tab_to(seen, "Graph of the run")
        press(seen, "ArrowRight")
        seen.page.wait_for_selector(f"{NODE} h2 bdi:text-is('files')")
        press(seen, "ArrowRight")
        seen.page.wait_for_selector(f"{NODE} h2 bdi:text-is('documents')")
        seen.reads("#graph-said", "documents, map, succeeded")
        press(seen, "Enter")
        seen.page.wait_for_selector("canvas[data-nodes='11']")
        press(seen, "+", "-", "0", "Escape")
        seen.page.wait_for_selector(NODE, state="detached")
        seen.page.focus("#tab-graph")
        press(seen, "ArrowRight")
        seen.page.wait_for_selector(".outline .row")
        assert focused(seen) == "Timeline"
        tab_to(seen, "Nodes of the run")
        press(seen, "End", "ArrowUp")
        seen.page.wait_for_selector(f"{NODE} h2 bdi:text-is('review')")
        current = seen.page.get_attribute(".outline .scroll", "aria-activedescendant")
        assert seen.page.get_attribute(f"#{current}", "aria-selected") == "true"
        seen.page.wait_for_selector(f"{NODE} form")
        seen.page.focus("form input[type=radio]")
        press(seen, " ", "Tab", "w", "Tab", "Tab", "Tab", "Enter")
        seen.page.wait_for_selector("form button:disabled")
        (letter,) = journal.letters(script.run)
        assert letter.value == {"approve": True, "tone": "warm", "copies": 1}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_in_both_themes(browser: Any, scheme: str) -> None:
    journal = MemoryJournal()
    finished_run(journal)
    with watched(browser, journal, color_scheme=scheme, reduced_motion="reduce") as seen:
        seen.run(RUN, f"{NODE} .failure .message", node="report")
        assert seen.page.evaluate("document.documentElement.dataset.theme") == scheme
        ratios = dict(zip(_TEXTS, seen.page.evaluate(_CONTRAST, list(_TEXTS)), strict=True))
        assert min(ratios.values()) >= 4.5, ratios
        animated = "getComputedStyle(document.querySelector('.state'), '::before').animationName"
        assert seen.page.evaluate(animated) == "none"
        other = "light" if scheme == "dark" else "dark"
        seen.page.click(f"[aria-label='Use {other} colours']")
        assert seen.page.evaluate("document.documentElement.dataset.theme") == other
        seen.page.reload()
        seen.page.wait_for_selector("main.run")
        assert seen.page.evaluate("document.documentElement.dataset.theme") == other


def test_everything_has_a_name_and_a_role(browser: Any) -> None:
    journal = MemoryJournal()
    finished_run(journal)
    asking_run(journal)
    with watched(browser, journal, viewport={"width": 640, "height": 700}) as seen:
        for place, wait in (
            ("#/", ".extent .run"),
            (f"#/run/{RUN}?node=report", f"{NODE} .call"),
            ("#/run/brief-77aa01b2c3?view=timeline&node=review", "form"),
            (f"#/compare/{RUN}/brief-77aa01b2c3", ".extent .pair"),
        ):
            seen.open(place, wait)
            assert seen.page.evaluate(_NAMELESS) == []
            seen.counts("h1", 1)
            seen.counts("main#main", 1)
            assert seen.page.evaluate("document.documentElement.lang") == "en"
            ids = seen.page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
            assert len(ids) == len(set(ids))
