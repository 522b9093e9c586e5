"""Answers that hold together: Latin squares, parity, brackets, sentences from given words."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from math import comb, factorial
from typing import Final

from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.language import AnswerPattern, ListLanguage, ListQuestion

Answer = tuple[int, ...]

_SQUARES: Final = (1, 1, 2, 12, 576, 161_280, 812_851_200)
"""Latin squares of order 0 to 6 (OEIS A002860)."""


def _names(question: ListQuestion) -> Answer:
    return question.items


def _size(question: ListQuestion) -> int:
    return len(question.items)


# a row that may stand below the row given: no item stays in its column


def _derangements(question: ListQuestion) -> int:
    before, now = 1, 0
    for n in range(2, _size(question) + 1):
        before, now = now, (n - 1) * (now + before)
    return now


def _rows(question: ListQuestion) -> Iterator[AnswerPattern]:
    codes = range(_size(question))
    yield from (row for row in permutations(codes) if all(c != at for at, c in enumerate(row)))


def _is_row(question: ListQuestion, answer: Answer) -> bool:
    moved = all(mine != theirs for mine, theirs in zip(answer, question.items, strict=False))
    return moved and sorted(answer) == sorted(question.items)


# a whole square of the items, row after row


def _area(question: ListQuestion) -> int:
    return _size(question) ** 2


def _square_count(question: ListQuestion) -> int:
    return _SQUARES[_size(question)]


def _squares(question: ListQuestion) -> Iterator[AnswerPattern]:
    n = _size(question)
    rows = list(permutations(range(n)))

    def below(above: tuple[AnswerPattern, ...]) -> Iterator[AnswerPattern]:
        if len(above) == n:
            yield tuple(code for row in above for code in row)
            return
        for row in rows:
            if all(a != b for other in above for a, b in zip(row, other, strict=True)):
                yield from below((*above, row))

    yield from below(())


def _is_square(question: ListQuestion, answer: Answer) -> bool:
    n = _size(question)
    lines = [answer[at * n : (at + 1) * n] for at in range(n)]
    lines += [answer[at::n] for at in range(n)]
    return len(answer) == n * n and all(sorted(x) == sorted(question.items) for x in lines)


# a free bit for each item, then whether the ones are even or odd: it depends on all before


def _bits(_: ListQuestion) -> Answer:
    return words.index_id(0), words.index_id(1), words.EVEN, words.ODD


def _bits_and_parity(question: ListQuestion) -> int:
    return _size(question) + 1


def _bit_strings(question: ListQuestion) -> int:
    return int(2 ** _size(question))


def _parities(question: ListQuestion) -> Iterator[AnswerPattern]:
    for bits in product((0, 1), repeat=_size(question)):
        yield *bits, 2 + sum(bits) % 2


def _has_parity(question: ListQuestion, answer: Answer) -> bool:
    zero, one, even, odd = _bits(question)
    bits, last = answer[:-1], answer[-1:]
    right = odd if bits.count(one) % 2 else even
    known = all(bit in (zero, one) for bit in bits)
    return len(bits) == _size(question) and known and last == (right,)


# a pair of brackets for each item


def _brackets(_: ListQuestion) -> Answer:
    return words.OPEN, words.CLOSE


def _pairs(question: ListQuestion) -> int:
    return 2 * _size(question)


def _catalan(question: ListQuestion) -> int:
    n = _size(question)
    return comb(2 * n, n) // (n + 1)


def _balanced(question: ListQuestion) -> Iterator[AnswerPattern]:
    n = _size(question)

    def after(written: AnswerPattern) -> Iterator[AnswerPattern]:
        closed = sum(written)
        opened = len(written) - closed
        if closed == n:
            yield written
        if opened < n:
            yield from after((*written, 0))
        if closed < opened:
            yield from after((*written, 1))

    yield from after(())


def _is_balanced(question: ListQuestion, answer: Answer) -> bool:
    depth = 0
    for token in answer:
        depth += {words.OPEN: 1, words.CLOSE: -1}.get(token, -len(answer))
        if depth < 0:
            return False
    return depth == 0 and len(answer) == _pairs(question)


# every word once, as: adjectives noun verb adjectives noun adverbs

_KINDS: Final = "anvd"
_SENTENCE: Final = "noun, verb, noun, with adjectives before a noun and adverbs at the end"


def word_class(word: int) -> str:
    """`a` adjective, `n` noun, `v` verb, `d` adverb; empty for what is no word of a sentence."""
    if not words.FIRST_ADJECTIVE <= word < words.SIZE:
        return ""
    firsts = (words.FIRST_NOUN, words.FIRST_VERB, words.FIRST_ADVERB)
    return _KINDS[sum(word >= first for first in firsts)]


def _kinds(question: ListQuestion) -> dict[str, AnswerPattern]:
    all_ = range(_size(question))
    return {
        name: tuple(c for c in all_ if word_class(question.items[c]) == name) for name in _KINDS
    }


def _sentence_count(question: ListQuestion) -> int:
    of = {name: len(codes) for name, codes in _kinds(question).items()}
    if of["n"] != 2 or of["v"] != 1 or sum(of.values()) != _size(question):
        return 0
    return 2 * factorial(of["a"]) * (of["a"] + 1) * factorial(of["d"])


def _sentences(question: ListQuestion) -> Iterator[AnswerPattern]:
    if not _sentence_count(question):
        return
    of = _kinds(question)
    for (subject, object_), big, late in product(
        permutations(of["n"]), permutations(of["a"]), permutations(of["d"])
    ):
        for cut in range(len(big) + 1):
            yield *big[:cut], subject, *of["v"], *big[cut:], object_, *late


def _is_sentence(question: ListQuestion, answer: Answer) -> bool:
    shape = "".join(word_class(word) or "?" for word in answer)
    bare = shape.rstrip("d").replace("a", "")
    before_noun = "av" not in shape and "ad" not in shape and not shape.endswith("a")
    return bare == "nvn" and before_noun and sorted(answer) == sorted(question.items)


PUZZLES: Final = (
    ListLanguage("latin_row", True, _size, _derangements, _names, _rows, _is_row),
    ListLanguage(
        "latin_square", True, _area, _square_count, _names, _squares, _is_square, longest=4
    ),
    ListLanguage("parity", True, _bits_and_parity, _bit_strings, _bits, _parities, _has_parity),
    ListLanguage("brackets", True, _pairs, _catalan, _brackets, _balanced, _is_balanced),
    ListLanguage(
        "words_to_sentence",
        True,
        _size,
        _sentence_count,
        _names,
        _sentences,
        _is_sentence,
        items="words",
        shortest=3,
        longest=8,
    ),
)
