"""Generated requests with facts in their text, and the JSON documents that answer them.

A corpus narrow enough for minutes of training: filled forms, and plans.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.core.values import JsonSchema
from weft.training.diffusion.block import value_generators
from weft.training.diffusion.block.value_generators import Value, ValueGenerator


@dataclass(frozen=True, slots=True)
class DocumentField:
    """A key with its values, and sentences about `{who}`: with `{value}`, or for yes and for no."""

    key: str
    kind: ValueGenerator
    sentences: tuple[str, ...]

    def sentence(self, who: str, value: Value, rng: np.random.Generator) -> str:
        """A sentence with the value."""
        if isinstance(value, bool):
            return self.sentences[not value].format(who=who)
        return value_generators.draw_one(self.sentences, rng).format(who=who, value=_spelled(value))


@dataclass(frozen=True, slots=True)
class DocumentTemplate:
    """A sort of document: `subject`, and `least` to `most` of `fields`."""

    subject: DocumentField
    fields: tuple[DocumentField, ...]
    least: int = 1
    most: int = 3


@dataclass(frozen=True, slots=True)
class GeneratedDocument:
    """A `request`, the `fields` of its answer in order, and their `schemas`, by key."""

    request: str
    fields: Mapping[str, Value]
    schemas: Mapping[str, JsonSchema]

    @property
    def answer(self) -> str:
        """The document as JSON with the white space of weft's grammars."""
        return json.dumps(self.fields, ensure_ascii=False)

    @property
    def schema(self) -> JsonSchema:
        """The schema of the whole document."""
        return {
            "type": "object",
            "properties": dict(self.schemas),
            "required": list(self.fields),
            "additionalProperties": False,
        }


TICKET: Final = DocumentTemplate(
    DocumentField(
        "ticket", value_generators.bounded(100, 999), ("This is ticket {value}.", "Ticket {value}.")
    ),
    (
        DocumentField(
            "priority",
            value_generators.PRIORITY,
            ("The priority is {value}.", "Priority: {value}."),
        ),
        DocumentField(
            "status", value_generators.STATUS, ("The status is {value}.", "It is {value} now.")
        ),
        DocumentField(
            "channel", value_generators.CHANNEL, ("It came by {value}.", "Channel: {value}.")
        ),
        DocumentField(
            "level", value_generators.bounded(1, 9), ("The level is {value}.", "Level {value}.")
        ),
        DocumentField(
            "items",
            value_generators.bounded(1, 50),
            ("There are {value} items.", "Items: {value}."),
        ),
        DocumentField(
            "confirmed", value_generators.YES, ("It is confirmed.", "It is not confirmed yet.")
        ),
        DocumentField("refund", value_generators.YES, ("A refund is due.", "No refund is due.")),
        DocumentField(
            "repeated", value_generators.YES, ("It happened before.", "It never happened before.")
        ),
        DocumentField(
            "vip", value_generators.YES, ("The customer is a VIP.", "The customer is no VIP.")
        ),
    ),
    4,
    9,
)
"""A form with many keys and short values."""
TOPICS: Final = (
    DocumentTemplate(
        DocumentField(
            "name", value_generators.NAME, ("This is about {value}.", "{value} signed up.")
        ),
        (
            DocumentField(
                "age",
                value_generators.whole(18, 90),
                ("{who} is {value} years old.", "Age: {value}."),
            ),
            DocumentField(
                "city", value_generators.CITY, ("{who} lives in {value}.", "Home is {value}.")
            ),
            DocumentField(
                "job", value_generators.JOB, ("{who} is a {value}.", "{who} works as a {value}.")
            ),
            DocumentField(
                "member", value_generators.YES, ("{who} is a member.", "{who} is not a member.")
            ),
            DocumentField("born", value_generators.DATE, ("{who} was born on {value}.",)),
            DocumentField("likes", value_generators.THINGS, ("{who} likes {value}.",)),
        ),
    ),
    DocumentTemplate(
        DocumentField(
            "item",
            value_generators.THING,
            ("The order is for a {value}.", "Someone bought a {value}."),
        ),
        (
            DocumentField(
                "count",
                value_generators.whole(1, 40),
                ("They want {value} of them.", "Count: {value}."),
            ),
            DocumentField(
                "price", value_generators.PRICE, ("It costs {value}.", "The price is {value}.")
            ),
            DocumentField(
                "colour", value_generators.COLOUR, ("It is {value}.", "The colour is {value}.")
            ),
            DocumentField(
                "customer",
                value_generators.NAME,
                ("The customer is {value}.", "It goes to {value}."),
            ),
            DocumentField("paid", value_generators.YES, ("It is paid.", "It is not paid yet.")),
            DocumentField("due", value_generators.DATE, ("It is due on {value}.",)),
        ),
    ),
    DocumentTemplate(
        DocumentField(
            "place", value_generators.CITY, ("We meet in {value}.", "The meeting is in {value}.")
        ),
        (
            DocumentField(
                "day", value_generators.DAY, ("It is on {value}.", "The day is {value}.")
            ),
            DocumentField(
                "hour",
                value_generators.whole(7, 22),
                ("It starts at {value}.", "The hour is {value}."),
            ),
            DocumentField(
                "host", value_generators.NAME, ("{value} is the host.", "{value} invites.")
            ),
            DocumentField("guests", value_generators.whole(2, 99), ("There are {value} guests.",)),
            DocumentField(
                "online", value_generators.YES, ("One can join online.", "One cannot join online.")
            ),
            DocumentField("bring", value_generators.THINGS, ("Please bring {value}.",)),
        ),
    ),
    DocumentTemplate(
        DocumentField(
            "owner", value_generators.NAME, ("{value} has a plan.", "The plan is from {value}.")
        ),
        (
            DocumentField(
                "steps",
                value_generators.TASKS,
                ("The steps are {value}.", "In this order: {value}."),
            ),
            DocumentField(
                "day", value_generators.DAY, ("It is for {value}.", "All is done on {value}.")
            ),
            DocumentField("hours", value_generators.whole(1, 12), ("It takes {value} hours.",)),
            DocumentField("urgent", value_generators.YES, ("It is urgent.", "It is not urgent.")),
        ),
    ),
    TICKET,
)
_REQUESTS: Final = (
    "{text}\nWrite this as JSON with the keys {keys}.",
    "Fill in {keys} as JSON.\n{text}",
    "{text}\nJSON with {keys}:",
)


