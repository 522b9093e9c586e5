"""Leak scan: cases of dev and held_out in the texts that a patch adds.

A word counts by its inverse document frequency over the cases, so that what all inputs share is no
evidence. It does not see translations, or answers without their inputs where these are short.
"""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.evaluation.case import Case
from weft.optimisation.edits.patch import Patch
from weft.optimisation.result import Leak

NEAR: Final = 0.85
"""Share of an input's weight that is a copy by itself; of a long answer's, too."""
NEAR_PAIR: Final = 0.7
"""Share of an input's weight that is a copy where the answer follows."""
LONG: Final = 6
"""Words of a text that can be a leak by itself."""
_AFTER: Final = 12
"""Words between an input and its answer, at most."""
_PAIRS: Final = 3
"""Pairs of a number as id and an answer that are a list, not a coincidence."""
Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Target:
    case: Case
    inputs: Words
    gold: Words
    own_gold: bool


class LeakScan:
    """Cases of dev and held_out, indexed for scans. Cases of train may be shown."""

    def __init__(self, cases: Sequence[Case]) -> None:
        every = [(case, words_of(case.inputs), words_of(case.expected)) for case in cases]
        self._total = len(every)
        self._frequency = Counter(word for _, inputs, gold in every for word in {*inputs, *gold})
        shown = {gold for case, _, gold in every if case.split == "train"}
        self._targets = [
            _Target(case, inputs, gold, len(gold) >= LONG and gold not in shown)
            for case, inputs, gold in every
            if case.split != "train"
        ]

    def leaks(self, patch: Patch, before: Iterable[str] = ()) -> list[Leak]:
        """The leaks of a patch, in the order of its edits; none that `before` has already.

        `before`: texts of the workflow without the patch.
        """
        known = {(leak.case, leak.what) for text in before for leak in self._of_text("", text)}
        found: dict[tuple[str, str, str], Leak] = {}
        for edit in patch.plain():
            place = f"{edit['edit']} {edit['node']}"
            for text in _parts_of(edit):
                for leak in self._of_text(place, text):
                    if (leak.case, leak.what) not in known:
                        found.setdefault((leak.place, leak.case, leak.what), leak)
        return list(found.values())

    def _of_text(self, place: str, text: str) -> Iterator[Leak]:
        words = words_of(text)
        present = Counter(words)
        listed = [each for each in self._targets if _is_listed(each, words, present)]
        numbered = sum(each.case.id.isdigit() for each in listed)
        for each in self._targets:
            what = self._copied(each, words, present)
            by_id = each in listed and (not each.case.id.isdigit() or numbered >= _PAIRS)
            if not what and by_id:
                what = "its id with its answer"
            if what:
                yield Leak(place, each.case.id, each.case.split, what)

    def _copied(self, target: _Target, words: Words, present: Counter[str]) -> str:
        """What of a case the words have, or nothing."""
        share, end = self._nearest(target.inputs, words, present)
        after = words[max(end - len(target.inputs), 0) : end + _AFTER + len(target.gold)]
        if share >= NEAR_PAIR and _has(after, target.gold):
            return "its input with its answer"
        if share >= NEAR and len(target.inputs) >= LONG:
            return "its input"
        if target.own_gold and self._nearest(target.gold, words, present)[0] >= NEAR:
            return "its answer"
        return ""

    def _nearest(self, part: Words, words: Words, present: Counter[str]) -> tuple[float, int]:
        """The largest share of `part`'s weight in one window of `words`, and the window's end.

        A window without all numbers of `part` has none: with another number it is another case.
        """
        need = Counter(part)
        weights = {word: self._weight(word) * count for word, count in need.items()}
        whole = sum(weights.values())
        if not whole or sum(w for word, w in weights.items() if present[word]) < NEAR_PAIR * whole:
            return 0.0, 0
        size = len(part) + len(part) // 4
        best = (0.0, 0)
        have: Counter[str] = Counter()
        for index, word in enumerate(words):
            have[word] += 1
            if index >= size:
                have[words[index - size]] -= 1
            if word in need:
                share = self._share(need, have) / whole
                best = max(best, (share, index + 1), key=lambda each: each[0])
        share, end = best
        if share < NEAR_PAIR:
            return 0.0, 0
        return self._in_order(part, words[max(end - size, 0) : end]) / whole, end

    def _in_order(self, part: Words, window: Words) -> float:
        """The weight of the words of `part` that the window has in their order."""
        blocks = difflib.SequenceMatcher(None, part, window, autojunk=False).get_matching_blocks()
        return sum(self._weight(w) for a, _, size in blocks for w in part[a : a + size])

    def _share(self, need: Counter[str], have: Counter[str]) -> float:
        total = 0.0
        for word, count in need.items():
            if have[word] < count and any(char.isdigit() for char in word):
                return 0.0
            total += self._weight(word) * min(count, have[word])
        return total

    def _weight(self, word: str) -> float:
        return math.log((self._total + 1) / max(self._frequency[word], 1))


def leaks_of(patch: Patch, cases: Sequence[Case], before: Iterable[str] = ()) -> list[Leak]:
    """The leaks of a patch: `LeakScan(cases).leaks(patch, before)`.

    `cases`: of all splits. A leak is an input of dev or held_out with its answer, an input of at
    least 6 words, an answer of at least 6 words that no case of train has, or ids with answers.
    """
    return LeakScan(cases).leaks(patch, before)


def words_of(value: Any) -> Words:
    """The words and numbers of all texts of `value`, without case and width, in order."""
    text = unicodedata.normalize("NFKC", "\n".join(texts_of(value))).casefold()
    return tuple(re.findall(r"\w+", text))


def _parts_of(edit: Mapping[str, Any]) -> Iterator[str]:
    """The texts of an edit to scan one by one: each demonstration, and all else together."""
    for each in edit.get("demonstrations", ()):
        yield "\n".join(texts_of(each))
    skipped = ("edit", "node", "demonstrations")
    yield "\n".join(texts_of({key: each for key, each in edit.items() if key not in skipped}))


def texts_of(value: Any) -> Iterator[str]:
    """All texts and numbers in `value`, in order; no keys."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from texts_of(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts_of(each)
    elif value is not None:
        yield str(value)


def _has(words: Words, part: Words) -> bool:
    size = len(part)
    return bool(size) and any(words[at : at + size] == part for at in range(len(words) - size + 1))


def _is_listed(target: _Target, words: Words, present: Counter[str]) -> bool:
    name = words_of(target.case.id)
    pair = (*name, *target.gold)
    return bool(name and target.gold and present[name[0]]) and _has(words, pair)
