"""The list operations of ParallelBench (arXiv 2510.04767), from their definitions.

The items of a question are distinct. `shuffle` takes the unchanged list for an answer too: all n!
orders are equally likely. Knows no canvas.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from math import factorial
from typing import Final

from weft.decoding.diffusion.oracle.language import Language, Pattern
from weft.decoding.diffusion.oracle.question import Question

Answer = tuple[int, ...]


def _names(question: Question) -> Answer:
    return question.items


def _names_and_new(question: Question) -> Answer:
    """The name among the arguments has the code n."""
    return *question.items, question.arguments[-1]


def _same(question: Question) -> int:
    return len(question.items)


def _more(question: Question) -> int:
    return len(question.items) + 1


def _less(question: Question) -> int:
    return len(question.items) - 1


def _one(_: Question) -> int:
    return 1


def _two(_: Question) -> int:
    return 2


def _codes(question: Question) -> Pattern:
    return tuple(range(len(question.items)))


def _replaced(codes: Pattern, at: int) -> Pattern:
    return *codes[:at], len(codes), *codes[at + 1 :]


def _inserted(codes: Pattern, at: int) -> Pattern:
    return *codes[:at], len(codes), *codes[at:]


def _removed(codes: Pattern, at: int) -> Pattern:
    return codes[:at] + codes[at + 1 :]


def _copy(question: Question) -> Iterator[Pattern]:
    yield _codes(question)


def _reverse(question: Question) -> Iterator[Pattern]:
    yield _codes(question)[::-1]


def _sort(question: Question) -> Iterator[Pattern]:
    yield tuple(sorted(_codes(question), key=question.items.__getitem__))


def _replace_index(question: Question) -> Iterator[Pattern]:
    yield _replaced(_codes(question), question.index)


def _insert_index(question: Question) -> Iterator[Pattern]:
    yield _inserted(_codes(question), question.index)


def _remove_index(question: Question) -> Iterator[Pattern]:
    yield _removed(_codes(question), question.index)


def _shuffle(question: Question) -> Iterator[Pattern]:
    yield from permutations(_codes(question))


def _replace_random(question: Question) -> Iterator[Pattern]:
    codes = _codes(question)
    yield from (_replaced(codes, at) for at in codes)


def _insert_random(question: Question) -> Iterator[Pattern]:
    codes = _codes(question)
    yield from (_inserted(codes, at) for at in range(len(codes) + 1))


def _remove_random(question: Question) -> Iterator[Pattern]:
    codes = _codes(question)
    yield from (_removed(codes, at) for at in codes)


def _choose_any(question: Question) -> Iterator[Pattern]:
    yield from ((code,) for code in _codes(question))


def _pair_match(question: Question) -> Iterator[Pattern]:
    yield from ((code, code) for code in _codes(question))


def _copies(question: Question, answer: Answer) -> bool:
    return answer == question.items


def _reverses(question: Question, answer: Answer) -> bool:
    return answer[::-1] == question.items


def _sorts(question: Question, answer: Answer) -> bool:
    return list(answer) == sorted(question.items)


def _replaces_there(question: Question, answer: Answer) -> bool:
    changed = list(question.items)
    changed[question.index] = question.arguments[-1]
    return list(answer) == changed


def _inserts_there(question: Question, answer: Answer) -> bool:
    changed = list(question.items)
    changed.insert(question.index, question.arguments[-1])
    return list(answer) == changed


def _removes_there(question: Question, answer: Answer) -> bool:
    changed = list(question.items)
    del changed[question.index]
    return list(answer) == changed


def _shuffles(question: Question, answer: Answer) -> bool:
    return sorted(answer) == sorted(question.items)


def _replaces(question: Question, answer: Answer) -> bool:
    if len(answer) != len(question.items):
        return False
    pairs = zip(answer, question.items, strict=True)
    return [mine for mine, theirs in pairs if mine != theirs] == [question.arguments[-1]]


def _inserts(question: Question, answer: Answer) -> bool:
    new = question.arguments[-1]
    rest = tuple(item for item in answer if item != new)
    return len(answer) == len(question.items) + 1 and rest == question.items


def _removes(question: Question, answer: Answer) -> bool:
    gone = [item for item in question.items if item not in answer]
    rest = tuple(item for item in question.items if item not in gone)
    return len(gone) == 1 and answer == rest


def _chooses(question: Question, answer: Answer) -> bool:
    return len(answer) == 1 and answer[0] in question.items


def _matches(question: Question, answer: Answer) -> bool:
    return len(answer) == 2 and answer[0] == answer[1] and answer[0] in question.items


def _orders(question: Question) -> int:
    return factorial(len(question.items))


LISTS: Final = (
    Language("copy", False, _same, _one, _names, _copy, _copies),
    Language("reverse", False, _same, _one, _names, _reverse, _reverses),
    Language("sort", False, _same, _one, _names, _sort, _sorts),
    Language(
        "replace_index",
        False,
        _same,
        _one,
        _names_and_new,
        _replace_index,
        _replaces_there,
        ("place", "item"),
    ),
    Language("remove_index", False, _less, _one, _names, _remove_index, _removes_there, ("place",)),
    Language(
        "insert_index",
        False,
        _more,
        _one,
        _names_and_new,
        _insert_index,
        _inserts_there,
        ("gap", "item"),
    ),
    Language("shuffle", True, _same, _orders, _names, _shuffle, _shuffles),
    Language(
        "replace_random",
        True,
        _same,
        _same,
        _names_and_new,
        _replace_random,
        _replaces,
        ("item",),
    ),
    Language(
        "insert_random", True, _more, _more, _names_and_new, _insert_random, _inserts, ("item",)
    ),
    Language("remove_random", True, _less, _same, _names, _remove_random, _removes),
    Language("choose_any", True, _one, _same, _names, _choose_any, _chooses),
    Language("pair_match", True, _two, _same, _names, _pair_match, _matches),
)
