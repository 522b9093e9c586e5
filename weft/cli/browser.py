"""Opens a page whose address is a secret in the person's browser."""

from __future__ import annotations

import html
import os
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PAGE = """<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={url}">
<title>weft</title><a href="{url}">weft</a>
"""


def has_windows() -> bool:
    """Whether a browser could open a window here, beside the terminal that we have."""
    if not sys.stdout.isatty():
        return False
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


@contextmanager
def door_to(url: str) -> Iterator[str]:
    """The address of a file that leads to `url`, and that only its owner can read.

    Other people on this machine see which programs run, and with which arguments.
    """
    with tempfile.TemporaryDirectory(prefix="weft-ui-") as folder:  # 0700
        page = Path(folder) / "weft.html"
        page.write_text(_PAGE.format(url=html.escape(url)), encoding="utf-8")
        yield page.as_uri()


def open_window(address: str) -> None:
    """Show `address` in the browser; nothing happens where there is none."""
    webbrowser.open(address)
