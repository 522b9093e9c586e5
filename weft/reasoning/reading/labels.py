"""Text in which lines begin with a label, such as `Answer:`. Knows no label of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence


def labelled(text: str, labels: Sequence[str]) -> dict[str, list[str]]:
    """What stands behind each of `labels` in `text`, up to the next label or the end, in order.

    Labels may be written in any case, numbered, and set in bold. Those that are not there are not
    in the answer, nor is what stands before the first label.
    """
    either = "|".join(re.escape(label) for label in labels)
    begins = re.compile(
        rf"^[ \t]{{0,8}}(?:\d{{1,3}}[.)] ?)?[*_#]{{0,3}} ?({either})[*_]{{0,2}} ?:[*_]{{0,2}}",
        re.IGNORECASE | re.MULTILINE,
    )
    spelt = {label.casefold(): label for label in labels}
    found = list(begins.finditer(text))
    parts: dict[str, list[str]] = {}
    for place, label in enumerate(found):
        end = found[place + 1].start() if place + 1 < len(found) else len(text)
        part = text[label.end() : end].strip()
        parts.setdefault(spelt[label[1].casefold()], []).append(part)
    return parts
