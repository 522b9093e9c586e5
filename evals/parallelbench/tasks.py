"""The 17 tasks of ParallelBench: their questions, drawn from seeds, and how answers are scored.

Ten operations on a waiting line, with 3 to 6 people; a Latin square and a Sudoku of size 4;
sentences from given words, of three degrees. Paraphrases and summaries are of texts that are not
drawn, and scored by models: they are named, and not asked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from evals.parallelbench import scores, words

SIZES: Final = (3, 4, 5, 6)


@dataclass(frozen=True, slots=True)
class Question:
    """`right` judges an answer; `example` is a right one; `free`: there are others."""

    text: str
    example: str
    right: Callable[[str], bool]
    free: bool = False


Draw = Callable[[random.Random, int], Question]


@dataclass(frozen=True, slots=True)
class Task:
    """A task by its published name. `draw` makes a question from a seed and a size.

    sizes     of its questions, in turn
    partly    what of the published score is left out; empty: nothing
    missing   why it cannot be asked here; empty: it can
    """

    name: str
    draw: Draw | None = None
    sizes: Sequence[int] = SIZES
    partly: str = ""
    missing: str = ""

    def questions(self, count: int, seed: int) -> list[Question]:
        """`count` questions, the same for the same seed, each with a solved example before it."""
        assert self.draw is not None
        chance = random.Random(f"{self.name} {seed}")
        solved = self.draw(chance, self.sizes[0])
        asked = [self.draw(chance, self.sizes[n % len(self.sizes)]) for n in range(count)]
        shot = f"{solved.text}\n{solved.example}\n\n"
        return [Question(f"{shot}{one.text}", one.example, one.right, one.free) for one in asked]


def shown(items: Sequence[str]) -> str:
    """A list as questions and answers have it."""
    return "[" + ", ".join(f'"{item}"' for item in items) + "]"


_Operation = Callable[[random.Random, list[str], str, int], Question]


def _line(operation: _Operation) -> Draw:
    def draw(chance: random.Random, size: int) -> Question:
        people = chance.sample(words.NAMES, size + 1)
        return operation(chance, people[:size], people[size], chance.randrange(size))

    return draw


def _asked(line: Sequence[str], order: str) -> str:
    return f"People wait in this line: {shown(line)}. {order} Answer with the new list only."


def _exact(line: Sequence[str], order: str, wanted: Sequence[str]) -> Question:
    return Question(_asked(line, order), shown(wanted), lambda text: scores.is_list(text, wanted))


def _copy(_: random.Random, line: list[str], word: str, at: int) -> Question:  # noqa: ARG001
    return _exact(line, "Write the line as it is.", line)


def _reverse(_: random.Random, line: list[str], word: str, at: int) -> Question:  # noqa: ARG001
    return _exact(line, "Turn the line round.", line[::-1])


def _sort(_: random.Random, line: list[str], word: str, at: int) -> Question:  # noqa: ARG001
    return _exact(line, "Sort the line by the alphabet.", sorted(line))


def _shuffle(chance: random.Random, line: list[str], word: str, at: int) -> Question:  # noqa: ARG001
    other = line[:]
    while other == line:
        chance.shuffle(other)
    order = "Put the people into another order, any that differs."
    return Question(
        _asked(line, order), shown(other), lambda text: scores.is_shuffled(text, line), free=True
    )


def _insert_index(_: random.Random, line: list[str], word: str, at: int) -> Question:
    order = f"Put {word} before person number {at + 1}."
    return _exact(line, order, [*line[:at], word, *line[at:]])


def _insert_random(_: random.Random, line: list[str], word: str, at: int) -> Question:
    order = f"Put {word} into the line, at any place."
    return Question(
        _asked(line, order),
        shown([*line[:at], word, *line[at:]]),
        lambda text: scores.has_inserted(text, line, word),
        free=True,
    )


def _remove_index(_: random.Random, line: list[str], word: str, at: int) -> Question:  # noqa: ARG001
    order = f"Take person number {at + 1} out of the line."
    return _exact(line, order, [*line[:at], *line[at + 1 :]])


def _remove_random(_: random.Random, line: list[str], word: str, at: int) -> Question:  # noqa: ARG001
    return Question(
        _asked(line, "Take one person out of the line, anyone."),
        shown([*line[:at], *line[at + 1 :]]),
        lambda text: scores.has_removed(text, line),
        free=True,
    )


def _replace_index(_: random.Random, line: list[str], word: str, at: int) -> Question:
    order = f"Put {word} in the place of person number {at + 1}."
    return _exact(line, order, [*line[:at], word, *line[at + 1 :]])


def _replace_random(_: random.Random, line: list[str], word: str, at: int) -> Question:
    return Question(
        _asked(line, f"Put {word} in the place of one person, anyone."),
        shown([*line[:at], word, *line[at + 1 :]]),
        lambda text: scores.has_replaced(text, line, word),
        free=True,
    )


def _grid(chance: random.Random, symbols: Sequence[str]) -> list[list[str]]:
    """A Sudoku of size 4, which is a Latin square, too."""
    a, b, c, d = chance.sample(symbols, 4)
    return chance.choice(
        [
            [[a, b, c, d], [c, d, a, b], [b, a, d, c], [d, c, b, a]],
            [[a, b, c, d], [c, d, b, a], [b, a, d, c], [d, c, a, b]],
            [[a, b, c, d], [d, c, b, a], [b, a, d, c], [c, d, a, b]],
        ]
    )


def _latin_square(chance: random.Random, size: int) -> Question:
    symbols = chance.sample("ABCDEFGHKLMNPRSTUVWXYZ123456789", size)
    example = "\n".join(", ".join(row) for row in _grid(chance, symbols))
    text = (
        f"Write a Latin square of size {size} with the symbols {', '.join(symbols)}: each once in"
        " every row and column. Write rows as lines, symbols separated by commas."
    )
    return Question(
        text, example, lambda answer: scores.is_latin_square(answer, symbols), free=True
    )


_HOLES: Final = 12


def _sudoku(chance: random.Random, size: int) -> Question:
    solved = _grid(chance, "1234")
    holes = set(chance.sample(range(size * size), _HOLES))
    puzzle = [
        "".join("_" if row * size + at in holes else cell for at, cell in enumerate(cells))
        for row, cells in enumerate(solved)
    ]
    text = (
        "Fill the grid: 1 to 4 once in every row, column and quarter. Write the four rows as"
        " lines.\n" + "\n".join(puzzle)
    )
    example = "\n".join("".join(row) for row in solved)
    return Question(text, example, lambda answer: scores.is_sudoku(answer, puzzle), free=True)


def _sentence(known: Sequence[str]) -> Draw:
    def draw(chance: random.Random, size: int) -> Question:
        chosen = chance.sample(known, size)
        text = f"Write one sentence with these words in it: {', '.join(chosen)}."
        example = f"There is {', '.join(chosen[:-1])} and {chosen[-1]}."
        return Question(text, example, lambda answer: scores.has_words(answer, chosen), free=True)

    return draw


_GRAMMAR: Final = "whether its grammar is right"
_TEXTS: Final = "its texts have licences of their own, and models judge the answers"
_LINES: Final = {
    "copy": _copy,
    "reverse": _reverse,
    "sort": _sort,
    "shuffle": _shuffle,
    "insert_index": _insert_index,
    "insert_random": _insert_random,
    "remove_index": _remove_index,
    "remove_random": _remove_random,
    "replace_index": _replace_index,
    "replace_random": _replace_random,
}
TASKS: Final[Mapping[str, Task]] = MappingProxyType(
    {
        task.name: task
        for task in (
            *(Task(f"waiting_line/{name}", _line(one)) for name, one in _LINES.items()),
            Task("paraphrase_summarize/paraphrase", missing=_TEXTS),
            Task("paraphrase_summarize/summarize", missing=_TEXTS),
            Task("words_to_sentence/easy", _sentence(words.EASY), (3,), _GRAMMAR),
            Task("words_to_sentence/medium", _sentence(words.MEDIUM), (4,), _GRAMMAR),
            Task("words_to_sentence/hard", _sentence(words.HARD), (5,), _GRAMMAR),
            Task("puzzle/latin_square_n4", _latin_square, (4,)),
            Task("puzzle/sudoku_n4_12", _sudoku, (4,)),
        )
    }
)
"""All 17, by name."""
