"""Realistic values for parameters, drawn by enum, examples, kind and type."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from weft.agents.calls import pools
from weft.agents.calls.catalogue import CallTool
from weft.agents.calls.dates import draw_date, is_iso
from weft.agents.calls.kinds import Kind, examples, kind_of, words_of
from weft.agents.calls.pools import listed

Draw = Callable[[random.Random], str]
_PLACEHOLDERS: Final = frozenset(
    listed(
        "country,city,state,region,continent,location,name,email,phone,address,date,coordinates,age,"
        "age group,user information,text,number,input,list,url,file,table,column,id,title,time,day,"
        "address,gender,code,object,string,value,values,keyword,keywords,contact details"
    )
)
_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "rating": (1, 5),
    "stars": (1, 5),
    "precision": (1, 6),
    "decimals": (0, 6),
    "page": (1, 12),
    "limit": (1, 50),
    "results": (1, 50),
    "level": (1, 10),
    "score": (1, 100),
    "n": (1, 50),
    "window": (2, 12),
    "floor": (1, 20),
    "seconds": (5, 600),
    "hours": (1, 48),
    "nights": (1, 21),
    "guests": (1, 12),
    "passengers": (1, 9),
    "minutes": (5, 240),
    "days": (1, 60),
    "k": (1, 20),
    "angle": (1, 179),
    "pressure": (1, 200),
    "humidity": (5, 99),
    "radius": (1, 80),
    "height": (1, 300),
    "weight": (1, 300),
    "distance": (1, 900),
    "bpm": (50, 180),
}
_SIGNED: Final = frozenset(listed("a,b,c,d,x,y,z,x1,y1,x2,y2,offset,charge,coefficient,v0"))
_NO_EXAMPLE: Final = re.compile(r"(?i)\$|y{2,4}\W|hh:|(?:true|false|yes|no|null|none|\d+)$|https?:")


def _clock(rng: random.Random) -> str:
    hour, minute = rng.randint(0, 23), rng.choice((0, 0, 15, 30, 45))
    if rng.random() < 0.6:
        return f"{hour:02}:{minute:02}"
    return f"{hour % 12 or 12}{f':{minute:02}' if minute else ''} {'AM' if hour < 12 else 'PM'}"


def _period(rng: random.Random) -> str:
    unit = rng.choice(("day", "week", "month", "year", "hour"))
    n, year = rng.randint(2, 30), rng.randint(1960, 2018)
    return rng.choice(
        (f"last {n} {unit}s", f"{n} {unit}s", f"{year}-{year + n}", f"past {unit}", f"next {unit}")
    )


def _formula(rng: random.Random) -> str:
    a, b, c, x = rng.randint(2, 9), rng.randint(2, 20), rng.randint(1, 30), rng.choice("xty")
    return rng.choice(
        (f"{a}{x}^2 + {b}{x} - {c}", f"{a}*{x}**3 - {c}", f"sin({a}{x})", f"{a}{x} + {c}")
    )


def _path(rng: random.Random) -> str:
    folder = rng.choice(("/data/", "/home/", "reports/", "C:/files/", ""))
    return f"{folder}{pools.word(rng)}{rng.randint(1, 99)}." + rng.choice(
        ("csv", "pdf", "txt", "png", "mp3", "json", "docx")
    )


_OPEN: Final[Mapping[Kind, Draw]] = {
    "clock": _clock,
    "period": _period,
    "formula": _formula,
    "path": _path,
    "year": lambda rng: str(rng.randint(1900, 2026)),
    "email": pools.email,
    "phone": lambda rng: f"{rng.randint(200, 999)}-555-{rng.randint(1000, 9999)}",
    "url": lambda rng: f"https://www.{pools.invented(rng).lower()}.example/{pools.word(rng)}",
    "id": pools.identifier,
    "country": lambda rng: rng.choice(pools.COUNTRIES),
    "city": lambda rng: rng.choice(pools.CITIES),
    "state": lambda rng: rng.choice(pools.STATES),
    "place": pools.place,
    "from_place": pools.place,
    "to_place": pools.place,
    "address": pools.address,
    "language": lambda rng: rng.choice(pools.LANGUAGES),
    "from_language": lambda rng: rng.choice(pools.LANGUAGES),
    "to_language": lambda rng: rng.choice(pools.LANGUAGES),
    "company": pools.company,
    "product": pools.product,
    "title": pools.title,
    "person": pools.person,
    "color": lambda rng: rng.choice(pools.COLORS),
    "currency": lambda rng: rng.choice(("USD", "EUR", "GBP", "JPY", "INR", "CHF", "BRL", "KES")),
    "unit": lambda rng: rng.choice(("meters", "feet", "km", "miles", "kg", "liters", "inches")),
    "sentence": pools.sentence,
    "user": lambda rng: f"{pools.word(rng)}{rng.choice(('', str(rng.randint(1, 99))))}",
    "topic": pools.topic,
}
"""Kinds whose values are combinations: any text of the kind is as good as the examples."""


class ValueSource:
    """Draws values; knows the examples that the tools' descriptions give, by parameter name."""

    def __init__(self, tools: Iterable[CallTool] = ()) -> None:
        self._examples: dict[str, list[str]] = {}
        for tool in tools:
            for name, schema in tool.properties.items():
                words = words_of(name)
                for example in _usable(schema):
                    self._examples.setdefault(words, []).append(example)
                    if not words.endswith(" name"):
                        self._examples.setdefault(words.split()[-1], []).append(example)

    def draw(self, name: str, schema: Mapping[str, Any], rng: random.Random) -> Any:
        """A value for the parameter, or None where the rules know none."""
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return rng.choice(list(schema["enum"]))
        match schema.get("type"):
            case "boolean":
                return rng.random() < 0.7
            case "integer" | "number":
                return draw_number(name, schema, rng)
            case "array":
                return self._items(name, schema, rng)
            case "object":
                return self._object(schema, rng)
            case "string":
                return self._text(name, schema, rng)
        return None

    def _text(self, name: str, schema: Mapping[str, Any], rng: random.Random) -> str:
        kind, given = kind_of(name, schema), _usable(schema)
        if kind in {"date", "start", "end"}:
            return draw_date(rng, iso=is_iso(schema))
        if given and (kind not in _OPEN or rng.random() < 0.5):
            return rng.choice(given)
        if draw := _OPEN.get(kind):
            return draw(rng)
        words = words_of(name)
        known = self._examples.get(words) or self._examples.get(words.split()[-1])
        if known and rng.random() < 0.8:
            return rng.choice(known)
        return rng.choice((pools.topic, pools.product, pools.invented, pools.title))(rng)

    def _items(self, name: str, schema: Mapping[str, Any], rng: random.Random) -> list[Any] | None:
        inner = {"description": schema.get("description", "")} | dict(schema.get("items") or {})
        numeric = inner.get("type") in {"integer", "number"}
        low = max(int(schema.get("minItems", 1)), 2)
        size = rng.randint(low, min(low + (5 if numeric else 2), schema.get("maxItems", 20)))
        single = name[:-1] if name.endswith("s") and not name.endswith("ss") else name
        values: list[Any] = []
        for _ in range(4 * size):
            value = self.draw(single, inner, rng)
            if value is None:
                return None
            if value not in values:
                values.append(value)
            if len(values) == size:
                break
        return values

    def _object(self, schema: Mapping[str, Any], rng: random.Random) -> dict[str, Any] | None:
        required = schema.get("required", ())
        drawn = {
            name: self.draw(name, inner, rng)
            for name, inner in dict(schema.get("properties") or {}).items()
            if name in required or rng.random() < 0.5
        }
        return drawn if drawn and None not in drawn.values() else None


