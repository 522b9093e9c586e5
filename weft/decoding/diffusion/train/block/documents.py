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

from weft.core.values import JsonSchema
from weft.decoding.diffusion.train.block import words
from weft.decoding.diffusion.train.block.words import Kind, Value


@dataclass(frozen=True, slots=True)
class Field:
    """A key, what it may hold, and sentences that say so of `{who}`: with `{value}`, or, for yes
    and no, one for each.
    """

    key: str
    kind: Kind
    sentences: tuple[str, ...]

    def told(self, who: str, value: Value, chance: np.random.Generator) -> str:
        """A sentence with the value in it."""
        if isinstance(value, bool):
            return self.sentences[not value].format(who=who)
        return words.one(self.sentences, chance).format(who=who, value=_spelled(value))


@dataclass(frozen=True, slots=True)
class Topic:
    """What documents of one sort are of: `subject` always, and `least` to `most` of `fields`."""

    subject: Field
    fields: tuple[Field, ...]
    least: int = 1
    most: int = 3


@dataclass(frozen=True, slots=True)
class Document:
    """`request` names the keys of `fields` in their order and tells their values in any.

    `schemas`: what each of them may be, by key.
    """

    request: str
    fields: Mapping[str, Value]
    schemas: Mapping[str, JsonSchema]

    @property
    def answer(self) -> str:
        """As JSON, with the white space that weft's grammars have."""
        return json.dumps(self.fields, ensure_ascii=False)

    @property
    def schema(self) -> JsonSchema:
        """Of the whole document."""
        return {
            "type": "object",
            "properties": dict(self.schemas),
            "required": list(self.fields),
            "additionalProperties": False,
        }


TICKET: Final = Topic(
    Field("ticket", words.bounded(100, 999), ("This is ticket {value}.", "Ticket {value}.")),
    (
        Field("priority", words.PRIORITY, ("The priority is {value}.", "Priority: {value}.")),
        Field("status", words.STATUS, ("The status is {value}.", "It is {value} now.")),
        Field("channel", words.CHANNEL, ("It came by {value}.", "Channel: {value}.")),
        Field("level", words.bounded(1, 9), ("The level is {value}.", "Level {value}.")),
        Field("items", words.bounded(1, 50), ("There are {value} items.", "Items: {value}.")),
        Field("confirmed", words.YES, ("It is confirmed.", "It is not confirmed yet.")),
        Field("refund", words.YES, ("A refund is due.", "No refund is due.")),
        Field("repeated", words.YES, ("It happened before.", "It never happened before.")),
        Field("vip", words.YES, ("The customer is a VIP.", "The customer is no VIP.")),
    ),
    4,
    9,
)
"""A form with many keys and short values."""
TOPICS: Final = (
    Topic(
        Field("name", words.NAME, ("This is about {value}.", "{value} signed up.")),
        (
            Field("age", words.whole(18, 90), ("{who} is {value} years old.", "Age: {value}.")),
            Field("city", words.CITY, ("{who} lives in {value}.", "Home is {value}.")),
            Field("job", words.JOB, ("{who} is a {value}.", "{who} works as a {value}.")),
            Field("member", words.YES, ("{who} is a member.", "{who} is not a member.")),
            Field("born", words.DATE, ("{who} was born on {value}.",)),
            Field("likes", words.THINGS, ("{who} likes {value}.",)),
        ),
    ),
    Topic(
        Field("item", words.THING, ("The order is for a {value}.", "Someone bought a {value}.")),
        (
            Field("count", words.whole(1, 40), ("They want {value} of them.", "Count: {value}.")),
            Field("price", words.PRICE, ("It costs {value}.", "The price is {value}.")),
            Field("colour", words.COLOUR, ("It is {value}.", "The colour is {value}.")),
            Field("customer", words.NAME, ("The customer is {value}.", "It goes to {value}.")),
            Field("paid", words.YES, ("It is paid.", "It is not paid yet.")),
            Field("due", words.DATE, ("It is due on {value}.",)),
        ),
    ),
    Topic(
        Field("place", words.CITY, ("We meet in {value}.", "The meeting is in {value}.")),
        (
            Field("day", words.DAY, ("It is on {value}.", "The day is {value}.")),
            Field("hour", words.whole(7, 22), ("It starts at {value}.", "The hour is {value}.")),
            Field("host", words.NAME, ("{value} is the host.", "{value} invites.")),
            Field("guests", words.whole(2, 99), ("There are {value} guests.",)),
            Field("online", words.YES, ("One can join online.", "One cannot join online.")),
            Field("bring", words.THINGS, ("Please bring {value}.",)),
        ),
    ),
    Topic(
        Field("owner", words.NAME, ("{value} has a plan.", "The plan is from {value}.")),
        (
            Field("steps", words.TASKS, ("The steps are {value}.", "In this order: {value}.")),
            Field("day", words.DAY, ("It is for {value}.", "All is done on {value}.")),
            Field("hours", words.whole(1, 12), ("It takes {value} hours.",)),
            Field("urgent", words.YES, ("It is urgent.", "It is not urgent.")),
        ),
    ),
    TICKET,
)
_REQUESTS: Final = (
    "{text}\nWrite this as JSON with the keys {keys}.",
    "Fill in {keys} as JSON.\n{text}",
    "{text}\nJSON with {keys}:",
)


def document(chance: np.random.Generator) -> Document:
    """Any one. Now and then the text tells more than is asked for."""
    topic = TOPICS[int(chance.integers(len(TOPICS)))]
    count = int(chance.integers(topic.least, topic.most + 1))
    return _told(topic, count, int(chance.integers(5) == 0), chance)


def form(chance: np.random.Generator) -> Document:
    """A ticket with all its keys."""
    return _told(TICKET, TICKET.most, 0, chance)


def _told(topic: Topic, count: int, more: int, chance: np.random.Generator) -> Document:
    """The subject, `count` fields, and a text that tells `more` besides."""
    order = [topic.fields[int(at)] for at in chance.permutation(len(topic.fields))]
    asked, aside = [topic.subject, *order[:count]], order[count:][:more]
    values = {field.key: field.kind.draw(chance) for field in (*asked, *aside)}
    who = str(values[topic.subject.key])
    opening = topic.subject.told(who, who, chance)
    told = [field.told(who, values[field.key], chance) for field in (*asked[1:], *aside)]
    text = " ".join([opening, *(told[int(at)] for at in chance.permutation(len(told)))])
    fields = [asked[int(at)] for at in chance.permutation(len(asked))]
    keys = ", ".join(field.key for field in fields)
    request = words.one(_REQUESTS, chance).format(text=text, keys=keys)
    return Document(
        request,
        {field.key: values[field.key] for field in fields},
        {field.key: field.kind.schema for field in fields},
    )


def _spelled(value: Value) -> str:
    if not isinstance(value, list):
        return str(value)
    return ", ".join(value[:-1]) + " and " + value[-1]
