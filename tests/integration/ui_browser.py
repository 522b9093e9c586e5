"""A real headless browser that shows the page of runs, and what it must never do there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.serving.ui.ui_server import House, house
from weft.core.ports.journal import Journal
from weft.testing.journal import MemoryJournal

api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)

PATIENCE_MS = 120_000

# What the page's policy forbids is told here, and nothing that a run holds may set `owned`.
_WATCH = """
window.violations = [];
document.addEventListener('securitypolicyviolation', (event) =>
  window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""

# How many points of a canvas have exactly the colour that a style sheet names.
_PAINTED = """([canvas, name]) => {
  const own = new OffscreenCanvas(1, 1).getContext('2d');
  own.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
  own.fillRect(0, 0, 1, 1);
  const [r, g, b] = own.getImageData(0, 0, 1, 1).data;
  const drawn = document.querySelector(canvas);
  const { data } = drawn.getContext('2d').getImageData(0, 0, drawn.width, drawn.height);
  let found = 0;
  for (let i = 0; i < data.length; i += 4)
    found += data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255;
  return found; }"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium")
    with api.sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        found = playwright.chromium.launch(
            executable_path=CHROMIUM, args=arguments, timeout=PATIENCE_MS
        )
        yield found
        found.close()


@dataclass
class Watched:
    """A page of the browser. At its end `check` looks whether anything foreign has happened."""

    page: Any
    here: House
    complaints: list[str] = field(default_factory=list)

    def open(self, place: str = "", wait: str = "main") -> None:
        """Show a place of the page, which is behind `#`."""
        if self.page.url == "about:blank":
            self.page.goto(self.here.server.url)
            self.page.wait_for_selector("main")
        if place:
            self.page.evaluate("place => { location.hash = place; }", place)
        self.page.wait_for_selector(wait)

    def run(self, run: str, wait: str = "main.run", **query: str) -> None:
        """Show a run, by the page's own way to spell addresses."""
        spell = """async ([run, query]) => {
            const { address } = await import("/base/route.js");
            return address(["run", run], query); }"""
        self.open()
        self.open(self.page.evaluate(spell, [run, query]), wait)

    def text(self, selector: str) -> str:
        """What is written there."""
        found: str = self.page.inner_text(selector)
        return found

    def says(self, selector: str, words: str) -> None:
        """Wait until `words` are a part of what is written there, but for blanks."""
        place = api.expect(self.page.locator(selector).first)
        place.to_contain_text(words, use_inner_text=True, timeout=PATIENCE_MS)

    def reads(self, selector: str, text: str) -> None:
        """Wait until all that is written there is `text`, but for blanks."""
        place = api.expect(self.page.locator(selector).first)
        place.to_have_text(text, use_inner_text=True, timeout=PATIENCE_MS)

    def counts(self, selector: str, number: int) -> None:
        """Wait until there are so many elements."""
        api.expect(self.page.locator(selector)).to_have_count(number, timeout=PATIENCE_MS)

    def count(self, selector: str = "*") -> int:
        """How many elements there are."""
        found: int = self.page.locator(selector).count()
        return found

    def until(self, condition: str, argument: object = None) -> None:
        """Wait until an expression of the page's own language, or a function, holds."""
        # an expression that is no function would be given to `eval`, which the page forbids
        function = condition if condition.startswith(("(", "async ")) else f"() => {condition}"
        self.page.wait_for_function(function, arg=argument)

    def paints(self, canvas: str, name: str, least: int) -> None:
        """Wait until so many points of a canvas have the colour that a style sheet calls `name`."""
        self.until(f"([place, least]) => ({_PAINTED})(place) >= least", [[canvas, name], least])

    def check(self) -> None:
        """Nothing executed, nothing was forbidden, nobody else was asked."""
        assert not self.complaints, self.complaints
        violations = self.page.evaluate("window.violations")
        assert not violations, violations
        assert self.page.evaluate("window.owned === undefined")


@contextmanager
def watched(browser: Any, journal: Journal | None = None, **options: Any) -> Iterator[Watched]:
    """A page of its own, on a server of its own that shows `journal`."""
    with house(journal or MemoryJournal()) as here:
        given = {"viewport": {"width": 1280, "height": 800}, **options}
        context = browser.new_context(**given)
        context.set_default_timeout(PATIENCE_MS)
        context.add_init_script(_WATCH)
        seen = Watched(context.new_page(), here)
        page, tell = seen.page, seen.complaints.append
        page.on("pageerror", lambda error: tell(f"error: {error}"))
        page.on("dialog", lambda dialog: (tell(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("popup", lambda popup: tell(f"popup: {popup.url}"))
        page.on("request", lambda request: _own(request.url, here) or tell(f"asked {request.url}"))
        try:
            yield seen
            seen.check()
        finally:
            context.close()


def _own(url: str, here: House) -> bool:
    return url.startswith((f"{here.address}/", f"blob:{here.address}/"))


def painted(page: Any, canvas: str, name: str) -> int:
    """How many points of a canvas have exactly the colour that a style sheet calls `name`."""
    found: int = page.evaluate(_PAINTED, [canvas, name])
    return found
