"""Requests with facts in their text, and the JSON document that answers them: made from a seed.

A corpus narrow enough to be learnt in minutes: forms that are filled in, and plans. Knows no
tokens.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.decoding.diffusion.train.block import words
from weft.decoding.diffusion.train.block.words import Draw, Value


@dataclass(frozen=True, slots=True)
class Field:
    """A key, what it may hold, and sentences that say so of `{who}`: with `{value}`, or, for yes
    and no, one for each.
    """

    key: str
    draw: Draw
    sentences: tuple[str, ...]

    def told(self, who: str, value: Value, chance: np.random.Generator) -> str:
        """A sentence with the value in it."""
        if isinstance(value, bool):
            return self.sentences[not value].format(who=who)
        return words.one(self.sentences, chance).format(who=who, value=_spelled(value))


@dataclass(frozen=True, slots=True)
class Topic:
    """What documents of one sort are of: `subject` always, and some of `fields`."""

    subject: Field
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """`request` names the keys of `fields` in their order and tells their values in any."""

    request: str
    fields: Mapping[str, Value]

    @property
    def answer(self) -> str:
        """As JSON, with the white space that weft's grammars have."""
        return json.dumps(self.fields, ensure_ascii=False)


TOPICS: Final = (
    Topic(
        Field("name", words.NAME, ("This is about {value}.", "{value} signed up.")),
        (
            Field("age", words.whole(18, 90), ("{who} is {value} years old.", "Age: {value}.")),
            Field("city", words.CITY, ("{who} lives in {value}.", "Home is {value}.")),
            Field("job", words.JOB, ("{who} is a {value}.", "{who} works as a {value}.")),
            Field("member", words.yes, ("{who} is a member.", "{who} is not a member.")),
            Field("born", words.date, ("{who} was born on {value}.",)),
            Field("likes", words.THINGS, ("{who} likes {value}.",)),
        ),
    ),
    Topic(
        Field("item", words.THING, ("The order is for a {value}.", "Someone bought a {value}.")),
        (
            Field("count", words.whole(1, 40), ("They want {value} of them.", "Count: {value}.")),
            Field("price", words.price, ("It costs {value}.", "The price is {value}.")),
            Field("colour", words.COLOUR, ("It is {value}.", "The colour is {value}.")),
            Field("customer", words.NAME, ("The customer is {value}.", "It goes to {value}.")),
            Field("paid", words.yes, ("It is paid.", "It is not paid yet.")),
            Field("due", words.date, ("It is due on {value}.",)),
        ),
    ),
    Topic(
        Field("place", words.CITY, ("We meet in {value}.", "The meeting is in {value}.")),
        (
            Field("day", words.DAY, ("It is on {value}.", "The day is {value}.")),
            Field("hour", words.whole(7, 22), ("It starts at {value}.", "The hour is {value}.")),
            Field("host", words.NAME, ("{value} is the host.", "{value} invites.")),
            Field("guests", words.whole(2, 99), ("There are {value} guests.",)),
            Field("online", words.yes, ("One can join online.", "One cannot join online.")),
            Field("bring", words.THINGS, ("Please bring {value}.",)),
        ),
    ),
    Topic(
        Field("owner", words.NAME, ("{value} has a plan.", "The plan is from {value}.")),
        (
            Field("steps", words.TASKS, ("The steps are {value}.", "In this order: {value}.")),
            Field("day", words.DAY, ("It is for {value}.", "All is done on {value}.")),
            Field("hours", words.whole(1, 12), ("It takes {value} hours.",)),
            Field("urgent", words.yes, ("It is urgent.", "It is not urgent.")),
        ),
    ),
)
_REQUESTS: Final = (
    "{text}\nWrite this as JSON with the keys {keys}.",
    "Fill in {keys} as JSON.\n{text}",
    "{text}\nJSON with {keys}:",
)
_MOST_FIELDS: Final = 3


def document(chance: np.random.Generator) -> Document:
    """Any one, of two to four keys. Now and then the text tells more than is asked for."""
    topic = TOPICS[int(chance.integers(len(TOPICS)))]
    order = [topic.fields[int(at)] for at in chance.permutation(len(topic.fields))]
    count = int(chance.integers(1, _MOST_FIELDS + 1))
    asked, aside = [topic.subject, *order[:count]], order[count:][: int(chance.integers(5) == 0)]
    values = {field.key: field.draw(chance) for field in (*asked, *aside)}
    who = str(values[topic.subject.key])
    opening = topic.subject.told(who, who, chance)
    told = [field.told(who, values[field.key], chance) for field in (*asked[1:], *aside)]
    text = " ".join([opening, *(told[int(at)] for at in chance.permutation(len(told)))])
    keys = [asked[int(at)].key for at in chance.permutation(len(asked))]
    request = words.one(_REQUESTS, chance).format(text=text, keys=", ".join(keys))
    return Document(request, {key: values[key] for key in keys})


def _spelled(value: Value) -> str:
    if not isinstance(value, list):
        return str(value)
    return ", ".join(value[:-1]) + " and " + value[-1]
