"""The list operations of ParallelBench (arXiv 2510.04767), from their definitions.

The items of a question are distinct. `shuffle` takes the unchanged list for an answer too: all n!
orders are equally likely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from math import factorial
from typing import Final

from weft.decoding.diffusion.oracle.language import AnswerPattern, ListLanguage, ListQuestion

Answer = tuple[int, ...]


def _names(question: ListQuestion) -> Answer:
    return question.items


def _names_and_new(question: ListQuestion) -> Answer:
    """The name among the arguments has the code n."""
    return *question.items, question.arguments[-1]


def _items_and(more: int) -> Callable[[ListQuestion], int]:
    return lambda question: len(question.items) + more


def _exactly(count: int) -> Callable[[ListQuestion], int]:
    return lambda _: count


_SAME, _MORE, _LESS, _ONE, _TWO = *map(_items_and, (0, 1, -1)), *map(_exactly, (1, 2))


def _codes(question: ListQuestion) -> AnswerPattern:
    return tuple(range(len(question.items)))


def _replaced(codes: AnswerPattern, at: int) -> AnswerPattern:
    return *codes[:at], len(codes), *codes[at + 1 :]


def _inserted(codes: AnswerPattern, at: int) -> AnswerPattern:
    return *codes[:at], len(codes), *codes[at:]


def _removed(codes: AnswerPattern, at: int) -> AnswerPattern:
    return codes[:at] + codes[at + 1 :]


def _copy(question: ListQuestion) -> Iterator[AnswerPattern]:
    yield _codes(question)


def _reverse(question: ListQuestion) -> Iterator[AnswerPattern]:
    yield _codes(question)[::-1]


def _sort(question: ListQuestion) -> Iterator[AnswerPattern]:
    yield tuple(sorted(_codes(question), key=question.items.__getitem__))


def _replace_index(question: ListQuestion) -> Iterator[AnswerPattern]:
    yield _replaced(_codes(question), question.index)


def _insert_index(question: ListQuestion) -> Iterator[AnswerPattern]:
    yield _inserted(_codes(question), question.index)


def _remove_index(question: ListQuestion) -> Iterator[AnswerPattern]:
    yield _removed(_codes(question), question.index)


def _shuffle(question: ListQuestion) -> Iterator[AnswerPattern]:
    yield from permutations(_codes(question))


def _replace_random(question: ListQuestion) -> Iterator[AnswerPattern]:
    codes = _codes(question)
    yield from (_replaced(codes, at) for at in codes)


def _insert_random(question: ListQuestion) -> Iterator[AnswerPattern]:
    codes = _codes(question)
    yield from (_inserted(codes, at) for at in range(len(codes) + 1))


def _remove_random(question: ListQuestion) -> Iterator[AnswerPattern]:
    codes = _codes(question)
    yield from (_removed(codes, at) for at in codes)


def _choose_any(question: ListQuestion) -> Iterator[AnswerPattern]:
    yield from ((code,) for code in _codes(question))


def _pair_match(question: ListQuestion) -> Iterator[AnswerPattern]:
    yield from ((code, code) for code in _codes(question))


def _copies(question: ListQuestion, answer: Answer) -> bool:
    return answer == question.items


def _reverses(question: ListQuestion, answer: Answer) -> bool:
    return answer[::-1] == question.items


def _sorts(question: ListQuestion, answer: Answer) -> bool:
    return list(answer) == sorted(question.items)


def _replaces_there(question: ListQuestion, answer: Answer) -> bool:
    changed = list(question.items)
    changed[question.index] = question.arguments[-1]
    return list(answer) == changed


def _inserts_there(question: ListQuestion, answer: Answer) -> bool:
    changed = list(question.items)
    changed.insert(question.index, question.arguments[-1])
    return list(answer) == changed


def _removes_there(question: ListQuestion, answer: Answer) -> bool:
    changed = list(question.items)
    del changed[question.index]
    return list(answer) == changed


def _shuffles(question: ListQuestion, answer: Answer) -> bool:
    return sorted(answer) == sorted(question.items)


def _replaces(question: ListQuestion, answer: Answer) -> bool:
    if len(answer) != len(question.items):
        return False
    pairs = zip(answer, question.items, strict=True)
    return [mine for mine, theirs in pairs if mine != theirs] == [question.arguments[-1]]


def _inserts(question: ListQuestion, answer: Answer) -> bool:
    new = question.arguments[-1]
    rest = tuple(item for item in answer if item != new)
    return len(answer) == len(question.items) + 1 and rest == question.items


def _removes(question: ListQuestion, answer: Answer) -> bool:
    gone = [item for item in question.items if item not in answer]
    rest = tuple(item for item in question.items if item not in gone)
    return len(gone) == 1 and answer == rest


def _chooses(question: ListQuestion, answer: Answer) -> bool:
    return len(answer) == 1 and answer[0] in question.items


def _matches(question: ListQuestion, answer: Answer) -> bool:
    return len(answer) == 2 and answer[0] == answer[1] and answer[0] in question.items


def _orders(question: ListQuestion) -> int:
    return factorial(len(question.items))


LISTS: Final = (
    ListLanguage("copy", False, _SAME, _ONE, _names, _copy, _copies),
    ListLanguage("reverse", False, _SAME, _ONE, _names, _reverse, _reverses),
    ListLanguage("sort", False, _SAME, _ONE, _names, _sort, _sorts),
    ListLanguage(
        "replace_index",
        False,
        _SAME,
        _ONE,
        _names_and_new,
        _replace_index,
        _replaces_there,
        ("place", "item"),
    ),
    ListLanguage(
        "remove_index", False, _LESS, _ONE, _names, _remove_index, _removes_there, ("place",)
    ),
    ListLanguage(
        "insert_index",
        False,
        _MORE,
        _ONE,
        _names_and_new,
        _insert_index,
        _inserts_there,
        ("gap", "item"),
    ),
    ListLanguage("shuffle", True, _SAME, _orders, _names, _shuffle, _shuffles),
    ListLanguage(
        "replace_random", True, _SAME, _SAME, _names_and_new, _replace_random, _replaces, ("item",)
    ),
    ListLanguage(
        "insert_random", True, _MORE, _MORE, _names_and_new, _insert_random, _inserts, ("item",)
    ),
    ListLanguage("remove_random", True, _LESS, _SAME, _names, _remove_random, _removes),
    ListLanguage("choose_any", True, _ONE, _SAME, _names, _choose_any, _chooses),
    ListLanguage("pair_match", True, _TWO, _SAME, _names, _pair_match, _matches),
)
