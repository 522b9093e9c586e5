"""Kinds of things in tables: their facts, the words for them, and how to draw values.

None of them is in `examples/ask`, whose questions test a planner.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Column:
    """A field of a thing. `noun`: "the {noun} of X"; `question`: with {} for the name; `more`: the
    comparative, of numbers that can be compared. `draw`: a value.
    """

    field: str
    noun: str
    question: str
    draw: Callable[[random.Random], Any]
    more: str = ""
    sums: bool = False


def whole(low: int, high: int) -> Callable[[random.Random], int]:
    """Draws whole numbers, every second one ten times as large."""
    return lambda rng: rng.randint(low, high) if rng.random() < 0.5 else rng.randint(low, high) * 10


def part(low: float, high: float) -> Callable[[random.Random], float]:
    """Draws numbers with one or two decimals."""
    return lambda rng: round(rng.uniform(low, high), rng.choice((1, 2)))


def _one(*words: str) -> Callable[[random.Random], str]:
    return lambda rng: rng.choice(words)


_COUNTRIES: Final = ("Peru", "Kenya", "Japan", "Norway", "Chile", "Spain", "Ghana", "Vietnam",
                     "Poland", "Canada", "Egypt", "India", "Mexico", "Greece")  # fmt: skip


@dataclass(frozen=True, slots=True)
class TableKind:
    """A kind of thing: its words, its facts, the group by which things are listed, and names that
    some of them have.
    """

    one: str
    many: str
    group: Column
    facts: tuple[Column, ...]
    names: tuple[str, ...] = ()


# fmt: off
_TOWNS: Final = ("Lima", "Oslo", "Kyoto", "Porto", "Quito", "Perth", "Cairo", "Vienna", "Madrid",
                 "Boston", "Denver", "Dublin", "Lagos", "Turin", "Nice", "Munich", "Hamburg",
                 "Seville", "Naples", "Geneva", "Mumbai", "Bogota", "New York", "San Diego")
_PEOPLE: Final = ("Anna", "Bob Miller", "Carla Gomez", "Deniz", "Erik Holm", "Fatima", "George",
                  "Hana Sato", "Ivan", "Julia Weber", "Kofi", "Laura Rossi", "Max", "Nora")
_RIVERS: Final = ("Rhine", "Nile", "Danube", "Amazon", "Volga", "Thames", "Loire", "Ganges")
_TITLES: Final = ("Dune", "The Long Road", "Silent Sea", "Northern Lights", "Second Spring", "Ash",
                  "The Glass House", "Emma", "Paper Moon", "Winter Garden", "The Last Train")
_STARS: Final = ("Mars", "Venus", "Saturn", "Neptune", "Uranus", "Mercury", "Jupiter")
# fmt: on

_COUNTRY: Final = Column("country", "country", "Which country is {} in?", _one(*_COUNTRIES))
KINDS: Final = (
    TableKind("town", "towns", _COUNTRY, (
        Column("inhabitants", "number of inhabitants", "How many people live in {}?",
             whole(900, 90000), "more inhabitants", sums=True),
        Column("area", "area", "How large is {}?", part(2, 900), "a larger area", sums=True),
        Column("mayor", "mayor", "Who is the mayor of {}?",
             _one("Ana Ruiz", "Tom Field", "Mei Tan", "Olu Ade", "Eva Lind"))), _TOWNS),
    TableKind("employee", "employees",
         Column("department", "department", "Which department does {} work in?",
              _one("sales", "design", "support", "legal", "research", "finance")), (
        Column("salary", "salary", "How much does {} earn?", whole(20000, 95000), "a higher salary",
             sums=True),
        Column("age", "age", "How old is {}?", whole(18, 67), "a greater age"),
        Column("office", "office", "Where is the office of {}?",
             _one("room 12", "building C", "floor 3", "the annex"))), _PEOPLE),
    TableKind("product", "products",
         Column("category", "category", "Which category is {} in?",
              _one("garden", "kitchen", "sports", "toys", "office")), (
        Column("price", "price", "What does {} cost?", part(1, 400), "a higher price", sums=True),
        Column("stock", "stock", "How many {} are in stock?", whole(0, 900), "more stock",
             sums=True),
        Column("supplier", "supplier", "Who supplies {}?", _one("Norex", "Balto", "Primo")))),
    TableKind("river", "rivers",
         Column("continent", "continent", "On which continent is the {}?",
              _one("Asia", "Africa", "Europe", "South America")), (
        Column("length_km", "length", "How long is the {}?", whole(40, 6000), "a greater length",
             sums=True),
        Column("depth_m", "depth", "How deep is the {}?", part(1, 90), "a greater depth")),
         _RIVERS),
    TableKind("book", "books",
         Column("author", "author", "Who wrote {}?",
              _one("Lena Hart", "Samir Aziz", "Paul Novak", "Ida Berg", "Kim Seo")), (
        Column("pages", "number of pages", "How many pages does {} have?", whole(60, 1200),
             "more pages", sums=True),
        Column("year", "year of publication", "When was {} published?", whole(1890, 2024)),
        Column("publisher", "publisher", "Who published {}?", _one("Alder", "Quill"))), _TITLES),
    TableKind("film", "films",
         Column("director", "director", "Who directed {}?",
              _one("Rosa Vidal", "Igor Petrov", "Nina Cole", "Yuki Mori")), (
        Column("minutes", "running time", "How long does {} run?", whole(60, 220),
             "a longer running time", sums=True),
        Column("rating", "rating", "How is {} rated?", part(1, 10), "a better rating")), _TITLES),
    TableKind("hotel", "hotels",
         Column("district", "district", "Which district is {} in?",
              _one("Harbour", "Old Town", "North Park", "Riverside")), (
        Column("rooms", "number of rooms", "How many rooms does {} have?", whole(8, 600),
             "more rooms", sums=True),
        Column("nightly_rate", "nightly rate", "What is a night in {}?", part(30, 700),
             "a higher nightly rate"))),
    TableKind("player", "players",
         Column("team", "team", "Which team does {} play for?",
              _one("Falcons", "Rovers", "Comets", "Lynx")), (
        Column("goals", "number of goals", "How many goals has {} scored?", whole(0, 90),
             "more goals", sums=True),
        Column("height_cm", "height", "How tall is {}?", whole(150, 215), "a greater height")),
         _PEOPLE),
    TableKind("planet", "planets",
         Column("star", "star", "Which star does {} orbit?", _one("Rigel", "Vega", "Altair")), (
        Column("moons", "number of moons", "How many moons does {} have?", whole(0, 80),
             "more moons", sums=True),
        Column("mass", "mass", "What is the mass of {}?", part(0.1, 300), "more mass")), _STARS),
    TableKind("ship", "ships",
         Column("port", "home port", "What is the home port of {}?",
              _one("Genoa", "Bergen", "Busan", "Santos")), (
        Column("tonnage", "tonnage", "What is the tonnage of {}?", whole(300, 9000),
             "a greater tonnage", sums=True),
        Column("crew", "crew", "How many people are in the crew of {}?", whole(3, 300),
             "a larger crew", sums=True))),
    TableKind("course", "courses",
         Column("faculty", "faculty", "Which faculty offers {}?",
              _one("history", "physics", "music", "law")), (
        Column("credits", "number of credits", "How many credits does {} give?", whole(2, 30),
             "more credits", sums=True),
        Column("students", "number of students", "How many students take {}?", whole(4, 400),
             "more students", sums=True))),
)  # fmt: skip
