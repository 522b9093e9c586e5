"""What looks like success and is not, in a real browser: nothing of it looks like plain success."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.ui_browser import browser, painted, watched
from tests.serving.ui.scripted import finished_run, rescued_run
from weft.testing.journal import MemoryJournal

__all__ = ["browser"]

NODE = "aside.node"
STATES = {
    "plain": "succeeded",
    "cached": "from cache",
    "recalled": "succeeded earlier",
    "defaulted": "default used",
    "rerouted": "fallback used",
    "pay": "default used",
    "cut": "skipped by a failure",
    "out": "skipped",
    "gone": "failed",
    "each": "succeeded",
}
_COLOURS = """() => Object.fromEntries([...document.querySelectorAll('.row')].map((row) => {
  const dot = getComputedStyle(row.querySelector('.dot'), '::before');
  const look = [dot.backgroundColor, dot.borderTopWidth, dot.transform].join(' ');
  return [row.querySelector('.id').textContent, look]; }))"""


def test_only_plain_success_looks_like_it(browser: Any) -> None:
    journal = MemoryJournal()
    script = rescued_run(journal)
    with watched(browser, journal) as seen:
        seen.run(script.run, ".outline .row", view="timeline")
        for name, words in STATES.items():
            row = f".outline .row:has(.id:text-is('{name}'))"
            seen.reads(f"{row} .dot .word", words)
        looks = seen.page.evaluate(_COLOURS)
        same = [name for name in STATES if looks[name] == looks["plain"]]
        assert same == ["plain", "each"]
        seen.reads(".outline .row:has(.id:text-is('pay')) .unsure", "? effect unknown")
        seen.counts(".outline .unsure", 1)
        for figure in (
            "5\nby default or fallback",
            "2\nskipped or cancelled",
            "1\neffects unknown",
        ):
            number, _, label = figure.partition("\n")
            place = f".figures div:has(dt:text-is('{label}')) dd"
            seen.reads(place, number)
        seen.page.select_option("select[aria-label='Which nodes']", "substituted")
        shown = seen.page.locator(".outline .row .id")
        seen.counts(".outline .row", 6)
        assert set(shown.all_inner_texts()) == {
            "defaulted",
            "rerouted",
            "pay",
            "each",
            "[1]",
            "[2]",
        }


def test_a_node_says_what_its_default_stands_for(browser: Any) -> None:
    journal = MemoryJournal()
    script = rescued_run(journal)
    with watched(browser, journal) as seen:
        seen.run(script.run, f"{NODE} .failure", node="pay")
        seen.reads(f"{NODE} .line .state", "default used")
        seen.reads(f"{NODE} .line .state.unsure", "effect unknown")
        seen.says(f"{NODE} section:has(.failure) h3", "It failed, and its default was used")
        seen.says(f"{NODE} .failure", "the bank hung up")
        seen.page.click(f"{NODE} [aria-label=Close]")
        seen.page.wait_for_selector("canvas[data-nodes]")
        seen.page.focus(".graph canvas")
        seen.page.keyboard.press("ArrowRight")
        seen.says("#graph-said", "succeeded")
        seen.run(script.run, f"{NODE} .state.cached", node="cached")
        seen.reads("#graph-said", "cached, tool, from cache")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_graph_paints_them_apart(browser: Any, theme: str) -> None:
    journal = MemoryJournal()
    script = rescued_run(journal)
    with watched(browser, journal, color_scheme=theme) as seen:
        seen.run(script.run, "canvas[data-nodes]")
        seen.paints(".graph canvas", "--substituted", 100)
        seen.run(finished_run(journal).run, "canvas[data-nodes='14']")
        seen.paints(".graph canvas", "--failed", 1)
        assert painted(seen.page, ".graph canvas", "--substituted") == 0
