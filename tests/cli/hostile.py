"""Text that a model or a tool might write to hurt whoever looks at it."""

from __future__ import annotations

ESCAPES = (
    "\x1b[31mred\x1b[0m \x1b[2J\x1b[1;1H \x1b]0;title\x07 \x1b]52;c;Y2xpcA==\x07 "
    "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\ \x1bP1;2|q\x1b\\ \x9b31m \x9d0;t\x9c "
    "\x07\x08\r\x00 \u202eabc\u2066 \ud800"
)
MARKUP = "[bold red]not bold[/] [link=http://evil]x[/link] :smile: {{ 7*7 }}"
SCRIPT = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(1)> -->\u2028&amp;'\""
ALL = f"{ESCAPES} {MARKUP} {SCRIPT}"
FORBIDDEN = "\x1b\x07\x08\x9b\x9d\u202e\u2066\x00\r"
