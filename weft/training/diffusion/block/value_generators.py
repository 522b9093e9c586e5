"""Random values of generated documents: listed words, and invented ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.core.values import JsonSchema

Value = str | int | float | bool | list[str]
DrawValue = Callable[[np.random.Generator], Value]


@dataclass(frozen=True, slots=True)
class ValueGenerator:
    """A random value, and its JSON Schema."""

    draw: DrawValue
    schema: JsonSchema


def _listed(text: str, apart: str = " ") -> list[str]:
    return text.split(apart)


_NAMES: Final = _listed(
    "Maria Anna Peter Lena Omar Yuki Ravi Chloe Diego Fatima George Hanna Ivan Julia Karim Linda"
    " Marco Nina Oscar Paula Quinn Rosa Simon Tara Umar Vera Walter Xenia Yusuf Zoe Alice Bob"
)
_CITIES: Final = _listed(
    "Lisbon Paris Berlin Madrid Rome Oslo Vienna Prague Dublin Athens Tokyo Seoul Cairo Lima"
    " Boston Denver Toronto Sydney Geneva Warsaw Helsinki Kyoto Nairobi Delhi"
)
_THINGS: Final = _listed(
    "lamp chair desk phone laptop camera bottle jacket guitar bicycle kettle mirror carpet printer"
    " backpack tent clock sofa blender helmet"
)
_COLOURS: Final = _listed("red blue green black white yellow brown grey orange purple")
_JOBS: Final = _listed("teacher nurse baker pilot lawyer farmer chemist painter driver editor")
_DAYS: Final = _listed("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
_TASKS: Final = _listed(
    "wash the car|book a room|call the bank|buy milk|pack the bags|clean the desk|write a report|"
    "check the lights|print the form|feed the cat|water the plants|test the pump|sort the mail|"
    "charge the phone|open the gate|cook the rice|fix the door|send the invoice",
    "|",
)
_STRING: Final = {"type": "string"}
_ONSETS: Final = _listed("b d f g k l m n p r s t v z br dr st tr")
_VOWELS: Final = _listed("a e i o u")


def draw_one(words: tuple[str, ...] | list[str], rng: np.random.Generator) -> str:
    """A random one of `words`."""
    return words[int(rng.integers(len(words)))]


def invented(rng: np.random.Generator) -> str:
    """An invented name, so that the model learns to copy, not to recall."""
    syllables = [draw_one(_ONSETS, rng) + draw_one(_VOWELS, rng) for _ in range(rng.integers(2, 4))]
    return "".join(syllables).capitalize()


def named(words: list[str]) -> ValueGenerator:
    """One of `words`, every third time an invented one."""

    def draw(rng: np.random.Generator) -> Value:
        return invented(rng) if rng.integers(3) == 0 else draw_one(words, rng)

    return ValueGenerator(draw, _STRING)


def among(words: list[str], *, closed: bool = False) -> ValueGenerator:
    """One of `words`. `closed`: the schema lists them."""
    return ValueGenerator(lambda rng: draw_one(words, rng), {"enum": words} if closed else _STRING)


def whole(low: int, high: int) -> ValueGenerator:
    """A whole number, both bounds included, without bounds in the schema."""
    return ValueGenerator(lambda rng: int(rng.integers(low, high + 1)), {"type": "integer"})


def bounded(low: int, high: int) -> ValueGenerator:
    """A whole number whose bounds, both included, are in the schema."""
    schema = {"type": "integer", "minimum": low, "maximum": high}
    return ValueGenerator(lambda rng: int(rng.integers(low, high + 1)), schema)


def several(words: list[str]) -> ValueGenerator:
    """Two or three different ones of `words`."""

    def draw(rng: np.random.Generator) -> Value:
        count = int(rng.integers(2, 4))
        return [words[int(at)] for at in rng.permutation(len(words))[:count]]

    return ValueGenerator(draw, {"type": "array", "items": _STRING})


def _price(rng: np.random.Generator) -> Value:
    """A price with one decimal, which JSON keeps."""
    return int(rng.integers(1, 200)) + int(rng.integers(1, 10)) / 10


def _date(rng: np.random.Generator) -> Value:
    """A date in ISO 8601."""
    year, month, day = rng.integers([2020, 1, 1], [2030, 13, 29])
    return f"{year}-{month:02d}-{day:02d}"


NAME, CITY, THING, COLOUR = named(_NAMES), named(_CITIES), named(_THINGS), among(_COLOURS)
JOB, DAY, TASKS, THINGS = among(_JOBS), among(_DAYS), several(_TASKS), several(_THINGS)
PRIORITY = among(["low", "medium", "high"], closed=True)
STATUS = among(["open", "closed", "waiting"], closed=True)
CHANNEL = among(["phone", "mail", "web"], closed=True)
YES = ValueGenerator(lambda rng: bool(rng.integers(2)), {"type": "boolean"})
PRICE, DATE = ValueGenerator(_price, {"type": "number"}), ValueGenerator(_date, _STRING)
