"""The two consoles. Nothing printed on them is taken for markup; files and pipes get plain text."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_PLAIN_WIDTH = 120


def stdout() -> Console:
    """Where results go."""
    return console_on(sys.stdout)


def stderr() -> Console:
    """Where progress, questions and errors go."""
    return console_on(sys.stderr)


def console_on(stream: TextIO) -> Console:
    """A console on `stream` that prints text as it is, and colours it only on a terminal."""
    from rich.console import Console

    console = Console(file=stream, markup=False, highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PLAIN_WIDTH
    return console
