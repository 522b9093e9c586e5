"""Narrow documents: made from a seed, told in their requests, and JSON."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import validate

from weft.training.diffusion.block.documents import TICKET, TOPICS, random_document, random_form


@given(st.integers(0, 10**6))
def test_the_request_tells_what_the_answer_says(seed: int) -> None:
    made = random_document(np.random.default_rng(seed))

    fields = json.loads(made.answer)
    assert fields == dict(made.fields)
    assert 2 <= len(fields) <= 10
    validate(fields, made.schema)
    assert ", ".join(fields) in made.request
    for value in fields.values():
        for part in value if isinstance(value, list) else [value]:
            if not isinstance(part, bool):
                assert str(part) in made.request


def test_a_form_has_all_keys_of_a_ticket() -> None:
    made = random_form(np.random.default_rng(3))

    assert set(made.fields) == {"ticket", *(field.key for field in TICKET.fields)}
    assert list(made.schema["required"]) == list(json.loads(made.answer))


def test_the_same_seed_makes_the_same_document() -> None:
    assert random_document(np.random.default_rng(7)) == random_document(np.random.default_rng(7))


def test_all_keys_occur_and_few_documents_twice() -> None:
    made = [random_document(np.random.default_rng(seed)) for seed in range(600)]

    keys = {key for one in made for key in one.fields}
    assert keys == {f.key for topic in TOPICS for f in (topic.subject, *topic.fields)}
    assert len({one.request for one in made}) > 590
