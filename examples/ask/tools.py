"""Tools over a small table of cities, for questions that need several look-ups at once."""

from __future__ import annotations

from dataclasses import dataclass

import weft


@dataclass(frozen=True)
class City:
    """A city and what is known of it."""

    name: str
    country: str
    people: int
    square_km: float


_CITIES = {
    "paris": City("Paris", "France", 2_103_000, 105.4),
    "lyon": City("Lyon", "France", 520_000, 47.9),
    "rome": City("Rome", "Italy", 2_749_000, 1285.0),
    "milan": City("Milan", "Italy", 1_371_000, 181.8),
    "berlin": City("Berlin", "Germany", 3_782_000, 891.1),
}


@weft.tool(pure=True)
def city(name: str) -> City:
    """Facts about one city: its country, how many people live there, its area.

    Args:
        name: the city's English name
    """
    found = _CITIES.get(name.strip().lower())
    if found is None:
        known = ", ".join(each.name for each in _CITIES.values())
        raise LookupError(f"{name!r} is not in the table; there are {known}")
    return found


@weft.tool(pure=True)
def cities_of(country: str) -> list[str]:
    """The names of all cities of a country that are in the table.

    Args:
        country: the country's English name
    """
    wanted = country.strip().lower()
    return [each.name for each in _CITIES.values() if each.country.lower() == wanted]


@weft.tool(pure=True)
def largest(numbers: list[float]) -> float:
    """The largest of some numbers.

    Args:
        numbers: one or more
    """
    if not numbers:
        raise ValueError("there are no numbers")
    return max(numbers)


@weft.tool(pure=True)
def total(numbers: list[float]) -> float:
    """The sum of some numbers.

    Args:
        numbers: what to add up
    """
    return sum(numbers)