def draw_number(name: str, schema: Mapping[str, Any], rng: random.Random) -> int | float:
    """A number of a plausible size, within `minimum` and `maximum`."""
    value, kind = _near_examples(schema, rng), kind_of(name, schema)
    known = _RANGES.get(words_of(name).split()[-1])
    if words_of(name) in _SIGNED and value is None and rng.random() < 0.7:
        value = rng.randint(1, 30)
    if value is None and known and kind in {"quantity", "count", "class"}:
        value = rng.uniform(*known)
        value = (
            round(value, 1) if schema["type"] == "number" and rng.random() < 0.4 else round(value)
        )
    if value is None:
        value = _by_kind(kind, rng)
    whole = schema["type"] == "integer" or value == int(value)
    if words_of(name) in _SIGNED and rng.random() < 0.25:
        value = -value
    if kind == "quantity" and schema["type"] == "integer" and 0 <= value < 1:
        value = rng.randint(1, 9)
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    if not low <= value <= high:
        bottom = low if low > -math.inf else high - 100
        value = rng.uniform(bottom, min(high, bottom + 100))
        value = math.ceil(value) if schema["type"] == "integer" else round(value, 2)
    return int(value) if whole else float(value)


def _near_examples(schema: Mapping[str, Any], rng: random.Random) -> float | None:
    given = [x for x in examples(schema) if re.fullmatch(r"-?\d+(?:\.\d+)?", x)]
    if not given or rng.random() < 0.3:
        return None
    numbers, places = [float(x) for x in given], max(len(x.partition(".")[2]) for x in given)
    low, high = min(numbers), max(numbers)
    if 1900 <= low <= high <= 2100:
        return float(rng.randint(1950, 2026))
    drawn = rng.uniform(low - abs(low) / 2, high + abs(high) / 2)
    steps = 10 ** max(0, int(math.log10(abs(drawn) + 1)) - 1) if not places else 1
    return round(round(drawn / steps) * steps if steps > 1 else drawn, places)


