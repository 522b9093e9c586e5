"""Builds the timeline page. Everything a model or a tool wrote is data in it, never markup.

The page asks the network for nothing, and its policy forbids any script but its own.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
from base64 import b64encode
from importlib.resources import files

from weft.cli.speech import Speech
from weft.cli.text import clean
from weft.cli.timeline.chart import chart
from weft.engine.trace import Trace

_MARK = re.compile(r"@@(\w+)@@")


def page(trace: Trace, speech: Speech) -> str:
    """The HTML text of the page for a run that has ended, or has been cut short."""
    scripts = (_strokes(), *map(_asset, ("shape.js", "paint.js", "hands.js")))
    script = '(() => {\n"use strict";\n' + "\n".join(scripts) + "})();"
    style = _asset("page.css")
    pieces = {
        "title": html.escape(clean(trace.flow) or "run"),
        "policy": "; ".join(
            (
                "default-src 'none'",
                f"script-src '{_digest(script)}'",
                f"style-src '{_digest(style)}'",
                "base-uri 'none'",
                "form-action 'none'",
            )
        ),
        "style": style,
        "script": script,
        "data": _embedded(chart(trace, speech)),
    }
    return _MARK.sub(lambda mark: pieces[mark[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return (files("weft.cli.timeline") / name).read_text(encoding="utf-8")


def _strokes() -> str:
    """What draws the rows of the page of runs, too: a module there, plain functions here."""
    strokes = files("weft") / "serving" / "ui" / "assets" / "outline" / "strokes.js"
    return strokes.read_text(encoding="utf-8").replace("export ", "")


def _digest(text: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _embedded(data: object) -> str:
    """JSON that cannot end the script element it stands in, nor open a comment there."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
