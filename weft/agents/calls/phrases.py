"""How people say one argument: `in Oslo`, `a base of 10 cm`, `without tolls`."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.agents.calls.dates import is_iso, iso_date, spoken
from weft.agents.calls.item import reference
from weft.agents.calls.kinds import NUMERIC, Kind, kind_of, words_of
from weft.agents.calls.pools import listed

NUMBER_WORDS: Final = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve"),
)
_UNITS: Final = re.compile(
    r"(?i)\bin (?:the )?((?:square |cubic )?(?:meters|metres|centimeters|millimeters|kilometers|"
    r"km/h|km|cm|mm|miles|feet|inches|yards|kilograms|kg|grams|pounds|lbs|tons|liters|gallons|"
    r"milliliters|hours|minutes|seconds|days|weeks|months|years|celsius|fahrenheit|kelvin|volts|"
    r"amperes|amps|watts|kilowatts|joules|newtons|pascals|hertz|hz|ohms|acres|hectares|degrees|mph|"
    r"mg|ml|calories|coulombs|tesla|bytes|gb|mb|m/s|pixels)(?: per [a-z]+| squared)?)\b"
)
_SAY: Final[Mapping[Kind, Sequence[str]]] = {
    "place": ("in {v}", "in {v}", "for {v}", "near {v}", "around {v}", "at {v}"),
    "city": ("in {v}", "for {v}", "in the city of {v}", "around {v}"),
    "country": ("in {v}", "for {v}", "in {v}", "from {v}"),
    "state": ("in {v}", "for {v}", "in the state of {v}"),
    "from_place": ("from {v}", "from {v}", "starting from {v}", "leaving {v}"),
    "to_place": ("to {v}", "to {v}", "going to {v}", "bound for {v}"),
    "address": ("at {v}", "at the address {v}", "at {v}"),
    "year": ("in {v}", "for {v}", "in the year {v}", "for the year {v}", "of {v}"),
    "start": ("from {v}", "starting {v}", "starting on {v}", "beginning {v}", "starting from {v}"),
    "end": ("to {v}", "until {v}", "ending {v}", "up to {v}", "through {v}"),
    "date": ("on {v}", "for {v}", "dated {v}", "on {v}"),
    "clock": ("at {v}", "for {v}", "at {v}"),
    "period": ("for {v}", "over {v}", "for {v}"),
    "from_language": ("from {v}", "from {v}", "written in {v}"),
    "to_language": ("to {v}", "into {v}", "into {v}"),
    "language": ("in {v}", "in {v}", "in the {v} language"),
    "company": ("for {v}", "by {v}", "from {v}", "at {v}"),
    "product": ("for the {v}", "of the {v}", "for {v}"),
    "title": ("for '{v}'", "called {v}", "titled '{v}'", "for {v}", "named {v}"),
    "person": ("for {v}", "named {v}", "for {v}"),
    "id": ("with {n} {v}", "with ID {v}", "for {n} {v}"),
    "age": ("aged {v}", "at age {v}", "who is {v} years old", "at the age of {v}"),
    "unit": ("in {v}", "in {v}", "in units of {v}", "using {v}"),
    "color": ("in {v}", "in the color {v}"),
    "currency": ("in {v}", "to be paid in {v}"),
    "topic": ("about {v}", "on {v}", "on the topic of {v}", "regarding {v}", "related to {v}"),
    "sentence": ("saying {v}", "that says {v}", "with the {n} {v}", "with {n} {v}"),
    "path": ("from {v}", "at {v}", "with {n} {v}"),
    "formula": ("for {v}", "of {v}", "for the {n} {v}"),
    "user": ("for {v}", "for {n} {v}"),
    "email": ("with the email {v}", "using {v}", "at {v}"),
    "phone": ("with phone number {v}", "at {v}"),
    "url": ("at {v}", "for {v}"),
    "temperature": ("at {v}", "at a {n} of {v}", "at {v} degrees"),
}
"""Phrases that follow a request as they are."""
_CLASS: Final[Mapping[str, Sequence[str]]] = {
    "type": ("of type {v}", "of the {v} type", "of the type {v}"),
    "category": ("in the {v} category", "in the category {v}"),
    "method": ("using the {v} method", "using {v}", "by the {v} method", "with {v}"),
    "algorithm": ("using {v}", "with the {v} algorithm"),
    "technique": ("using {v}", "with the {v} technique"),
    "format": ("in {v} format", "as {v}", "in the {v} format"),
    "genre": ("in the {v} genre", "of the genre {v}"),
    "mode": ("in {v} mode", "by {v}"),
    "level": ("at the {v} level", "at {n} {v}", "at a {v} level"),
    "severity": ("of {v} severity", "with {v} severity"),
    "priority": ("with {v} priority", "at {v} priority"),
    "order": ("in {v} order", "ordered {v}"),
    "sort": ("sorted by {v}", "ordered by {v}"),
    "frequency": ("on a {v} basis", "with a {v} frequency"),
    "style": ("in {v} style", "in the style {v}"),
    "season": ("in {v}", "during {v}", "in the {v} season"),
    "gender": ("for {v} persons", "of {v} gender"),
    "stage": ("in {v}", "at {v}"),
    "status": ("with {v} status", "with status {v}", "that is {v}"),
    "size": ("in size {v}", "of {v} size"),
    "grade": ("in grade {v}", "for grade {v}"),
    "quality": ("in {v} quality", "with {v} quality"),
}
_NAMED_NUMBERS: Final = (
    *("a {n} of {v}", "a {n} of {v}", "{n} of {v}", "{n} {v}", "{n} {v}", "{v} as the {n}"),
    *("the {n} {v}", "{n} = {v}", "{n}={v}", "{n} equal to {v}"),
)
_NAMED: Final = (
    *("the {n} {v}", "{n} {v}", "{n} {v}", "{v} as the {n}", "'{v}' as the {n}", "the {n} '{v}'"),
    "{n} set to {v}",
)
_STATES: Final = ("the {n} is {v}", "{n} is {v}", "{n} = {v}", "the {n} should be {v}")
_BY_NAME: Final[Mapping[str, Sequence[str]]] = {
    "limit": ("limited to {v} results", "at most {v} results", "showing only {v} results"),
    "max results": ("with at most {v} results", "limited to {v} results", "only the top {v}"),
    "sort by": ("sorted by {v}", "ordered by {v}"),
    "precision": ("to {v} decimal places", "rounded to {v} decimals", "with {v} decimal places"),
    "decimals": ("to {v} decimal places", "rounded to {v} decimals"),
    "page": ("on page {v}", "(page {v})"),
    "min rating": ("rated at least {v}", "with a rating of at least {v}", "with {v} stars or more"),
    "radius": ("within {v}", "within a radius of {v}", "within {v} of there"),
    "max price": ("under {v}", "for at most {v}", "that cost no more than {v}"),
    "budget": ("with a budget of {v}", "for at most {v}", "on a budget of {v}"),
    "output format": ("as {v}", "in {v} format"),
    "priority": ("with {v} priority", "with priority {v}"),
    "tags": ("tagged {v}", "with the tags {v}"),
    "features": ("with {v}", "that has {v}", "offering {v}"),
    "amenities": ("with {v}", "that has {v}", "where there is {v}"),
    "payment method": ("paying by {v}", "paid by {v}", "with {v} as the payment method"),
    "material": ("made of {v}", "of {v}"),
    "customer name": ("for {v}", "under the name {v}", "in the name of {v}"),
    "symptoms": ("with {v}", "with symptoms such as {v}"),
    "ingredients": ("with {v}", "using {v}"),
    "author": ("by {v}", "written by {v}"),
    "artist": ("by {v}",),
    "manufacturer": ("made by {v}", "by {v}", "from {v}"),
    "brand": ("by {v}", "of the brand {v}", "from {v}"),
    "duration": ("for {v}", "lasting {v}", "with a duration of {v}"),
    "frequency": ("with a frequency of {v}", "at {v}"),
    "weight": ("weighing {v}", "with a weight of {v}"),
    "recipient": ("to {v}",),
    "subject": ("with the subject {v}", "about {v}"),
}
_WHICH: Final = re.compile(r"(?i)\b(for|to|in|from|on|at|of|by) (?:which|whom)\b")
_CONVERSIONS: Final[Mapping[str, Sequence[str]]] = {
    "from": ("from {v}", "given in {v}"),
    "to": ("to {v}", "into {v}"),
}
_INCLUDING: Final = frozenset(listed("include,show,with,includes,return,get"))
_FLAGS: Final[Mapping[str, tuple[Sequence[str], Sequence[str]]]] = {
    "include": (
        ("including {n}", "with {n}", "and include {n}", "and show {n}"),
        ("without {n}", "excluding {n}", "but leave out {n}", "but do not include {n}"),
    ),
    "avoid": (
        ("avoiding {n}", "without {n}", "but avoid {n}"),
        ("without avoiding {n}", "and do not avoid {n}"),
    ),
    "is": (("that is {n}",), ("that is not {n}",)),
    "are": (("that are {n}",), ("that are not {n}",)),
    "has": (("that has {n}", "with {n}"), ("that has no {n}", "without {n}")),
    "": (
        ("with {n}", "with {n} enabled", "with {n} turned on", "with {n} true", "({n}: yes)"),
        ("without {n}", "with {n} disabled", "with {n} turned off", "with {n} set to false"),
    ),
}
"""How flags are said that are on, and that are off, by the first word of the name."""
_COUNTED: Final = frozenset(
    listed(
        "days,hours,minutes,nights,weeks,months,years,participants,guests,passengers,people,servings,"
        "copies,rooms,seats,items,pages"
    )
)


@dataclass(frozen=True, slots=True)
class Phrase:
    """`named`: a noun phrase, to be said after `with` or `given`; else it follows as it is."""

    text: str
    named: bool = False


def phrase(
    name: str,
    schema: Mapping[str, Any],
    value: Any,
    rng: random.Random,
    text: str | None = None,
    *,
    explicit: bool = False,
) -> Phrase:
    """The argument in words; `text` takes the place of the value's own words.

    `explicit`: the name is said, since another argument is of the same kind.
    """
    label = label_of(name, schema, rng)
    if isinstance(value, bool):
        return Phrase(_flag(words_of(name), value, rng))
    said = write_value(name, schema, value, rng) if text is None else text
    kind = kind_of(name, schema)
    if reference(value) and kind not in {"place", "city", "country", "year", "date"}:
        return Phrase(f"{rng.choice(('with', 'using', 'for', 'with'))} {said}")
    numeric = schema.get("type") in NUMERIC
    if kind == "count" and words_of(name).split()[-1] in _COUNTED and rng.random() < 0.7:
        noun = words_of(name).split()[-1]
        noun = noun[:-1] if value == 1 and noun.endswith("s") else noun
        return Phrase(rng.choice(("for {v} {n}", "with {v} {n}")).format(v=said, n=noun))
    templates = _templates(name, schema, kind, said)
    if explicit:
        templates = [one for one in templates if "{n}" in one and "ID" not in one]
    if templates and rng.random() < 0.8:
        chosen = rng.choice(templates)
        if chosen == "on {v}" and re.match(r"today|tomorrow|yesterday|next|last", said):
            chosen = "for {v}"
        return Phrase(_fill(chosen, said, label))
    chosen = rng.choice(_NAMED_NUMBERS if numeric else _NAMED)
    return Phrase(_fill(chosen, said, label), named=True)


def _templates(name: str, schema: Mapping[str, Any], kind: Kind, said: str) -> Sequence[str]:
    """The phrases of the parameter that follow a request as they are."""
    words = words_of(name)
    if found := _BY_NAME.get(words):
        return found
    if kind == "class" and (found := _CLASS.get(words.split()[-1])):
        return found
    if kind in {"unit", "currency", "class", "other"} and words.split()[0] in _CONVERSIONS:
        return _CONVERSIONS[words.split()[0]]
    if kind == "period" and said.split()[0] in {"last", "past", "next"}:
        return ("over the {v}", "for the {v}", "in the {v}", "during the {v}")
    if kind in {"other", "class", "quantity"} and (
        which := _WHICH.search(str(schema.get("description", "")))
    ):
        return (f"{which[1]} {{v}}", f"{which[1]} {{v}}", f"{which[1]} the {{n}} {{v}}")
    return _SAY.get(kind, ())


def state(
    name: str, schema: Mapping[str, Any], value: Any, rng: random.Random, text: str | None = None
) -> str:
    """The argument as a short sentence: `the base is 10`."""
    said = write_value(name, schema, value, rng) if text is None else text
    if isinstance(value, bool):
        said = rng.choice(("yes", "true", "on") if value else ("no", "false", "off"))
    return _fill(rng.choice(_STATES), said, label_of(name, schema, rng))


def label_of(name: str, schema: Mapping[str, Any], rng: random.Random) -> str:
    """The words of the name, without `name` at the end, or the noun of the description."""
    words = words_of(name)
    if len(words) > 1 and rng.random() < 0.3:
        described = str(schema.get("description", ""))
        found = re.match(
            r"(?i)(?:the|an?) ([a-z][a-z -]{2,28}?)(?= (?:of|for|to|that|in|at|which|where|on|from|"
            r"you|by|with|is|used)\b|[.,(]|$)",
            described,
        )
        if found and not re.search(r"(?i)\b(?:type|unique|name|number|maximum|list)\b", found[1]):
            return found[1].lower().strip()
    short = re.sub(r" (?:name|value|input|param)$", "", words)
    return short if rng.random() < 0.6 else words


def write_value(name: str, schema: Mapping[str, Any], value: Any, rng: random.Random) -> str:
    """The value as a query has it; `reading.says` reads each of these forms."""
    match value:
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return _number(name, schema, value, rng)
        case str():
            return _text(name, schema, value, rng)
        case list():
            return _list(schema, value, rng)
        case dict():
            inner = dict(schema.get("properties") or {})
            parts = [f"{words_of(k)} {write_value(k, inner.get(k, {}), v, rng)}"
                     for k, v in value.items()]  # fmt: skip
            return join(parts)
    return str(value)


def join(parts: Sequence[str], last: str = " and ") -> str:
    """`a, b and c`."""
    return last.join((", ".join(parts[:-1]), parts[-1])) if len(parts) > 1 else parts[0]


def plain_number(value: float) -> str:
    """The number without a useless `.0`, and never with an exponent."""
    if value == int(value):
        return str(int(value))
    return f"{value:.10f}".rstrip("0")


def _number(name: str, schema: Mapping[str, Any], value: float, rng: random.Random) -> str:
    plain = plain_number(value)
    kind, draw = kind_of(name, schema), rng.random()
    grouped = f"{value:,}" if isinstance(value, int) and value >= 1000 and draw < 0.6 else plain
    if kind in {"year", "id", "latitude", "longitude"}:
        return plain
    if kind == "money":
        return f"${grouped}" if draw < 0.7 else rng.choice((grouped, f"{grouped} dollars"))
    if kind == "percent":
        return rng.choice((f"{plain}%", f"{plain}%", f"{plain} percent", plain))
    if kind == "fraction" and value < 1 and draw < 0.5:
        return f"{plain_number(round(value * 100, 8))}%"
    if kind == "count" and draw < 0.3 and value == int(value) and 1 <= value <= 12:
        return NUMBER_WORDS[int(value)]
    found = _UNITS.search(str(schema.get("description", "")))
    if found and draw < 0.7 and value != 1:
        return f"{grouped} {found[1]}"
    if kind == "quantity" and draw > 0.97:
        return f"{grouped} units"
    return grouped


def _text(name: str, schema: Mapping[str, Any], value: str, rng: random.Random) -> str:
    kind = kind_of(name, schema)
    if is_iso(schema) and (day := iso_date(value)) and rng.random() < 0.45:
        return spoken(day, rng)
    if kind == "class" and "_" in value and rng.random() < 0.6:
        return value.replace("_", " ")
    if kind == "sentence":
        return f'"{value}"' if "'" in value else f"'{value}'"
    quoted = {"title": 0.3, "formula": 0.3, "topic": 0.15, "other": 0.12}
    if "'" not in value and rng.random() < quoted.get(kind, 0.06):
        return rng.choice(("'{}'", '"{}"')).format(value)
    return value


def _list(schema: Mapping[str, Any], values: list[Any], rng: random.Random) -> str:
    inner = dict(schema.get("items") or {})
    numeric = inner.get("type") in NUMERIC
    said = [plain_number(v) if numeric else str(v) for v in values]
    if numeric:
        text = rng.choice((", ".join(said), join(said)))
        return f"[{text}]" if "and" not in text and rng.random() < 0.4 else text
    if rng.random() < 0.2:
        return join([f"'{one}'" for one in said])
    return join(said, rng.choice((" and ", " and ", ", and ")))


def _flag(words: str, value: bool, rng: random.Random) -> str:
    first, _, rest = words.partition(" ")
    yes: Sequence[str]
    no: Sequence[str]
    if first in _INCLUDING and rest:
        yes, no = _FLAGS["include"]
    elif first in {"avoid", "is", "are", "has"} and rest:
        yes, no = _FLAGS[first]
    else:
        rest = words
        yes, no = _FLAGS[""]
    return rng.choice(yes if value else no).format(n=rest)


def _fill(template: str, said: str, label: str) -> str:
    if said[:1] in {"'", '"'}:
        template = template.replace("'{v}'", "{v}").replace('"{v}"', "{v}")
    if re.fullmatch(r"[a-z]\d?|.*[^s]s", label):
        template = template.replace("a {n}", "{n}")
    if label[:1] in "aeiou":
        template = re.sub(r"\ba \{n\}", "an {n}", template)
    return template.format(v=said, n=label)
