"""`python scripts/screenshots.py [--timeline FILE.html]`: draws docs/images/*.png anew.

Needs chromium. The pages show the scripted runs of the tests; FILE.html is what `make demo` writes
to out/brief.html.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from playwright.sync_api import sync_playwright  # noqa: E402

from tests.integration.ui_browser import CHROMIUM, PATIENCE_MS, watched  # noqa: E402
from tests.serving.ui.scripted import asking_run, finished_run, wide_run  # noqa: E402
from weft.testing.journal import MemoryJournal  # noqa: E402

IMAGES = ROOT / "docs/images"
SIZE = {"width": 1360, "height": 860}
RUN = "brief-3f2a91c0de"


def draw_runs(browser: Any) -> None:
    """The page of runs: a node, the timeline in the dark theme, and ten thousand nodes."""
    journal = MemoryJournal()
    finished_run(journal)
    asking_run(journal)
    with watched(browser, journal, viewport=SIZE) as seen:
        seen.run(RUN, "aside.node .message", node="notes[1]")
        seen.page.screenshot(path=IMAGES / "ui-node.png")
    with watched(browser, journal, viewport=SIZE, color_scheme="dark") as seen:
        seen.run(RUN, ".timeline .row", view="timeline")
        seen.page.screenshot(path=IMAGES / "ui-timeline-dark.png")
    journal = MemoryJournal()
    script = wide_run(journal, 10_000)
    with watched(browser, journal, viewport=SIZE) as seen:
        seen.run(script.run, "canvas[data-nodes='3']")
        seen.until("document.querySelector('.figures').textContent.includes('8,001 / 10,003')")
        seen.page.click("text=Unfold all")
        seen.page.wait_for_selector("canvas[data-nodes='10003']")
        seen.page.screenshot(path=IMAGES / "ui-wide.png")


def draw_timeline(browser: Any, page_file: Path) -> None:
    """The timeline page of a run."""
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    page.goto(page_file.resolve().as_uri())
    page.wait_for_selector(".name.critical")
    page.screenshot(path=IMAGES / "timeline.png")


def main() -> None:
    """Draw what can be drawn with what is here."""
    parser = argparse.ArgumentParser(prog="python scripts/screenshots.py")
    parser.add_argument("--timeline", type=Path, metavar="FILE.html", help="page of `make demo`")
    arguments = parser.parse_args()
    if CHROMIUM is None:
        parser.exit(1, "screenshots need chromium on the PATH\n")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"], timeout=PATIENCE_MS
        )
        draw_runs(browser)
        if arguments.timeline:
            draw_timeline(browser, arguments.timeline)
        browser.close()


if __name__ == "__main__":
    main()