def random_document(rng: np.random.Generator) -> GeneratedDocument:
    """A document of any sort; some texts have more facts than are requested."""
    topic = TOPICS[int(rng.integers(len(TOPICS)))]
    count = int(rng.integers(topic.least, topic.most + 1))
    return _document(topic, count, int(rng.integers(5) == 0), rng)


def random_form(rng: np.random.Generator) -> GeneratedDocument:
    """A ticket with all its keys."""
    return _document(TICKET, TICKET.most, 0, rng)


def _document(
    topic: DocumentTemplate, count: int, more: int, rng: np.random.Generator
) -> GeneratedDocument:
    """The subject with `count` fields; the text has `more` facts."""
    order = [topic.fields[int(at)] for at in rng.permutation(len(topic.fields))]
    requested, extra = [topic.subject, *order[:count]], order[count:][:more]
    values = {field.key: field.kind.draw(rng) for field in (*requested, *extra)}
    who = str(values[topic.subject.key])
    opening = topic.subject.sentence(who, who, rng)
    facts = [field.sentence(who, values[field.key], rng) for field in (*requested[1:], *extra)]
    text = " ".join([opening, *(facts[int(at)] for at in rng.permutation(len(facts)))])
    fields = [requested[int(at)] for at in rng.permutation(len(requested))]
    keys = ", ".join(field.key for field in fields)
    request = value_generators.draw_one(_REQUESTS, rng).format(text=text, keys=keys)
    return GeneratedDocument(
        request,
        {field.key: values[field.key] for field in fields},
        {field.key: field.kind.schema for field in fields},
    )


def _spelled(value: Value) -> str:
    if not isinstance(value, list):
        return str(value)
    return ", ".join(value[:-1]) + " and " + value[-1]
