"""Reads a query back by rules: which numbers it has, and whether it says a value."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.agents.calls.dates import dates_in, days_in, iso_date
from weft.agents.calls.kinds import default_of, words_of
from weft.agents.calls.phrases import NUMBER_WORDS
from weft.agents.calls.pools import listed

_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORDS: Final[Mapping[str, float]] = {
    **{word: n for n, word in enumerate(NUMBER_WORDS)},
    **{word: 13 + n for n, word in enumerate(
        ("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"))},
    **{word: 20 + 10 * n for n, word in enumerate(_TENS)},
    "a": 1, "an": 1, "single": 1, "once": 1, "twice": 2, "double": 2, "couple": 2, "pair": 2,
    "dozen": 12, "half": 0.5, "quarter": 0.25, "hundred": 100, "both": 2, "rest": 0, "dropped": 0,
    "quarterly": 4, "monthly": 12, "daily": 365, "weekly": 52,
    "annually": 1, "yearly": 1, "annual": 1, "month": 30, "week": 7, "today": 0, "tomorrow": 1,
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": 1, "next": 1,
}  # fmt: skip
_SCALES: Final[Mapping[str, tuple[float, ...]]] = {
    "%": (0.01,),
    "percent": (0.01,),
    "k": (1e3,),
    "m": (1e6,),
    "hundred": (100,),
    "thousand": (1e3,),
    "million": (1e6,),
    "billion": (1e9,),
    "dozen": (12,),
    "minute": (60, 1 / 60),
    "hour": (60, 3600, 1 / 24),
    "day": (24,),
    "week": (7,),
    "month": (30, 1 / 12),
    "year": (12, 365),
    "milli": (1e-3,),
    "micro": (1e-6,),
    "west": (-1,),
    "pm": (1,),
}
_MARKS: Final[Mapping[str, str]] = {"\u00b5": "micro", "u": "micro", "w": "west", "s": "west"}
_NUMBER: Final = re.compile(
    r"(?<![A-Za-z_\d.^])(?P<sign>[-\u2212] ?)?[$\u20ac\u00a3]?"
    r"(?P<digits>\d+(?:,\d+)*(?:\.\d+)?|\.\d+)(?:e(?P<power>[-+]?\d+))?"
    r"(?:\s*(?P<scale>%|percent|thousand|million|billion|hundred|dozen|minute|hour|day|week|month|"
    r"year|pm\b|[km](?![A-Za-z/]))|(?P<prefix>[m\u00b5u])(?=[A-Z]\b)|\s?(?P<compass>[WS])\b)?",
    re.IGNORECASE,
)
_CALENDAR: Final = frozenset(
    listed("jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec,mon,tue,wed,thu,fri,sat,sun")
)
_SYNONYMS: Final = (
    *(
        {"meter", "meters", "metre", "m"},
        {"centimeter", "centimeters", "cm"},
        {"feet", "foot", "ft"},
    ),
    *({"kilometer", "kilometers", "km", "kms"}, {"mile", "miles", "mi"}, {"inch", "inches", "in"}),
    *({"kilogram", "kilograms", "kg"}, {"gram", "grams", "g"}, {"pound", "pounds", "lb", "lbs"}),
    *({"celsius", "c"}, {"fahrenheit", "f"}, {"hour", "hours", "h"}, {"second", "seconds", "s"}),
    *({"dollar", "dollars", "usd", "$", "us"}, {"euro", "euros", "eur", "\u20ac"}),
    *({"pound", "pounds", "gbp", "\u00a3", "british"}, {"yen", "jpy", "japanese"}),
    *({"ascending", "asc", "increasing", "smallest"}, {"descending", "desc", "decreasing", "top"}),
    *({"male", "man", "men", "his", "he"}, {"female", "woman", "women", "her", "she"}),
    *({"ny", "new york"}, {"la", "los angeles"}, {"sf", "san francisco"}, {"usa", "us", "u.s"}),
    *({"cad", "canadian"}, {"aud", "australian"}, {"chf", "swiss"}, {"inr", "indian", "rupees"}),
    *({"cny", "yuan", "chinese"}, {"mxn", "mexican"}, {"km", "kilometre", "kilometres"}),
    *({"yearly", "annual", "annually", "year"}, {"daily", "day"}, {"monthly", "month"}),
    *({"weekly", "week"}, {"latest", "recent", "current", "newest"}, {"ca", "california"}),
    *({"cheap", "cheapest", "lowest", "low"}, {"high", "highest"}, {"uk", "united kingdom"}),
)
_QUOTED: Final = re.compile(r"(?<!\w)['\"]([^'\"]{2,60})['\"](?!\w)")
_UNIT_WORDS: Final = frozenset().union(*_SYNONYMS) | {"kelvin", "joules", "i'm", "i'd"}
_STATES: Final = dict(
    pair.split(":")
    for pair in listed(
        "al:alabama,ak:alaska,az:arizona,ar:arkansas,ca:california,co:colorado,ct:connecticut,"
        "de:delaware,fl:florida,ga:georgia,hi:hawaii,id:idaho,il:illinois,in:indiana,ia:iowa,"
        "ks:kansas,ky:kentucky,la:louisiana,me:maine,md:maryland,ma:massachusetts,mi:michigan,"
        "mn:minnesota,ms:mississippi,mo:missouri,mt:montana,ne:nebraska,nv:nevada,nj:new jersey,"
        "nh:new hampshire,nm:new mexico,ny:new york,nc:north carolina,nd:north dakota,oh:ohio,"
        "ok:oklahoma,or:oregon,pa:pennsylvania,ri:rhode island,sc:south carolina,tn:tennessee,"
        "tx:texas,ut:utah,vt:vermont,va:virginia,wa:washington,wi:wisconsin,wy:wyoming"
    )
)
_PLACE: Final = re.compile(r"(?:[A-Z][\w'-]+ ?)+, ?(?:[A-Z][\w.]+ ?){1,3}|[A-Z][a-z]+/[A-Z]\w+")
"""`Chicago, IL`, `Paris, France`, `Europe/Paris`: the city alone says it."""
_SMALL: Final = frozenset(listed("the,a,an,of,in,on,at,for,to,and,or,with,by,is,city,square,cubic"))


@dataclass(frozen=True, slots=True)
class SpokenNumber:
    """A number of the query as it is written there, and the values that it may stand for."""

    text: str
    readings: frozenset[float]


def numbers_in(query: str) -> list[SpokenNumber]:
    """The numbers in digits, in order: `5%` is 5 or 0.05, `$1,500` is 1500, `2k` is 2000 or 2."""
    return [_reading(found) for found in _NUMBER.finditer(query)]


def names_in(query: str) -> list[str]:
    """Quoted texts and capitalised names inside sentences, in order.

    Without months, days and units, and what follows a comma: `Miami, Florida` is one place.
    """
    quoted = _QUOTED.findall(query)
    outside = _QUOTED.sub("", query)
    names = re.findall(r"(?<=[a-z] )[A-Z][\w'-]+(?: [A-Z][\w'-]+)*", outside)
    return [
        name
        for name in dict.fromkeys((*quoted, *names))
        if name[:3].lower() not in _CALENDAR and not set(name.lower().split()) & _UNIT_WORDS
    ]


def number_words(query: str) -> frozenset[float]:
    """The values of the numbers in words: `twenty five` is 25, 20 and 5."""
    words = re.findall(r"[a-z]+", query.lower())
    found = {_WORDS[word] for word in words if word in _WORDS}
    for one, two in itertools.pairwise(words):
        if one in _WORDS and two in _WORDS:
            found |= {_WORDS[one] + _WORDS[two], _WORDS[one] * _WORDS[two]}
        if one in _WORDS and (scales := _SCALES.get(two.rstrip("s"))):
            found |= {_WORDS[one] * scale for scale in scales}
    return frozenset(found)


def says(query: str, name: str, schema: Mapping[str, Any], value: Any) -> bool:
    """Whether the query has the value, in one of the forms that people write it in.

    Forms: case, punctuation, plural, numbers in words, with `%`, units and currency, dates, usual
    synonyms of units and enumerated values; a flag by the words of its name. A value that is the
    declared default need not be said.
    """
    return _is_default(schema, value) or _said(query, name, schema, value)


def _said(query: str, name: str, schema: Mapping[str, Any], value: Any) -> bool:
    match value:
        case bool():
            return _flag_said(query, name, schema)
        case int() | float():
            return _number_said(query, float(value))
        case str():
            return _text_said(query, value)
        case list() | tuple():
            inner = dict(schema.get("items") or {})
            return all(_said(query, name, inner, one) for one in value)
        case Mapping():
            inner = dict(schema.get("properties") or {})
            return all(says(query, k, dict(inner.get(k) or {}), v) for k, v in value.items())
    return value is None


def _number_said(query: str, value: float) -> bool:
    digits = [reading for one in numbers_in(query) for reading in one.readings]
    if value < 0 and re.search(r"(?i)\b(?:loss|lost|minus|negative|decrease)", query):
        digits += [-reading for reading in digits]
    return any(_same(value, x) for x in digits) or any(_same(value, x) for x in number_words(query))


def _text_said(query: str, value: str) -> bool:
    whole, wanted = plain(query), plain(value)
    if not wanted or f" {wanted} " in f" {whole} ":
        return True
    tight = wanted.replace(" ", "")
    if len(tight) > 3 and tight in whole.replace(" ", ""):
        return True
    if (day := iso_date(value)) and day.isoformat() in set(dates_in(query)):
        return True
    if set(dates_in(value)) & set(dates_in(query)) or _day_said(query, value):
        return True
    head = value.rpartition("/")[2] if "/" in value else value.partition(",")[0]
    if head != value and len(head) > 3 and _PLACE.fullmatch(value.strip(" .")):
        return _text_said(query, head)
    if number := _NUMBER.fullmatch(value.strip()):
        return any(_number_said(query, reading) for reading in _reading(number).readings)
    there = whole.split()
    words = [word for word in wanted.split() if word not in _SMALL]
    return bool(words) and all(_word_said(word, there, whole) for word in words)


def _day_said(query: str, value: str) -> bool:
    """Whether the day and month are said, and no other year."""
    years = set(re.findall(r"\b(?:19|20)\d\d\b", query))
    said = set(days_in(query))
    return any(
        tuple(map(int, date.split("-")[1:])) in said and (not years or date[:4] in years)
        for date in dates_in(value)
    )


def _word_said(word: str, there: Iterable[str], whole: str) -> bool:
    stem = word[: max(4, len(word) - 3)] if len(word) > 4 else word
    if len(word) == 3 and any(
        one == f"{word}s" or (len(one) > 5 and one.startswith(word)) for one in there
    ):
        return True
    for one in there:
        if (
            one == word
            or (len(word) > 3 and one.startswith(stem))
            or (len(one) > 4 and word.startswith(one[: max(4, len(one) - 3)]))
        ):
            return True
    if word.isdecimal() and len(word) < 10:
        return float(word) in number_words(whole)
    if word in _STATES and f" {_STATES[word]} " in f" {whole} ":
        return True
    alike = [group for group in _SYNONYMS if word in group]
    return any(f" {other} " in f" {whole} " for group in alike for other in group)


def _flag_said(query: str, name: str, schema: Mapping[str, Any]) -> bool:
    query = query.lower()
    return bool(stems(words_of(name)) & stems(query)) or bool(
        stems(str(schema.get("description", ""))) & stems(query)
    )


def named_numbers(query: str, name: str) -> list[SpokenNumber]:
    """The numbers that the query says to be of the parameter: `base of 10`, `10 as the base`."""
    label = re.escape(words_of(name)).replace(r"\ ", r"[ _]")
    after = (
        rf"(?i)(?<!\w){label}(?: (?:of|is|as|should be|equal to|set to|being))? ?[:=]? ?(?=[-$\d])"
    )
    found = [_NUMBER.match(query, one.end()) for one in re.finditer(after, query)]
    before = rf"(?i) (?:[a-z]+ )?as the {label}(?!\w)"
    ends = [one.start() for one in re.finditer(before, query)]
    found += [one for one in _NUMBER.finditer(query) if one.end() in ends]
    return [_reading(one) for one in found if one]


def stems(text: str, least: int = 4) -> set[str]:
    """The first five letters of each word of at least `least` letters."""
    return {word[:5] for word in re.findall(r"[a-z]+", text.lower()) if len(word) >= least}


def plain(text: str) -> str:
    """Lower case, one blank between words, no punctuation."""
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text.lower())
    text = re.sub(r"(?<=\d)(?=[a-z])", " ", text)
    return re.sub(r"[^\w$\u20ac\u00a3]+|_", " ", text).strip()


def _reading(found: re.Match[str]) -> SpokenNumber:
    digits, scale = found["digits"], (found["scale"] or "").lower()
    if mark := found["prefix"] or found["compass"]:
        scale = "milli" if mark == "m" else _MARKS.get(mark.lower(), "")
    bare = float(digits.replace(",", ""))
    if found["power"]:
        bare *= 10.0 ** max(-30, min(30, int(found["power"])))
    listed_numbers = found.string[max(0, found.start() - 1) : found.start()] in {"[", "("}
    grouped = re.fullmatch(r"\d{1,3}(?:,\d{3}){1,3}(?:\.\d+)?", digits) and not listed_numbers
    readings = {bare} if grouped else {bare, *(float(x) for x in digits.split(",") if x)}
    readings |= {value * factor for value in readings for factor in _SCALES.get(scale, ())}
    if scale == "pm":
        readings.add(bare + 12)
    if found["sign"]:
        readings |= {-value for value in readings}
    return SpokenNumber(digits, frozenset(readings))


def _is_default(schema: Mapping[str, Any], value: Any) -> bool:
    default = default_of(schema)
    if default is None:
        return False
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return any(_same(float(value), x) for one in numbers_in(default) for x in one.readings)
    return plain(default) == plain(str(value))


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
