"""Dates as people write them, and back: `May 4, 2024` is `2024-05-04`."""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_MONTH: Final = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS) + "|sept"
_ISO: Final = re.compile(r"(?i)yyyy-mm-dd|iso|\b\d{4}-\d\d-\d\d\b")
_FORMS: Final = (
    re.compile(r"\b(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})\b"),
    re.compile(rf"\b(?P<n>{_MONTH})\.?,? ?(?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? ?(?P<y>\d{{4}})\b"),
    re.compile(
        rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<n>{_MONTH})\.?,? ?(?P<y>\d{{4}})\b"
    ),
    re.compile(r"\b(?P<m>\d{1,2})[/.-](?P<d>\d{1,2})[/.-](?P<y>\d{4})\b"),
    re.compile(r"\b(?P<d>\d{1,2})[/.-](?P<m>\d{1,2})[/.-](?P<y>\d{4})\b"),
)
_DAYS: Final = (
    re.compile(rf"\b(?P<n>{_MONTH})\.?,? ?(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b"),
    re.compile(rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<n>{_MONTH})\b"),
)


def is_iso(schema: Mapping[str, Any]) -> bool:
    """Whether the schema asks for `yyyy-mm-dd`."""
    return bool(schema.get("format") == "date" or _ISO.search(str(schema.get("description", ""))))


def draw_date(rng: random.Random, *, iso: bool) -> str:
    """A date: with `iso` as `2024-05-04`, else mostly so, and sometimes as people write it."""
    day = datetime.date(2015, 1, 1) + datetime.timedelta(days=rng.randrange(4_500))
    if iso or rng.random() < 0.6:
        return day.isoformat()
    return rng.choice((spoken(day, rng), f"{day:%m/%d/%Y}", _relative(rng)))


def spoken(day: datetime.date, rng: random.Random) -> str:
    """The date with the name of its month."""
    month, n = MONTHS[day.month - 1].capitalize(), day.day
    ending = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return rng.choice(
        (
            f"{month} {n}, {day.year}",
            f"{n} {month} {day.year}",
            f"{month} {n}{ending}, {day.year}",
            f"{n}{ending} of {month} {day.year}",
        )
    )


def dates_in(text: str) -> Iterator[str]:
    """All dates in the text as `yyyy-mm-dd`; one with slashes in both of its readings."""
    for form in _FORMS:
        for found in form.finditer(text.lower()):
            part = found.groupdict()
            month = int(part["m"]) if part.get("m") else _number_of(part["n"])
            try:
                yield datetime.date(int(part["y"]), month, int(part["d"])).isoformat()
            except ValueError:
                continue


def days_in(text: str) -> Iterator[tuple[int, int]]:
    """The month and day of all dates that are said with the name of the month."""
    for form in _DAYS:
        for found in form.finditer(text.lower()):
            yield _number_of(found["n"]), int(found["d"])


def iso_date(value: object) -> datetime.date | None:
    """The date that a text of the form `yyyy-mm-dd` is."""
    try:
        return datetime.date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _number_of(month: str) -> int:
    return next(n for n, name in enumerate(MONTHS, 1) if name.startswith(month[:3]))


def _relative(rng: random.Random) -> str:
    return rng.choice(("today", "tomorrow", "yesterday", "next Monday", "next Friday", "last week"))
