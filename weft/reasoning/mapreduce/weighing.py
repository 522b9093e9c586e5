"""Weighs what notes answer by how sure they are: the part of a conflict that needs no model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from weft.reasoning.mapreduce.note import NOTHING, Note

_WORDS: Final = re.compile(r"\w+")


def weigh(notes: Sequence[Note]) -> tuple[tuple[str, float], ...]:
    """Each answer of `notes` with the sum of the confidence behind it, the heaviest first.

    Answers of the same words, in whatever case, are one, spelt as its surest note spells it; at
    equal weight the one that was read first comes first.
    """
    weights: dict[str, float] = {}
    spelt: dict[str, Note] = {}
    for note in notes:
        words = " ".join(_WORDS.findall(note.answer.casefold()))
        if not words or note.answer.upper().startswith(NOTHING):
            continue
        weights[words] = weights.get(words, 0.0) + note.confidence
        if words not in spelt or note.confidence > spelt[words].confidence:
            spelt[words] = note
    order = sorted(weights, key=lambda words: -weights[words])
    return tuple((spelt[words].answer, weights[words]) for words in order)


def surest(notes: Sequence[Note], keep: int) -> list[Note]:
    """The `keep` notes of the highest confidence, in their old order; of equals the earlier."""
    order = sorted(range(len(notes)), key=lambda place: -notes[place].confidence)
    return [notes[place] for place in sorted(order[:keep])]


def grouped(sizes: Sequence[int], room: int) -> list[range]:
    """Neighbours in groups that fit into `room` together; one that fits into none is alone."""
    groups: list[range] = []
    start = filled = 0
    for place, size in enumerate(sizes):
        if place > start and filled + size > room:
            groups.append(range(start, place))
            start, filled = place, 0
        filled += size
    return [*groups, range(start, len(sizes))] if sizes else []