def _by_kind(kind: Kind, rng: random.Random) -> float:
    if draw := _NUMBERS.get(kind):
        return draw(rng)
    size = math.exp(rng.uniform(0, math.log(10_000)))
    if rng.random() < 0.25:
        return round(size / 10, rng.choice((1, 2)))
    step = int(10 ** max(0, int(math.log10(size)) - rng.choice((0, 1))))
    return max(1, round(size / step) * step)


_NUMBERS: Final[Mapping[Kind, Callable[[random.Random], float]]] = {
    "year": lambda rng: rng.randint(1900, 2026),
    "percent": lambda rng: rng.choice((rng.randint(1, 99), round(rng.uniform(0.5, 20), 1))),
    "fraction": lambda rng: rng.choice(
        (0.01, 0.05, 0.1, 0.25, 0.5, round(rng.uniform(0.01, 0.99), 2))
    ),
    "latitude": lambda rng: round(rng.uniform(-60, 65), rng.choice((2, 4))),
    "longitude": lambda rng: round(rng.uniform(-170, 170), rng.choice((2, 4))),
    "age": lambda rng: rng.randint(1, 95),
    "money": lambda rng: rng.choice((1, 2, 3, 5, 12, 15, 25, 75, 48)) * 10 ** rng.randint(1, 5),
    "id": lambda rng: rng.randint(100, 99999),
    "temperature": lambda rng: rng.choice((rng.randint(-20, 120), round(rng.uniform(-10, 45), 1))),
    "count": lambda rng: rng.choice((rng.randint(1, 5), rng.randint(1, 30), rng.randint(10, 500))),
}


def _usable(schema: Mapping[str, Any]) -> list[str]:
    """The examples that are values, not formats or other types."""
    if schema.get("type") not in {"string", None}:
        return []
    given = examples(schema)
    return [x for x in given if not _NO_EXAMPLE.match(x) and x.lower() not in _PLACEHOLDERS]
