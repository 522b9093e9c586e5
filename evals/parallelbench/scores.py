"""Whether an answer is right, by ParallelBench's rules: the lenient reading of lists is its own.

A list is what follows the last `[`, up to the next `]`, split at commas, without quotes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

Square = list[list[str]]


def listed(text: str) -> list[str]:
    """The items of the list in an answer."""
    inside = text.rsplit("[", 1)[-1].split("]", 1)[0]
    return [item.strip('" \n') for item in inside.split(",") if item.strip()]


def is_list(text: str, wanted: Sequence[str]) -> bool:
    """Exactly that list."""
    return listed(text) == list(wanted)


def is_shuffled(text: str, items: Sequence[str]) -> bool:
    """The same items in another order."""
    found = listed(text)
    return sorted(found) == sorted(items) and found != list(items)


def has_inserted(text: str, items: Sequence[str], word: str) -> bool:
    """The list with the word in it, anywhere."""
    found = listed(text)
    if word not in found:
        return False
    found.remove(word)
    return found == list(items)


def has_removed(text: str, items: Sequence[str]) -> bool:
    """The list without one of its items, any of them."""
    found = listed(text)
    return any(found == [*items[:at], *items[at + 1 :]] for at in range(len(items)))


def has_replaced(text: str, items: Sequence[str], word: str) -> bool:
    """The list with the word in the place of one of its items, any of them."""
    found = listed(text)
    return any(found == [*items[:at], word, *items[at + 1 :]] for at in range(len(items)))


def is_latin_square(text: str, symbols: Sequence[str]) -> bool:
    """The first rows of all symbols form a square: no symbol twice in a row or column."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    rows = [row for row in rows if set(row) == set(symbols)][: len(symbols)]
    if len(rows) < len(symbols):
        return False
    every = set(symbols)
    return all(
        len(line) == len(symbols) and set(line) == every
        for line in [*rows, *zip(*rows, strict=False)]
    )


def is_sudoku(text: str, puzzle: Sequence[str]) -> bool:
    """A filled 4 by 4 grid that keeps the given cells: rows, columns and quarters of 1 to 4."""
    lines = ["".join(line.split()) for line in text.splitlines()]
    grid = [line for line in lines if len(line) == 4 and set(line) <= set("1234")][:4]
    if len(grid) < 4:
        return False
    kept = all(
        given in ("_", cell)
        for row, wanted in zip(grid, puzzle, strict=True)
        for cell, given in zip(row, wanted, strict=True)
    )
    quarters = [
        "".join(grid[top + y][left + x] for y, x in itertools.product(range(2), repeat=2))
        for top, left in itertools.product((0, 2), repeat=2)
    ]
    columns = ["".join(column) for column in zip(*grid, strict=True)]
    return kept and all(set(line) == set("1234") for line in [*grid, *columns, *quarters])


def has_words(text: str, words: Sequence[str]) -> bool:
    """All words are in the text: the part of the score of sentences that needs no grammar."""
    return all(word in text for word in words)
