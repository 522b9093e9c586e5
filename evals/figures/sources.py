"""The committed rows by file, and arithmetic over them. Knows no text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import fmean, median
from typing import Final

_SPEC: Final = re.compile(r"\+?,?(\.\d+)?[efg%]")
_NUMBER: Final = re.compile(r"\d+(\.\d+)?(e-?\d+)?")
_FOLDS: Final[Mapping[str, Callable[[list[float]], float]]] = {
    "min": min,
    "max": max,
    "mean": fmean,
    "median": median,
    "sum": sum,
    "count": len,
}


class FigureError(Exception):
    """A marker that cannot be carried out; the message says why."""


@dataclass(frozen=True, slots=True)
class Results:
    """One file of rows. Keys are case/system/metric, with `_` for a blank."""

    name: str
    about: Mapping[str, str]
    values: Mapping[str, float | None]

    @classmethod
    def read(cls, path: Path) -> Results:
        """Raises: `FigureError` where two rows have one key."""
        found = json.loads(path.read_text("utf-8"))
        values: dict[str, float | None] = {}
        for row in found["rows"]:
            key = f"{row['case']}/{row['system']}/{row['metric']}".replace(" ", "_")
            if key in values:
                raise FigureError(f"{path.name} has two rows {key}")
            values[key] = row["value"]
        return cls(path.stem, found["environment"], values)

    def text(self, expression: str) -> str:
        """`expression` (keys, numbers, + - * /) in the format that is its last word.

        `@name` is a value of the environment. A `?` in front makes what is not there an empty text.
        Raises: `FigureError`.
        """
        optional, expression = expression.startswith("?"), expression.removeprefix("?").strip()
        if expression.startswith("@"):
            return self._about(expression[1:])
        *words, spec = expression.split()
        if not words or not _SPEC.fullmatch(spec):
            raise FigureError(f"“{expression}” does not end in a format such as .2f")
        try:
            return format(_sum(words, self), spec).replace("%", " %")
        except _Missing as missing:
            if optional:
                return ""
            raise FigureError(f"{self.name}.json has no figure {missing}") from None

    def keys(self, pattern: str) -> list[str]:
        """The cases or case/systems that match, each once, in the order of the file."""
        depth = pattern.count("/") + 1
        heads = dict.fromkeys("/".join(key.split("/")[:depth]) for key in self.values)
        found = [head for head in heads if fnmatchcase(head, pattern)]
        if not found:
            raise FigureError(f"no rows match {pattern}")
        return found

    def value(self, key: str) -> float:
        """Of a row, or of all that match: `max:chain_*/weft/median_ms`."""
        fold, colon, pattern = key.partition(":")
        if colon and fold in _FOLDS:
            known = (v for k, v in self.values.items() if fnmatchcase(k, pattern) and v is not None)
            found = list(known)
            if not found:
                raise _Missing(pattern)
            return float(_FOLDS[fold](found))
        value = self.values.get(key)
        if value is None:
            raise _Missing(key)
        return float(value)

    def _about(self, name: str) -> str:
        if name not in self.about:
            raise FigureError(f"{self.name}.json does not say its {name}")
        text = self.about[name]
        return f"`{text}`" if name == "command" else text


@dataclass(slots=True)
class Sources:
    """All files of rows in a folder, each read once."""

    folder: Path
    _read: dict[str, Results] = field(default_factory=dict)

    def __call__(self, name: str) -> Results:
        """Raises: `FigureError` where there is no such file."""
        if name not in self._read:
            path = self.folder / f"{name}.json"
            if not path.is_file():
                raise FigureError(f"there is no {path.name} in {self.folder.name}")
            self._read[name] = Results.read(path)
        return self._read[name]


class _Missing(Exception):
    """No such row, or a row without a value."""


def _sum(words: list[str], rows: Results) -> float:
    for place in range(len(words) - 1, 0, -1):
        if words[place] in "+-":
            left, right = _sum(words[:place], rows), _product(words[place + 1 :], rows)
            return left + right if words[place] == "+" else left - right
    return _product(words, rows)


def _product(words: list[str], rows: Results) -> float:
    if len(words) == 1:
        return _operand(words[0], rows)
    if len(words) < 3 or words[-2] not in "*/":
        raise FigureError(f"“{' '.join(words)}” cannot be worked out")
    *left, sign, right = words
    before, after = _product(left, rows), _operand(right, rows)
    if sign == "/" and not after:
        raise FigureError(f"“{' '.join(words)}” cannot be worked out: {right} is 0")
    return before * after if sign == "*" else before / after


def _operand(word: str, rows: Results) -> float:
    return float(word) if _NUMBER.fullmatch(word) else rows.value(word)
