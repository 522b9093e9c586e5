"""Realistic values for parameters, drawn by enum, examples in the description, name and type."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

_CITIES: Final = ("Lisbon", "Nairobi", "Osaka", "Toronto", "Leipzig", "Santiago", "Oslo", "Mumbai")
_COUNTRIES: Final = ("Portugal", "Kenya", "Japan", "Canada", "Germany", "Chile", "Norway", "India")
_PEOPLE: Final = ("Maria Lopez", "Kenji Sato", "Amina Yusuf", "Tom Becker", "Ingrid Dahl")
_LANGUAGES: Final = ("English", "Spanish", "Japanese", "Swahili", "German", "Hindi")
_TOPICS: Final = ("renewable energy", "coral reefs", "urban gardening", "jazz history", "robotics")
_EXAMPLES: Final = re.compile(r"\((?:e\.g\.|for example|such as),?:?\s*([^()]+)\)", re.IGNORECASE)

Draw = Callable[[random.Random], str]


def _date(rng: random.Random) -> str:
    return f"20{rng.randint(18, 27)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


_BY_NAME: Final[tuple[tuple[str, Draw], ...]] = (
    ("date", _date),
    ("email", lambda rng: f"{rng.choice(_PEOPLE).replace(' ', '.').lower()}@example.org"),
    ("id", lambda rng: f"{rng.choice('ABKMPRT')}{rng.randint(1000, 99999)}"),
    ("number", lambda rng: f"{rng.choice('ABKMPRT')}{rng.randint(1000, 99999)}"),
    ("country", lambda rng: rng.choice(_COUNTRIES)),
    ("language", lambda rng: rng.choice(_LANGUAGES)),
    ("year", lambda rng: str(rng.randint(1990, 2026))),
    ("time", lambda rng: f"{rng.randint(0, 23):02}:{rng.choice((0, 15, 30, 45)):02}"),
    ("author", lambda rng: rng.choice(_PEOPLE)),
    ("name", lambda rng: rng.choice(_PEOPLE)),
)
_PLACES: Final = ("location", "city", "place", "destination", "origin", "region")


def draw_value(name: str, schema: Mapping[str, Any], rng: random.Random) -> Any:
    """A value for the parameter, or None where the rules know none (objects, arrays)."""
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return rng.choice(list(schema["enum"]))
    match schema.get("type"):
        case "integer":
            low, high = _range(name, schema)
            return rng.randint(int(low), int(high))
        case "number":
            low, high = _range(name, schema)
            return round(rng.uniform(low, high), 2)
        case "string":
            return _text(name, schema, rng)
    return None


def _range(name: str, schema: Mapping[str, Any]) -> tuple[float, float]:
    low, high = (1990, 2026) if "year" in name.lower() else (2, 95)
    low = schema.get("minimum", low)
    return low, max(low, schema.get("maximum", max(high, low)))


def _text(name: str, schema: Mapping[str, Any], rng: random.Random) -> str:
    found = _EXAMPLES.search(str(schema.get("description", "")))
    listed = [x.strip(" .'\"") for x in re.split(r",| or ", found[1])] if found else []
    if examples := [x for x in listed if 0 < len(x) <= 40 and x.lower() not in {"etc", "and"}]:
        return rng.choice(examples)
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")
    if set(words) & set(_PLACES):
        return rng.choice(_CITIES)
    for word, draw in _BY_NAME:
        if word in words:
            return draw(rng)
    return rng.choice(_TOPICS)
