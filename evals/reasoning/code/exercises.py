"""Twelve small programming problems of our own, each with a right solution and wrong ones.

A wrong solution is the right one with a piece of its text replaced, by a mistake that people and
models make. Most pass the public tests, which are few and kind. Knows no model.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.reasoning.code.problem import TESTS
from weft.reasoning.question import Document, Question

Arguments = Sequence[Any]
_GREEDY: Final = (
    "        fit = [coin for coin in coins if coin <= value]\n"
    "        ways = [fewest[value - max(fit)]] if fit else []\n"
)


@dataclass(frozen=True)
class Exercise:
    """`public`, `hidden` and `pool` are lists of arguments: those that everybody sees, those that
    decide whether a program is right, and those that a tester may think of.
    """

    statement: str
    solve: Callable[..., Any]
    mistakes: tuple[tuple[str, str], ...]
    public: tuple[Arguments, ...]
    hidden: tuple[Arguments, ...]
    pool: tuple[Arguments, ...]

    @property
    def name(self) -> str:
        """The name of the function that is asked for."""
        return self.solve.__name__

    @property
    def right(self) -> str:
        """The text of the right solution."""
        return inspect.getsource(self.solve)

    @property
    def wrong(self) -> list[str]:
        """The texts of the wrong solutions."""
        right = self.right
        for old, _ in self.mistakes:
            if right.count(old) != 1:
                raise ValueError(f"{self.name}: {old!r} stands there {right.count(old)} times")
        return [right.replace(old, new) for old, new in self.mistakes]

    def result(self, arguments: Arguments) -> Any:
        """The right result."""
        return self.solve(*json.loads(json.dumps(arguments)))

    def question(self) -> Question:
        """What a strategy is asked."""
        tests = [{"input": given, "expected": self.result(given)} for given in self.public]
        held = json.dumps({"function": self.name, "tests": tests})
        return Question(self.statement, documents=(Document(TESTS, held),))


def merge_intervals(intervals):  # noqa: D103
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def longest_run(text):  # noqa: D103
    best = length = 0
    last = None
    for letter in text:
        length = length + 1 if letter == last else 1
        last = letter
        best = max(best, length)
    return best


def second_largest(numbers):  # noqa: D103
    different = sorted(set(numbers))
    return different[-2] if len(different) > 1 else None


def balanced(text):  # noqa: D103
    opening = {")": "(", "]": "[", "}": "{"}
    held = []
    for letter in text:
        if letter in "([{":
            held.append(letter)
        elif letter in opening and (not held or held.pop() != opening[letter]):
            return False
    return not held


def roman(text):  # noqa: D103
    values = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
    total = 0
    for letter, following in zip(text, text[1:] + " ", strict=True):
        value = values[letter]
        total += -value if value < values.get(following, 0) else value
    return total


def rotate(numbers, steps):  # noqa: D103
    if not numbers:
        return []
    steps %= len(numbers)
    return numbers[len(numbers) - steps :] + numbers[: len(numbers) - steps]


def commonest_word(text):  # noqa: D103
    counts = {}
    for word in text.lower().split():
        word = word.strip(".,;:!?")
        if word:
            counts[word] = counts.get(word, 0) + 1
    return min(counts, key=lambda word: (-counts[word], word)) if counts else ""


def primes_below(limit):  # noqa: D103
    found = []
    for number in range(2, limit):
        if all(number % prime for prime in found if prime * prime <= number):
            found.append(number)
    return found


def fewest_coins(coins, amount):  # noqa: D103
    fewest = [0] + [None] * amount
    for value in range(1, amount + 1):
        ways = [fewest[value - coin] for coin in coins if coin <= value]
        known = [way for way in ways if way is not None]
        fewest[value] = min(known) + 1 if known else None
    return -1 if fewest[amount] is None else fewest[amount]


def first_place(numbers, target):  # noqa: D103
    low, high = 0, len(numbers)
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low


def spiral(rows):  # noqa: D103
    rows = [list(row) for row in rows]
    found = []
    while rows:
        found += rows.pop(0)
        rows = [list(row) for row in zip(*rows, strict=True)][::-1]
    return found


def day_of_year(year, month, day):  # noqa: D103
    lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
        lengths[1] = 29
    return sum(lengths[: month - 1]) + day


EXERCISES: Final = (
    Exercise(
        "Write merge_intervals(intervals): a list of [start, end] pairs of integers, in any order. "
        "Return the merged list, sorted; intervals that touch or overlap become one.",
        merge_intervals,
        (
            ("start <= merged", "start < merged"),
            ("sorted(intervals)", "intervals"),
            ("max(merged[-1][1], end)", "end"),
            ("if merged and start <= merged[-1][1]:", "if merged and start == merged[-1][1]:"),
        ),
        (([[1, 3], [2, 6], [8, 10]],), ([],)),
        (
            ([[1, 4], [4, 5]],),
            ([[5, 6], [1, 2]],),
            ([[1, 10], [2, 3]],),
            ([[1, 10], [2, 3], [4, 12]],),
            ([[0, 0], [0, 0]],),
            ([[3, 4], [1, 2], [2, 3]],),
            ([[-5, -1], [-3, 7]],),
            ([[1, 2], [3, 4]],),
        ),
        (
            ([[1, 2]],),
            ([[1, 2], [2, 3]],),
            ([[6, 7], [1, 5]],),
            ([[1, 9], [3, 4]],),
            ([[1, 2], [5, 6]],),
            ([[2, 3], [2, 3]],),
        ),
    ),
    Exercise(
        "Write longest_run(text): the length of the longest run of one repeated character in the "
        "string; 0 for an empty one.",
        longest_run,
        (
            ("best = max(best, length)\n", "best = max(best, length) if length > 1 else best\n"),
            ("if letter == last else 1", "if letter == last else 0"),
            ("        last = letter\n", "        last = last or letter\n"),
            (
                "length = length + 1 if letter == last else 1",
                "length += letter == last or not best",
            ),
        ),
        (("aab",), ("",)),
        (
            ("a",),
            ("abbbcc",),
            ("aabbb",),
            ("abab",),
            ("zzzz",),
            ("a bb  ccc",),
            ("xyyx",),
            ("aaab",),
        ),
        (("b",), ("ab",), ("abb",), ("aabb",), ("cccd",), ("abcabc",)),
    ),
    Exercise(
        "Write second_largest(numbers): the second largest different value in a list of integers; "
        "None when there is none.",
        second_largest,
        (
            ("sorted(set(numbers))", "sorted(numbers)"),
            ("different[-2] if", "different[1] if"),
            ("len(different) > 1 else None", "len(different) > 1 else different[-1]"),
            ("sorted(set(numbers))", "sorted(set(map(abs, numbers)))"),
        ),
        (([3, 1, 2],), ([10, 20, 30],)),
        (
            ([5, 5, 4],),
            ([7],),
            ([],),
            ([2, 2, 2],),
            ([-1, -2, -3],),
            ([4, 1, 3, 2],),
            ([9, 9, 8, 8],),
            ([0, -7],),
        ),
        (([1],), ([2, 2],), ([1, 2],), ([5, 4, 5],), ([-3, 3, 1],), ([1, 2, 3, 4],)),
    ),
    Exercise(
        "Write balanced(text): whether the brackets ()[]{} in the string are balanced and properly "
        "nested; other characters do not matter. Return true or false.",
        balanced,
        (
            ("return not held", "return True"),
            ("held.pop() != opening[letter]", "not held.pop()"),
            ('letter in "([{"', 'letter in "(["'),
            (
                "(not held or held.pop() != opening[letter])",
                "(held and held.pop() != opening[letter])",
            ),
        ),
        (("()[]",), ("([)]x",)),
        (("(",), ("(]",), ("{}",), (")",), ("a(b)c",), ("{[()]}",), ("((",), ("}{",), ("{[}]",)),
        (("()",), ("[",), ("]",), ("{)",), ("(())",), ("{a}",), ("[)",)),
    ),
    Exercise(
        "Write roman(text): the integer that a valid Roman numeral in capital letters stands for.",
        roman,
        (
            ("-value if value < values.get(following, 0) else value", "value"),
            ("value < values.get(following, 0)", "value <= values.get(following, 0)"),
            ('"D": 500', '"D": 50'),
            ('"L": 50,', '"L": 500,'),
        ),
        (("VI",), ("XV",)),
        (
            ("IV",),
            ("IX",),
            ("XL",),
            ("MCMXCIV",),
            ("III",),
            ("DCC",),
            ("LXXX",),
            ("CDXLIV",),
            ("M",),
        ),
        (("II",), ("IV",), ("XC",), ("LX",), ("CD",), ("MD",), ("XXI",)),
    ),
    Exercise(
        "Write rotate(numbers, steps): the list rotated to the right by steps places; steps is not "
        "negative and may be larger than the list.",
        rotate,
        (
            ("    steps %= len(numbers)\n", ""),
            ("    if not numbers:\n        return []\n", ""),
            (
                "numbers[len(numbers) - steps :] + numbers[: len(numbers) - steps]",
                "numbers[steps:] + numbers[:steps]",
            ),
            ("steps %= len(numbers)", "steps = min(steps, len(numbers))"),
        ),
        (([1, 2, 3, 4], 2), ([7], 0)),
        (
            ([1, 2, 3], 1),
            ([], 3),
            ([1, 2, 3], 4),
            ([1, 2], 7),
            ([1, 2, 3, 4, 5], 5),
            ([1, 2, 3, 4, 5], 3),
            ([9, 8], 0),
        ),
        (([1, 2], 1), ([], 0), ([1, 2, 3], 3), ([1, 2, 3], 2), ([1, 2, 3], 10), ([5, 5], 3)),
    ),
    Exercise(
        "Write commonest_word(text): the most frequent word of the text, in lower case, without "
        "the punctuation marks .,;:!? around it. Of several, the first in the alphabet; an empty "
        "string when there is no word.",
        commonest_word,
        (
            ("text.lower().split()", "text.split()"),
            ("(-counts[word], word)", "-counts[word]"),
            ('        word = word.strip(".,;:!?")\n', ""),
            (' if counts else ""', ""),
        ),
        (("a a b",), ("one two two three",)),
        (
            ("b a",),
            ("The the cat",),
            ("end. End, start",),
            ("",),
            ("x! y y x x?",),
            ("Dog dog cat cat",),
            ("... !",),
            ("z z a",),
        ),
        (("b b a a",), ("A a b b b",), ("hi, hi you",), (" ",), ("B b a",), ("one",), ("a. b b",)),
    ),
    Exercise(
        "Write primes_below(limit): the list of all primes smaller than limit, in order.",
        primes_below,
        (
            ("range(2, limit)", "range(2, limit + 1)"),
            ("prime * prime <= number", "prime * prime < number"),
            ("range(2, limit)", "range(1, limit)"),
            ("range(2, limit)", "range(3, limit, 2)"),
        ),
        ((10,), (2,)),
        ((3,), (20,), (0,), (30,), (11,), (50,), (1,), (4,), (26,)),
        ((5,), (7,), (12,), (1,), (13,), (25,), (3,)),
    ),
    Exercise(
        "Write fewest_coins(coins, amount): the smallest number of coins, each kind as often as "
        "you like, that add up to amount; -1 when there is no way. amount is 0 or more.",
        fewest_coins,
        (
            (
                "        ways = [fewest[value - coin] for coin in coins if coin <= value]\n",
                _GREEDY,
            ),
            ("coin <= value]", "coin < value]"),
            ("-1 if fewest[amount] is None else fewest[amount]", "fewest[amount]"),
            ("min(known) + 1", "max(known) + 1"),
        ),
        (([1, 2, 5], 11), ([3], 0)),
        (
            ([2], 3),
            ([1, 3, 4], 6),
            ([5], 5),
            ([2, 5], 6),
            ([7, 3], 14),
            ([1], 4),
            ([4, 5], 7),
            ([1, 7, 10], 14),
        ),
        (([2], 1), ([1], 1), ([1, 5], 6), ([2, 3], 4), ([1, 4, 5], 8), ([3, 5], 7), ([10], 10)),
    ),
    Exercise(
        "Write first_place(numbers, target): numbers is sorted. Return the first index at which "
        "target could be inserted so that the list stays sorted.",
        first_place,
        (
            ("numbers[middle] < target", "numbers[middle] <= target"),
            ("low, high = 0, len(numbers)", "low, high = 0, len(numbers) - 1"),
            ("high = middle\n", "high = middle - 1\n"),
            ("    return low", "    return max(low, 1)"),
        ),
        (([1, 3, 5], 4), ([2, 4, 6, 8], 5)),
        (
            ([1, 3, 3, 5], 3),
            ([1, 2], 9),
            ([], 1),
            ([5], 1),
            ([2, 2, 2], 2),
            ([1, 4, 6], 1),
            ([1, 4, 6, 9], 6),
            ([1, 4, 6, 9, 12], 2),
        ),
        (
            ([1, 2, 3], 2),
            ([1], 2),
            ([], 5),
            ([3, 3], 3),
            ([4, 5], 1),
            ([1, 2, 3, 4], 3),
            ([1, 9], 5),
        ),
    ),
    Exercise(
        "Write spiral(rows): the numbers of a rectangular matrix in spiral order, clockwise from "
        "the top left. The matrix may have no rows.",
        spiral,
        (
            ("[::-1]", ""),
            ("found += rows.pop(0)", "found += rows.pop()"),
            ("    while rows:\n", "    while len(rows) > 1:\n"),
            ("    while rows:\n", "    for _ in range(3):\n        rows = rows or [[]]\n"),
        ),
        (([[1, 2]],), ([[5]],)),
        (
            ([[1, 2], [3, 4]],),
            ([[1, 2, 3], [4, 5, 6], [7, 8, 9]],),
            ([],),
            ([[1], [2], [3]],),
            ([[1, 2, 3], [4, 5, 6]],),
            ([[1, 2], [3, 4], [5, 6], [7, 8]],),
        ),
        (([[1]],), ([[1], [2]],), ([[1, 2], [3, 4]],), ([[1, 2, 3]],), ([[1, 2], [3, 4], [5, 6]],)),
    ),
    Exercise(
        "Write day_of_year(year, month, day): which day of the year a date of the Gregorian "
        "calendar is; January 1 is day 1.",
        day_of_year,
        (
            (" and (year % 100 != 0 or year % 400 == 0)", ""),
            (" or year % 400 == 0", ""),
            ("lengths[: month - 1]", "lengths[:month]"),
            ("    if year % 4 == 0 and", "    if month > 3 and year % 4 == 0 and"),
        ),
        ((2023, 1, 15), (2024, 12, 31)),
        (
            (1900, 3, 1),
            (2000, 3, 1),
            (2024, 2, 29),
            (2024, 3, 1),
            (2023, 12, 31),
            (2100, 12, 31),
            (2001, 2, 28),
            (1600, 4, 30),
        ),
        (
            (2023, 3, 1),
            (2024, 3, 1),
            (2000, 12, 31),
            (1900, 12, 31),
            (2023, 2, 1),
            (2020, 1, 1),
        ),
    ),
)
