"""docs/speculative.md tells of every decoder what the registry says of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from weft.decoding.speculative.presets import NAMES, preset

GUIDE = (Path(__file__).parents[3] / "docs" / "speculative.md").read_text("utf-8")


def lines() -> Iterator[str]:
    for name in NAMES:
        found = preset(name)
        text = "the same" if found.lossless else "**may differ**"
        told = found.published
        published = "" if told is None else f"{told.tokens_per_pass:.2f}: {told.where}"
        yield f"| `{name}` | {text} | {published} | {found.needs or 'nothing'} |"


def test_the_table_is_that_of_the_registry() -> None:
    (table,) = re.findall(r"^\| decoder \|.*\n\|[-|]+\n((?:\|.*\n)+)", GUIDE, re.MULTILINE)
    assert table.splitlines() == list(lines())
