"""What is written is read again, in all its forms; what is not said is not read."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.agents.calls.dates import dates_in, spoken
from weft.agents.calls.kinds import default_of, examples, kind_of, words_of
from weft.agents.calls.phrases import phrase, state, write_value
from weft.agents.calls.reading import named_numbers, names_in, number_words, numbers_in, says
from weft.agents.calls.values import ValueSource

SCHEMAS: dict[str, dict[str, Any]] = {
    "base": {"type": "integer", "description": "The base in meters."},
    "rate": {"type": "number", "description": "The interest rate."},
    "percentage": {"type": "number", "description": "A share in percent."},
    "price": {"type": "number", "description": "The price."},
    "year": {"type": "integer", "description": "The year."},
    "guests": {"type": "integer", "description": "How many guests."},
    "latitude": {"type": "number", "description": "The latitude."},
    "city": {"type": "string", "description": "The city."},
    "start_date": {"type": "string", "description": "The first day (yyyy-mm-dd)."},
    "date": {"type": "string", "description": "The day."},
    "message": {"type": "string", "description": "What to send."},
    "customer_name": {"type": "string", "description": "The customer."},
    "order_id": {"type": "string", "description": "The order."},
    "email": {"type": "string", "description": "The address."},
    "topic": {"type": "string", "description": "What about."},
    "sort_order": {"type": "string", "enum": ["ascending", "descending"]},
    "style": {"type": "string", "enum": ["pop_art", "oil"]},
    "equation": {"type": "string", "description": "The equation."},
    "values": {"type": "array", "items": {"type": "number"}, "description": "Numbers."},
    "tags": {"type": "array", "items": {"type": "string"}, "description": "Words."},
    "room": {
        "type": "object",
        "properties": {"floor": {"type": "integer"}, "view": {"type": "string"}},
        "required": ["floor", "view"],
    },
}
seeds = st.integers(0, 10**9)


@pytest.mark.parametrize("name", SCHEMAS)
@given(seeds)
def test_each_form_of_a_value_is_read(name: str, seed: int) -> None:
    rng = random.Random(seed)
    schema = SCHEMAS[name]
    value = ValueSource().draw(name, schema, rng)
    said = write_value(name, schema, value, rng)
    assert says(f"please look at {said} for me", name, schema, value), (value, said)
    for text in (phrase(name, schema, value, rng).text, state(name, schema, value, rng)):
        assert says(f"please look {text}", name, schema, value), (value, text)


@given(seeds, seeds)
def test_a_number_that_is_not_said_is_not_read(one: int, other: int) -> None:
    if one != other and {one, other}.isdisjoint(range(100)):
        assert not says(f"with a base of {one}", "base", SCHEMAS["base"], other)


@given(st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1)), seeds)
def test_dates_in_words_are_read(day: datetime.date, seed: int) -> None:
    assert list(dates_in(f"on {spoken(day, random.Random(seed))} at noon")) == [day.isoformat()]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5%", 0.05), ("5 percent", 5), ("$1,500.50", 1500.5), ("2 million", 2_000_000),
        ("10k", 10_000), ("-3", -3), ("1e-9", 1e-9), ("11 PM", 23), ("3 minutes", 180),
        ("50mH", 0.05), ("112.07 W", -112.07), ("[200,300,400]", 300),
    ],
)  # fmt: skip
def test_numbers_in_digits(text: str, value: float) -> None:
    assert any(abs(x - value) < 1e-12 for one in numbers_in(f"it is {text}") for x in one.readings)


@pytest.mark.parametrize(
    ("text", "value"), [("twenty five", 25), ("two dozen", 24), ("two hundred", 200), ("half", 0.5)]
)
def test_numbers_in_words(text: str, value: float) -> None:
    assert value in number_words(f"I need {text} of them")


def test_a_grouped_number_is_one_number() -> None:
    assert [one.readings for one in numbers_in("pay 1,234,567 now")] == [{1234567.0}]


@pytest.mark.parametrize(
    ("query", "name", "value", "said"),
    [
        ("in New York", "location", "New York, NY", True),
        ("in New York", "location", "Boston, MA", False),
        ("from April 4th to April 8th, 2023", "date", "2023-04-08", True),
        ("from April 4th to April 8th, 2023", "date", "2023-04-09", False),
        ("from April 4th to April 8th, 2023", "date", "2022-04-08", False),
        ("radius of 5cm", "unit", "cm", True),
        ("how many tigers", "species", "tiger", True),
        ("a loss of $1000", "gain", -1000, True),
        ("a gain of $1000", "gain", -1000, False),
        ("with the sauna", "include_sauna", True, True),
        ("for two", "include_sauna", True, False),
        ("Maria Lopez", "name", "Kenji Sato", False),
    ],
)
def test_natural_forms(query: str, name: str, value: object, said: bool) -> None:
    kind = {bool: "boolean", int: "integer", str: "string"}[type(value)]
    assert says(query, name, {"type": kind}, value) is said


@pytest.mark.parametrize(
    ("description", "default"),
    [
        ("The unit. Default is 'cm'.", "cm"),
        ("Gravity (default: 9.81 m/s^2).", "9.81 m/s^2"),
        ("If not given, defaults to square meters if unset", "square meters"),
        ("The season, default is the current season '2023'.", "2023"),
        ("No such thing.", None),
    ],
)
def test_defaults_are_read_from_descriptions(description: str, default: str | None) -> None:
    assert default_of({"description": description}) == default


def test_a_default_need_not_be_said() -> None:
    schema = {"type": "number", "description": "Gravity. Default is 9.81 m/s^2."}
    assert says("it falls", "gravity", schema, 9.81)
    assert not says("it falls", "gravity", schema, 3.7)


def test_examples_of_descriptions() -> None:
    schema = {"description": "The host (e.g., E. coli, yeast, or 'CHO cells')"}
    assert examples(schema) == ("E. coli", "yeast", "CHO cells")


@pytest.mark.parametrize(
    ("name", "schema", "kind"),
    [
        ("destinationCity", {"type": "string"}, "to_place"),
        ("start_date", {"type": "string"}, "start"),
        ("product_name", {"type": "string"}, "product"),
        ("name", {"type": "string", "description": "The name of the drug"}, "other"),
        ("name", {"type": "string", "description": "The name of the patient"}, "person"),
        ("interest_rate", {"type": "number"}, "fraction"),
        ("num_guests", {"type": "integer"}, "count"),
        ("target_language", {"type": "string"}, "to_language"),
    ],
)
def test_kinds(name: str, schema: dict[str, str], kind: str) -> None:
    assert kind_of(name, schema) == kind


def test_names_are_quoted_or_capitalised_inside_a_sentence() -> None:
    query = "Find the tower called 'Old Tom' near Santa Fe, Texas in May with 5 Watts"
    assert names_in(query) == ["Old Tom", "Santa Fe"]


@given(st.text(max_size=200), st.text(max_size=40))
def test_no_text_breaks_the_reader(query: str, value: str) -> None:
    for wanted in (value, 3, -1.5, True, [value], {"a": value}, None):
        assert isinstance(says(query, "name", {"type": "string"}, wanted), bool)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("a base of 10 and a height of 5", [10]),
        ("base=10, height 5", [10]),
        ("with 10 as the base and 5 as the height", [10]),
        ("the base is 1,500 cm", [1500]),
        ("10 and 5", []),
    ],
)
def test_numbers_by_name(query: str, found: list[float]) -> None:
    assert [max(one.readings) for one in named_numbers(query, "base")] == found


@pytest.mark.parametrize("name", ["startDate", "start_date", "start.date"])
def test_words_of_names(name: str) -> None:
    assert words_of(name) == "start date"
